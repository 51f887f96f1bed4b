"""Replay of recorded sessions under our strategies, simple baselines and other packages; writes ``docs/benchmarks.md``.

    python -m benchmarks.replay docs/benchmarks.md

It needs the environment that ``make bench-replay`` makes, and the recorded conversations beside the checkout.
"""

from __future__ import annotations

import gzip
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from compaction.replay import Candidate, Recording, ReplayResult, Score, macro_average, recommend, replay

from .peers import agent_framework_pipeline, hermes_compressor, langchain_middleware, langmem_summary
from .peers.plots import plot_frontier
from .peers.recipe import RECIPE

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = ROOT.parent / "shared" / "corpus" / "dev"
FILES: Final = {"coding": "coding_long", "service": "tau_long", "multi-agent": "whowhen_multiagent"}
LONGEST: Final = 1_000  # some peers take minutes at each window for one of 2,433 messages
WINDOWS: Final = (8_000, 16_000, 32_000)
PACKAGES: Final = ("compaction-toolkit", "agent-framework-core", "hermes-agent", "langchain", "langmem", "toktok-rs")
CANDIDATES: Final[tuple[str | Candidate, ...]] = (
    "adaptive",
    RECIPE,
    "context_window",
    "hermes",
    agent_framework_pipeline.CONTEXT_WINDOW,
    agent_framework_pipeline.PIPELINE,
    hermes_compressor.HERMES,
    langchain_middleware.SUMMARIZATION,
    langchain_middleware.CLEAR_TOOL_USES,
    langmem_summary.LANGMEM,
)
OURS: Final = ("adaptive", "recipe", "context_window", "hermes")
MEASURES: Final = ("usable", "old", "words", "spans", "constraints")
HEAD: Final = """\
# Strategies and packages on recorded sessions

Made by `make bench-replay` on {date}, in {seconds:,.0f} s on {machine}; Python {python}. {versions}.

What the columns mean is on the page about [metrics](metrics.md). Short: *cost* is the share of what sending
everything costs; *usable* the needed facts, in %, that stand in a request which would be taken; *old* those that
cutting to the newest messages would have lost; *words* and *spans* two other ways to ask the same; *rules* what the
user laid down that still stands; *over* requests over the window; *bad* requests that a provider would refuse. Means
over the sessions that exceed the window, with 95 % intervals of a bootstrap over sessions.

`none`, `truncate` and `hysteresis` are rules of thumb. `adaptive`, `recipe`, `context_window` and `hermes` are of
this package (`recipe` is `benchmarks/peers/recipe.py`), the others are other packages, set up as their documentation
says, in `benchmarks/peers`. All count with the same counter, and whoever wants a summary gets it from the same
digest, made without a model; so what is compared is what they keep, when they cut and what that does to the cache,
not how well a model writes. Prices are those of {model}, {prices}.

The sessions are real ones: coding agents and customer service chained into long sessions, and logs of several agents
that talk to each other; one of more than 1,000 messages is left out, for which some peers take too long. `adaptive`
was tuned on these files; other conversations may show other figures. Facts that an agent could have read are not
facts that it would have used: no model was called.
"""


def main(target: Path) -> None:
    began = time.monotonic()
    recordings = list(_recordings())
    parts: list[str] = []
    for window in WINDOWS:
        result = replay(recordings, CANDIDATES, window=window, jobs=2, on_progress=_progress(window))
        plot = target.with_name(f"benchmarks-{window // 1_000}k.svg")
        plot_frontier(result, plot, OURS)
        parts.append(_section(result, window, plot.name))
    shipped = json.loads((ROOT / "examples" / "coding_session.json").read_text(encoding="utf-8"))
    example = replay([Recording(id="coding_session", messages=_messages(shipped))], CANDIDATES, window=8_000)
    parts.append("## The session this project ships, at 8k\n\n" + _table(example) + "\n\nOne session, so no intervals.\n")
    prices = example.setting.prices
    head = HEAD.format(
        date=datetime.now(UTC).date().isoformat(),
        seconds=time.monotonic() - began,
        machine=f"2 processes, {platform.machine()}",
        python=platform.python_version(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
        model=prices.model,
        prices=prices.date,
    )
    target.write_text("\n".join([head, *parts]), encoding="utf-8")


def _progress(window: int) -> Callable[[int, int], None]:
    """Return a function that reports progress on standard error."""
    return lambda done, total: print(f"{window:,}: {done:,} of {total:,} calls", file=sys.stderr)


def _recordings() -> Iterator[Recording]:
    for name in FILES.values():
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                data = json.loads(line)
                if len(data["messages"]) <= LONGEST:
                    yield Recording(id=data["id"], messages=data["messages"], where=name)


def _messages(data: Any) -> list[Any]:
    return data["messages"] if isinstance(data, dict) else data


def _section(result: ReplayResult, window: int, plot: str) -> str:
    found = recommend(result)
    reasons = "\n".join(f"- {reason}" for reason in found.reasons if " is excluded: " not in reason)
    difference = result.summary("adaptive").difference
    against = result.cheapest_baseline
    figures = ", ".join(f"{name} {_points(difference[name])}" for name in MEASURES)
    return (
        f"## {window // 1_000}k\n\n![cost against recall]({plot})\n\n{_table(result)}\n\n"
        f"`adaptive` less `{against}`, in points, on the same sessions: cost {_points(difference['cost'])}, {figures}.\n\n"
        f"{reasons}\n\nBy kind of session, means:\n\n{_by_kind(result)}\n"
    )


def _table(result: ReplayResult) -> str:
    rows = [
        "| strategy | cost | usable | old | words | spans | rules | over | bad | edited | breaks | peak | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, summary in result.summaries.items():
        score, means = summary.score, summary.macro
        shares = [_percent(means[each].value) for each in MEASURES[1:]]
        counts = [f"{each:,}" for each in (score.over, score.invalid, score.compactions, score.breaks, score.peak)]
        cells = [_interval(means["cost"], 1, 2), _interval(means["usable"], 100, 0), *shares, *counts, f"{score.seconds:.1f}"]
        rows.append(f"| {_shown(name)} | " + " | ".join(cells) + " |")
    raised = [name for name, each in result.summaries.items() if each.score.failures]
    return "\n".join([*rows, *(["", f"Raised in some runs: {', '.join(raised)}."] if raised else [])])


def _by_kind(result: ReplayResult) -> str:
    rows = [f"| strategy | {' | '.join(f'{kind}: cost | usable | old' for kind in FILES)} |", "|---|" + "---|" * 3 * len(FILES)]
    for name in result.candidates:
        cells: list[str] = []
        for file in FILES.values():
            sessions = [each for each in result.exceeding if each.recording.where == file]
            scores, whole = result.scores(name, sessions), result.scores("none", sessions)
            cells += _kind_cells(scores, whole)
        rows.append(f"| {_shown(name)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _kind_cells(scores: Sequence[Score], whole: Sequence[Score]) -> list[str]:
    if not scores:
        return ["-"] * 3
    cost = sum(one.dollars / all.dollars for one, all in zip(scores, whole, strict=True)) / len(scores)
    return [
        f"{cost:.2f}",
        _percent(macro_average([each.usable for each in scores])),
        _percent(macro_average([each.old for each in scores])),
    ]


def _shown(name: str) -> str:
    return f"**{name}**" if name in OURS else name


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}"


def _interval(estimate: Any, unit: int, digits: int) -> str:
    if estimate.value is None:
        return "-"
    figure = f"{unit * estimate.value:.{digits}f}"
    return figure if estimate.low is None else f"{figure} ({unit * estimate.low:.{digits}f}-{unit * estimate.high:.{digits}f})"


def _points(estimate: Any) -> str:
    if estimate.value is None:
        return "-"
    interval = "" if estimate.low is None else f" ({100 * estimate.low:+.0f} to {100 * estimate.high:+.0f})"
    return f"{100 * estimate.value:+.0f}{interval}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
