"""``compaction replay``: the cost, cache use, validity and recall of strategies on recorded sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import UnreadableFile
from ..models import UnknownModel, prices_of, unpriced
from ..replay import (
    CALLS_PER_MONTH,
    MINIMUM_RECALL,
    CandidateSummary,
    IntervalEstimate,
    Recommendation,
    Recording,
    ReplayResult,
    recommend,
    recordings_of,
    replay,
    strategy_names,
    write_report,
)
from .exit_codes import ExitCode
from .options import AsJson, CounterName, FormatName, ModelTableFile, completed, find_counter, parse_size, window_tokens
from .printing import Column, number_columns, open_console, plural, print_json, print_lines, print_table, progress_line

_STRATEGIES: Final = ("adaptive", "context_window")
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


def replay_command(
    sessions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SESSIONS...",
            show_default=False,
            help="Files of conversations, as compact reads them, or session logs of Claude Code, Codex CLI, SWE-agent, "
            "tau-bench or ATIF.",
        ),
    ],
    *,
    window: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Tokens a request may have, such as 32000 or 32k, or the name of a model, such as gpt-5."
        ),
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME_OR_FILE",
            autocompletion=completed(strategy_names()),
            help=f"A strategy to replay beside the baselines, repeatable: {', '.join(strategy_names())}; "
            "or a pipeline in TOML or YAML, or a Python file that defines strategy, or strategy(window).",
        ),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The model whose prices and cache rules apply.")] = "gpt-5",
    models: ModelTableFile = None,
    overhead: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="Tokens of every request outside the messages.")
    ] = None,
    charge_summaries: Annotated[
        bool, typer.Option("--charge-summaries", help="Charge for summaries as if the model had written them.")
    ] = False,
    counter: CounterName = "auto",
    format: FormatName = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; by default one per processor.", show_default=False)] = (
        os.cpu_count() or 1
    ),
    recommended: Annotated[
        bool,
        typer.Option("--recommend", help="Recommend the cheapest strategy that keeps enough, and those that keep more."),
    ] = False,
    min_recall: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Share of the needed facts that a recommended strategy keeps, from 0 to 1.",
        ),
    ] = MINIMUM_RECALL,
    calls_per_month: Annotated[
        int, typer.Option(min=1, metavar="N", help="Your model calls a month, for the money saved in the recommendation.")
    ] = CALLS_PER_MONTH,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a report to open in a browser: one HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Replay recorded sessions under strategies: cost, cache use, validity and forgotten facts. No model is called.

    Every assistant message is one call. Figures are means over the sessions that exceed the window, with 95 % intervals; the
    other sessions are counted. Exit code 1: a session could not be read or replayed, or a strategy raised an exception.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    limit = window_tokens(window, models)
    counting, note = find_counter(counter)
    recordings, wrong = _read(sessions)
    try:
        priced = prices_of(model, models)
    except UnknownModel as error:
        priced = unpriced(model)
        wrong.append(f"{error}; costs are in input tokens, and a cached token costs a tenth")
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TextColumn("calls"), TimeRemainingColumn())
    with progress_line(*columns) as update:
        result = replay(
            recordings,
            list(dict.fromkeys(strategy or _STRATEGIES)),
            window=limit,
            model=priced,
            counter=counting,
            format=format,
            overhead_tokens=overhead or 0,
            charge_summaries=charge_summaries,
            jobs=jobs,
            on_progress=lambda done, total: update(completed=done, total=total),
        )
    if report is not None:
        write_report(result, report, minimum_recall=min_recall, calls_per_month=calls_per_month)
    advice = recommend(result, minimum_recall=min_recall) if recommended else None
    if as_json:
        data = result.to_dict()
        print_json({**data, "notes": [*wrong, *data["notes"]], **({"recommendation": advice} if advice else {})})
    else:
        _show_replay(result, wrong, [] if advice is None else _advice_lines(result, advice, calls_per_month), note)
    raised = any(run.failures for each in result.conversations for run in each.runs.values())
    return ExitCode.FOUND if wrong or raised or result.skipped else ExitCode.DONE


def _read(sessions: Sequence[Path]) -> tuple[list[Recording], list[str]]:
    """Return the recordings of all files, and an error for each file and line that cannot be read."""
    recordings: list[Recording] = []
    unread: list[str] = []
    for path in sessions:
        try:
            recordings += recordings_of(path, on_bad_line=lambda error: unread.append(str(error)))
        except UnreadableFile as error:
            unread.append(str(error))
    if not recordings:
        raise UnreadableFile("; ".join(unread))
    return recordings, unread


def _show_replay(result: ReplayResult, wrong: Sequence[str], advice: Sequence[str], note: str | None) -> None:
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


def _advice_lines(result: ReplayResult, advice: Recommendation, calls_per_month: int) -> list[str]:
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
