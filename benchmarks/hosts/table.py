"""The tables of docs/hosts.md: each situation in each framework, the reasons, the figures that differ, and the settings."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ..tables import Section
from .contract import SITUATIONS, reason
from .measure import Row

PACKAGES = (
    "agent-framework-core",
    "anthropic",
    "google-adk",
    "langchain",
    "langgraph",
    "litellm",
    "openai-agents",
    "pydantic-ai-slim",
    "strands-agents",
    "openai",
)
HOSTS: Final = (
    "Agent Framework",
    "Anthropic SDK",
    "Google ADK",
    "LangChain",
    "LangGraph",
    "LiteLLM proxy",
    "OpenAI Agents SDK",
    "pydantic-ai",
    "Strands",
)
"""The columns."""


def section(rows: Sequence[Row], *, date: str, turns: int, seed: int, window: int) -> Section:
    """Return the tables, and a sentence about the versions and settings of the measurement."""
    last = _setting(rows, date=date, turns=turns, seed=seed, window=window)
    return Section("hosts", (*_contract(rows), "", *_differences(rows), "", last))


def _contract(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of situations and frameworks, and the reasons that its numbers stand for."""
    reasons: list[str] = []
    yield f"| situation | {' | '.join(HOSTS)} |"
    yield f"|---{'|---' * len(HOSTS)}|"
    for situation, meaning in SITUATIONS.items():
        cells = [_cell([row for row in rows if row.belongs_to(host, situation)], host, situation, reasons) for host in HOSTS]
        yield f"| **{situation}**: {meaning} | {' | '.join(cells)} |"
    yield ""
    yield from (f"{number}. {text[0].upper()}{text[1:]}." for number, text in enumerate(reasons, 1))


def _cell(rows: Sequence[Row], host: str, situation: str, reasons: list[str]) -> str:
    """Return a cell: equal, the worst difference in summaries, or none, the last two with the number of their reason."""
    missed = [row for row in rows if row.problems]
    if rows and not missed:
        return "="
    why = reason(host, situation)
    if why is not None and why not in reasons:
        reasons.append(why)
    number = f" ({reasons.index(why) + 1})" if why else ""
    if not rows:
        return f"–{number}"
    worst = max(row.host.summaries - row.plain.summaries for row in missed)
    return (f"{worst:+}" if worst > 0 else "≠") + number


def _differences(rows: Sequence[Row]) -> Iterator[str]:
    yield "| framework | case | turns | requests | invalid | over | after a retry | summaries | prefix breaks | cached |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        if row.problems:
            yield f"| {' | '.join(_figures(row))} |"


def _figures(row: Row) -> Iterator[str]:
    host, plain = row.host, row.plain
    lost = f" ({host.lost} lost)" if host.lost > plain.lost else ""
    dropped = f" ({host.dropped} dropped)" if host.dropped else ""
    yield row.case.host
    yield row.case.name
    yield f"{host.turns:,}" + (" (stopped)" if host.stopped else "")
    yield f"{host.requests:,}"
    yield f"{host.invalid}" + (f", {host.crossed} crossed" if host.crossed else "")
    yield str(host.over)
    yield str(host.over_twice)
    yield _beside(host.summaries, plain.summaries, host.cancelled) + lost + dropped
    yield _beside(host.breaks, plain.breaks, host.cancelled)
    yield f"{host.cached_share:.0%}"


def _beside(ours: int, plain: int, cancelled: int) -> str:
    """Return a count and the plain loop's, bold if it is above the allowed one."""
    text = f"{ours} / {plain}"
    return f"**{text}**" if ours > plain + cancelled else text


def _setting(rows: Sequence[Row], *, date: str, turns: int, seed: int, window: int) -> str:
    when = f"Measured on {date}" if date else "Measured"
    met = sum(not row.problems for row in rows)
    requests, invalid, over = (sum(getattr(row.host, name) for row in rows) for name in ("requests", "invalid", "over_twice"))
    what = f"{when}: {turns} turns, a window of {window:,} tokens, seed {seed}; {met} of {len(rows)} cases are equal"
    total = f"{requests:,} requests, {invalid} of them invalid and {over} too long after a retry"
    return f"{what}; {total}. Python {platform.python_version()}, {', '.join(_versions())}."


def _versions() -> Iterator[str]:
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
