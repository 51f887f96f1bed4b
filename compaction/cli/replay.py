"""``compaction replay``: what recorded sessions would have come to under other strategies."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import UnreadableFile
from ..replay import (
    Estimate,
    Recording,
    ReplayResult,
    Summary,
    UnknownModel,
    prices_of,
    recommend,
    strategy_names,
    unpriced,
)
from ..replay import replay as replayed
from ..replay.logs import recordings_of
from ..replay.report import write_report
from .exits import ExitCode
from .options import AsJson, CounterName, FormatName, counter_named, parse_size
from .terminal import console_on, counted, safe, show_table

__all__ = ["replay"]

_STRATEGIES: Final = ("adaptive", "context_window")
_MOST_NOTES: Final = 20


def replay(
    sessions: Annotated[
        list[Path],
        typer.Argument(
            metavar="SESSIONS...",
            show_default=False,
            help="Files of conversations as compact reads them, or session logs: Claude Code, Codex CLI, SWE-agent, tau-bench, "
            "ATIF.",
        ),
    ],
    *,
    window: Annotated[int, typer.Option(parser=parse_size, metavar="SIZE", help="Tokens a request may have: 32000, 32k.")],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME_OR_FILE",
            help=f"What to replay beside the baselines, repeatable: {', '.join(strategy_names())}; "
            "or a Python file that names a strategy, or a function strategy(window).",
        ),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="Whose prices and cache rules hold.")] = "gpt-5",
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="A price table of your own (TOML).")] = None,
    overhead: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="Tokens of every request outside the messages.")
    ] = None,
    charge_summaries: Annotated[
        bool, typer.Option("--charge-summaries", help="Charge for summaries as if the model had written them.")
    ] = False,
    counter: CounterName = "auto",
    format: FormatName = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes; by default one for each processor.", show_default=False)] = (
        os.cpu_count() or 1
    ),
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    recommended: Annotated[
        bool, typer.Option("--recommend", help="Name the strategies that none beats on both cost and recall, and say why.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a report to look at in a browser: one HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Replay recorded sessions under strategies: cost, cache, validity, and what was forgotten. No model is called.

    Every assistant message is one call. Figures are means over the sessions that exceed the window, with 95 % intervals; the
    other sessions are listed. Exit code 1: a session could not be read or played, or a strategy raised.
    """
    counting, note = counter_named(counter)
    recordings, wrong = _read(sessions)
    try:
        priced = prices_of(model, prices)
    except UnknownModel as error:
        priced = unpriced(model)
        wrong.append(f"{error}; until then costs are counted in input tokens, a cached one as a tenth")
    with _progress() as on_progress:
        result = replayed(
            recordings,
            list(dict.fromkeys(strategy or _STRATEGIES)),
            window=window,
            model=priced,
            counter=counting,
            format=format,
            overhead_tokens=overhead or 0,
            charge_summaries=charge_summaries,
            jobs=jobs,
            seed=seed,
            on_progress=on_progress,
        )
    if report is not None:
        write_report(result, report)
    if as_json:
        _write_json(result, wrong, recommended)
    else:
        _show(result, wrong, recommended, note)
    raised = any(run.failures for each in result.conversations for run in each.runs.values())
    return ExitCode.FOUND if wrong or raised or result.unplayed else ExitCode.DONE


def _read(sessions: Sequence[Path]) -> tuple[list[Recording], list[str]]:
    """The recordings of all files, and which files could not be read, and why."""
    recordings: list[Recording] = []
    unread: list[str] = []
    for path in sessions:
        try:
            recordings += recordings_of(path)
        except UnreadableFile as error:
            unread.append(str(error))
    if not recordings:
        raise UnreadableFile("; ".join(unread))
    return recordings, unread


@contextmanager
def _progress() -> Generator[Callable[[int, int], object]]:
    """A bar on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TextColumn("calls"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _write_json(result: ReplayResult, wrong: Sequence[str], recommended: bool) -> None:
    data = result.to_dict()
    data["notes"] = [*wrong, *data["notes"]]
    if recommended:
        found = recommend(result)
        data["recommendation"] = {"names": found.names, "reasons": found.reasons}
    sys.stdout.write(json.dumps(data) + "\n")


# ---------------------------------------------------------------- the table


def _show(result: ReplayResult, wrong: Sequence[str], recommended: bool, note: str | None) -> None:
    setting = result.setting
    calls = sum(len(each.needs) for each in result.exceeding)
    lines = [
        f"{counted(len(result.exceeding), 'session')} over {setting.window:,} tokens, {counted(calls, 'call')}",
        f"{counted(len(result.short), 'session')} within it, not averaged in",
        "cost: of sending everything; usable: needed facts, in %, in a request that would be taken; old: of the oldest of them",
        "over: requests over the window; bad: requests that break a rule of their format which the log itself does not",
        f"prices of {setting.prices.model}, {setting.prices.date or 'undated'}",
        note or f"tokens counted by {setting.counter.name}",
        *_notes([*wrong, *result.notes]),
    ]
    if hopeless := sum(not needs.fits for each in result.exceeding for needs in each.needs):
        lines.insert(
            2, f"{counted(hopeless, 'call')} cannot fit: system messages and the last user message alone exceed the window"
        )
    if recommended:
        found = recommend(result)
        lines += [f"recommended: {', '.join(found.names) or 'none of these'}", *(f"- {reason}" for reason in found.reasons)]
    with console_on(sys.stdout) as console:
        if result.exceeding:
            columns = ["strategy", ">cost", ">usable", ">old", ">words", ">spans", ">over", ">bad", ">edited", ">breaks"]
            show_table(console, [*columns, ">peak", ">CPU s"], [_row(each) for each in result.summaries.values()])
        for line in lines:
            console.print(safe(line))


def _row(summary: Summary) -> Sequence[str]:
    score, means = summary.score, summary.macro
    recall = ("-" if (value := means[name].value) is None else f"{100 * value:.0f}" for name in ("old", "words", "spans"))
    counts = (score.over, score.invalid, score.compactions, score.breaks, score.peak)
    shares = _interval(means["cost"], 1, 2), _interval(means["usable"], 100, 0), *recall
    return summary.contender, *shares, *(f"{count:,}" for count in counts), f"{score.seconds:.1f}"


def _interval(estimate: Estimate, unit: int, digits: int) -> str:
    if estimate.value is None:
        return "-"
    figure = f"{unit * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return figure
    return f"{figure} ({unit * estimate.low:.{digits}f}-{unit * estimate.high:.{digits}f})"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    """The notes, those that say the same of several sessions once."""
    places: dict[str, list[str]] = {}
    for note in notes:
        place, _, words = note.partition(": ")
        places.setdefault(words or place, []).append(place)
    told = Counter({words: len(found) for words, found in places.items()})
    for words, count in told.most_common(_MOST_NOTES):
        yield (
            f"{places[words][0]}: {words}" if count == 1 else f"{counted(count, 'session')}, first {places[words][0]}: {words}"
        )
    if len(told) > _MOST_NOTES:
        yield f"{counted(len(told) - _MOST_NOTES, 'note')} more; --json has them all"
