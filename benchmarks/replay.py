"""A replay of recorded sessions under our strategies, baselines and other packages, written to ``docs/benchmarks.md``.

    python -m benchmarks.replay docs/benchmarks.md

It needs the environment that ``make bench-replay`` makes, and the recorded conversations beside the checkout.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from compaction.replay import Candidate, Recording, ReplayResult, recommend, replay

from .peers import agent_framework_pipeline, hermes_compressor, langchain_middleware, langmem_summary
from .peers.plots import draw
from .peers.recipe import RECIPE

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = ROOT.parent / "shared" / "corpus" / "dev"
FILES: Final = ("coding_long", "tau_long", "whowhen_multiagent")
LONGEST: Final = 1_000  # some packages take minutes at each window for the session of 2,433 messages
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
MEASURES: Final = ("usable", "old", "words", "spans", "said", "sentences", "constraints")
COUNTS: Final = ("over", "bad", "edited", "breaks", "peak", "CPU s")
COLUMNS: Final = ("strategy", "cost", *MEASURES[:-1], "rules", *COUNTS)
HEAD: Final = """\
# Strategies and packages on recorded sessions

Each table compares strategies of this package, baselines and other packages at one context window. Recorded sessions were
replayed; no model was called. To repeat it, with the recorded sessions beside the checkout:

```sh
make bench-replay
```

Measured on {date} in {seconds:,.0f} s on {machine}, Python {python}: {versions}. Prices are those of {model}, {prices}.

## How to read the tables

| column | meaning |
|---|---|
| cost | cost of all requests, as a share of sending everything |
| usable | % of the needed facts in requests that a provider accepts: the main figure |
| old | the same, of facts that keeping only the newest messages loses |
| words, spans | the same, of rare words and of verbatim text |
| said, sentences | % of the words and of the sentences of the user's messages that are still sent, likewise |
| rules | % of the user's instructions that are still verbatim after compactions |
| over, bad | requests over the window; requests that break a rule of their format |
| edited, breaks | calls with a change; requests that lost a cached prefix |
| peak, CPU s | tokens of the largest request; CPU time of the strategy |

[Metrics](metrics.md) has the formulas. Figures are means over the sessions that exceed the window, with 95 % bootstrap
intervals. `adaptive` minus a baseline is computed before rounding.

- `none`, `truncate` and `hysteresis` are baselines. Strategies of this package are bold; `recipe` is
  `benchmarks/peers/recipe.py`. The other packages are configured as they document, in `benchmarks/peers`.
- All use the same token counter, and the same digest instead of a model's summary. So the tables show what each keeps, when it
  cuts and how that affects the cache, not how well a model writes.
- The sessions are coding agents, customer service chained into long sessions, and logs of several agents. One session of more
  than 1,000 messages is left out, because some packages take too long for it.
- `adaptive` was tuned on these sessions, so other sessions may give other figures.
"""


def main(target: Path) -> None:
    began = time.monotonic()
    recordings = list(_recordings())
    parts: list[str] = []
    for window in WINDOWS:
        result = replay(recordings, CANDIDATES, window=window, jobs=2, on_progress=_progress(window))
        parts.append(_section(result, window))
    shipped = json.loads((ROOT / "examples" / "coding_session.json").read_text(encoding="utf-8"))
    example = replay([Recording(id="coding_session", messages=_messages(shipped))], CANDIDATES, window=8_000)
    title = "## `examples/coding_session.json`, a window of 8k tokens"
    parts.append(f"{title}\n\n{_table(example)}\n\nOne session has no interval.\n")
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
    draw(target)


def _progress(window: int) -> Callable[[int, int], None]:
    """Return a function that reports progress on standard error."""
    return lambda done, total: print(f"{window:,}: {done:,} of {total:,} calls", file=sys.stderr)


def _recordings() -> Iterator[Recording]:
    for name in FILES:
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                data = json.loads(line)
                if len(data["messages"]) <= LONGEST:
                    yield Recording(id=data["id"], messages=data["messages"], where=name)


def _messages(data: Any) -> list[Any]:
    return data["messages"] if isinstance(data, dict) else data


def _section(result: ReplayResult, window: int) -> str:
    found = recommend(result)
    more = [reason for reason in found.reasons if any(reason.startswith(f"{name} keeps ") for name in found.names)]
    reasons = "\n".join(f"- {reason}" for reason in (found.headline, *more))
    difference = result.summary("adaptive").difference
    figures = ", ".join(f"{name} {_points(difference[name])}" for name in ("cost", *MEASURES))
    size = f"{window // 1_000}k"
    old = [needed for score in result.scores("adaptive") if (needed := score.shares["old"].needed)]
    return (
        f"## A window of {size} tokens\n\n![Cost against recall](benchmarks-{size}.svg)\n\n{_table(result)}\n\n"
        f"*old* counts {sum(old)} uses of facts in {len(old)} sessions.\n\n"
        f"`adaptive` minus `{result.cheapest_baseline}` on the same sessions, in percentage points: {figures}.\n\n"
        f"Recommended:\n\n{reasons}\n"
    )


def _table(result: ReplayResult) -> str:
    rows = [
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    for name, summary in result.summaries.items():
        score, means = summary.score, summary.macro
        shares = [_percent(means[each].value) for each in MEASURES[1:]]
        counts = [f"{each:,}" for each in (score.over, score.invalid, score.compactions, score.breaks, score.peak)]
        cells = [_interval(means["cost"], 1, 2), _interval(means["usable"], 100, 0), *shares, *counts, f"{score.seconds:.1f}"]
        rows.append(f"| {_shown(name)} | " + " | ".join(cells) + " |")
    raised = [name for name, each in result.summaries.items() if each.score.failures]
    return "\n".join([*rows, *(["", f"Raised an exception in some runs: {', '.join(raised)}."] if raised else [])])


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="the page to write")
    main(parser.parse_args().page)
