"""The output of ``compaction replay``: the table of candidates, the recommendation and the notes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from ..replay import CandidateSummary, IntervalEstimate, Recommendation, ReplayResult
from .printing import Column, number_columns, open_console, plural, print_lines, print_table

_MAX_NOTES: Final = 20
_WIDE: Final = 100
_COLUMNS: Final = (
    Column("strategy", if_narrow="cut"),
    *number_columns("cost\nof all", "facts\n%", "old\n%", "said\n%"),
    *number_columns("over\ncalls", "bad\ncalls", "breaks\ncalls", "largest\ntokens", "CPU\ns"),
)
_LEGEND: Final = (
    "cost: as a share of sending everything; facts: needed facts in requests that would be accepted",
    "old: the needed facts that sending only the newest messages would lose",
    "said: words of the user that are still sent, in requests that would be accepted",
    "over: requests that exceed the window",
    "bad: requests that break a rule of their format that the log does not break",
    "breaks: requests that lost a cached prefix",
    "largest: the largest request; CPU: time of the strategy",
    "in brackets: 95 % intervals, with two sessions or more",
    "",
)


def show_replay(result: ReplayResult, wrong: Sequence[str], advice: Sequence[str], note: str | None) -> None:
    """Print the table of a replay, the advice, what could not be read, and the token counter's warning (``note``)."""
    setting = result.setting
    calls = sum(len(each.needs) for each in result.exceeding)
    lines = [
        f"{plural(len(result.exceeding), 'session')} over {setting.window:,} tokens, {plural(calls, 'call')}",
        f"{plural(len(result.short), 'session')} within the window, not in the averages",
        f"prices of {setting.prices.model}, {setting.prices.date or 'undated'}",
        note or f"tokens counted by {setting.counter.name}",
        *_notes([*wrong, *result.notes]),
    ]
    if hopeless := sum(not needs.fits for each in result.exceeding for needs in each.needs):
        lines.insert(
            2, f"{plural(hopeless, 'call')} cannot fit: the system messages and the last user message alone exceed the window"
        )
    with open_console(sys.stdout) as console:
        intervals = console.width >= _WIDE
        console.width = min(console.width, _WIDE)
        if result.exceeding:
            shown = slice(None if intervals else -1)  # a narrow terminal has no room for intervals and times
            rows = [_row(each, intervals=intervals)[shown] for each in result.summaries.values()]
            print_table(console, _COLUMNS[shown], rows)
            lines = [*_LEGEND, *lines]
        print_lines(console, [*advice, *([""] if advice else []), *lines])


def advice_lines(result: ReplayResult, advice: Recommendation, calls_per_month: int) -> list[str]:
    """Return the recommendation in lines: the sentence, the money, the command, the reasons."""
    lines = [advice.headline, *([advice.rule] if advice.rule else [])]
    each, whole = (result.dollars_per_call(name) if name else None for name in (advice.lead, "none"))
    if each is not None and whole is not None:
        cost, saved = calls_per_month * each, calls_per_month * (whole - each)
        change = f"${saved:,.2f} less" if saved >= 0 else f"${-saved:,.2f} more"
        lines.append(
            f"{advice.lead} at {calls_per_month:,} calls a month: ${cost:,.2f} for input, {change} than sending everything"
        )
    if advice.command:
        lines.append(f"to {'deploy' if advice.names else 'try'} {advice.lead}: {advice.command}")
    return [*lines, *(f"- {reason}" for reason in advice.reasons)]


def _row(summary: CandidateSummary, *, intervals: bool) -> Sequence[str]:
    score, means = summary.score, summary.macro
    cost, usable = _interval(means["cost"], 1, 2), _interval(means["usable"], 100, 0)
    if not intervals:
        cost, usable = cost.split()[0], usable.split()[0]
    old, said = ("-" if (value := means[name].value) is None else f"{100 * value:.0f}" for name in ("old", "said"))
    counts = (score.over, score.invalid, score.breaks, score.peak)
    return summary.candidate, cost, usable, old, said, *(f"{count:,}" for count in counts), f"{score.seconds:.1f}"


def _interval(estimate: IntervalEstimate, unit: int, digits: int) -> str:
    if estimate.value is None:
        return "-"
    figure = f"{unit * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return figure
    return f"{figure} ({unit * estimate.low:.{digits}f}-{unit * estimate.high:.{digits}f})"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    """Yield the notes; a note that several sessions share is shown once."""
    places: dict[str, list[str]] = {}
    for note in notes:
        place, _, words = note.partition(": ")
        places.setdefault(words or place, []).append(place)
    frequent = sorted(places.items(), key=lambda item: len(item[1]), reverse=True)
    for words, found in frequent[:_MAX_NOTES]:
        first = f"{found[0]}: {words}"
        yield first if len(found) == 1 else f"{plural(len(found), 'session')}, first {first}"
    if len(frequent) > _MAX_NOTES:
        yield f"{plural(len(frequent) - _MAX_NOTES, 'note')} more; --json shows them all"
