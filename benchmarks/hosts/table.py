"""The table of docs/hosts.md, and the sentence about its measurement."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from ..tables import Section
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


def section(rows: Sequence[Row], *, date: str, turns: int, seed: int, window: int) -> Section:
    """Return the table, and a sentence about the versions and settings of the measurement."""
    return Section("hosts", (*_table(rows), "", _setting(rows, date=date, turns=turns, seed=seed, window=window)))


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| framework | case | turns | requests | invalid | over | after a retry | summaries | prefix breaks | cached |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        host, plain = row.host, row.plain
        turns = f"{host.turns:,}" + (" (stopped)" if host.stopped else "")
        lost = f" ({host.lost} lost)" if host.lost else ""
        crossed = f", {host.crossed} crossed" if host.crossed else ""
        cells = [
            row.case.host,
            row.case.name,
            turns,
            f"{host.requests:,}",
            f"{host.invalid}{crossed}",
            str(host.over),
            str(host.over_twice),
            _beside(host.summaries, plain.summaries, host.cancelled) + lost,
            _beside(host.breaks, plain.breaks, host.cancelled),
            f"{host.cached_share:.0%}",
        ]
        yield f"| {' | '.join(cells)} |"


def _beside(ours: int, plain: int, cancelled: int) -> str:
    """Return a count and the plain loop's, bold if it is above the allowed one."""
    text = f"{ours} / {plain}"
    return f"**{text}**" if ours > plain + cancelled else text


def _setting(rows: Sequence[Row], *, date: str, turns: int, seed: int, window: int) -> str:
    when = f"Measured on {date}" if date else "Measured"
    met = sum(not row.problems for row in rows)
    what = f"{when}: {turns} turns, a window of {window:,} tokens, seed {seed}; {met} of {len(rows)} rows are met"
    return f"{what}. Python {platform.python_version()}, {', '.join(_versions())}."


def _versions() -> Iterator[str]:
    for name in PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
