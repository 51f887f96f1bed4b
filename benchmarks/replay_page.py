"""Writes the page of ``benchmarks.replay``: its head, and a section with a table for each window."""

from __future__ import annotations

from typing import Any, Final

from compaction.replay import ReplayResult, recommend

OURS: Final = ("adaptive", "recipe", "context_window", "hermes")
MEASURES: Final = ("usable", "old", "words", "spans", "said", "sentences", "constraints")
HEADINGS: Final = {"constraints": "rules"}
COUNTS: Final = ("over", "bad", "edited", "breaks", "peak", "CPU s")
COLUMNS: Final = ("strategy", "cost", *(HEADINGS.get(name, name) for name in MEASURES), *COUNTS)
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
- All use the same token counter, and the same digest instead of a model's summary.
- The sessions are coding agents, customer service chained into long sessions, and logs of several agents. One session of more
  than 1,000 messages is left out, because some packages take too long for it.
- `adaptive` was tuned on these sessions, so other sessions may give other figures.
"""


def section(result: ReplayResult, window: int) -> str:
    """Return the section about one window: table, uses of old facts, difference from the best baseline, recommendation."""
    found = recommend(result)
    more = [reason for reason in found.reasons if any(reason.startswith(f"{name} keeps ") for name in found.names)]
    reasons = "\n".join(f"- {reason}" for reason in (found.headline, *more))
    difference = result.summary("adaptive").difference
    figures = ", ".join(f"{HEADINGS.get(name, name)} {_points(difference[name])}" for name in ("cost", *MEASURES))
    size = f"{window // 1_000}k"
    old = [needed for score in result.scores("adaptive") if (needed := score.shares["old"].needed)]
    return (
        f"## A window of {size} tokens\n\n![Cost against recall](benchmarks-{size}.svg)\n\n{table(result)}\n\n"
        f"*old* counts {sum(old)} uses of facts in {len(old)} sessions.\n\n"
        f"`adaptive` minus `{result.cheapest_baseline}` on the same sessions, in percentage points: {figures}.\n\n"
        f"Recommended:\n\n{reasons}\n"
    )


def table(result: ReplayResult) -> str:
    """Return the table of all candidates, and below it those that raised an exception."""
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
