"""``compaction replay``: the cost, cache use, validity and recall of strategies on recorded sessions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import UnreadableFile
from ..models import UnknownModel, prices_of, unpriced
from ..replay import (
    CALLS_PER_MONTH,
    MINIMUM_RECALL,
    Recording,
    recommend,
    recordings_of,
    replay,
    strategy_names,
    write_report,
)
from .exit_codes import ExitCode
from .options import AsJson, CounterName, FormatName, ModelTableFile, completed, find_counter, parse_size, window_tokens
from .printing import print_json, progress_line
from .replay_report import advice_lines, show_replay

_STRATEGIES: Final = ("adaptive", "context_window")


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
    seed: Annotated[int, typer.Option(help="The seed of the intervals.")] = 0,
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
            seed=seed,
            on_progress=lambda done, total: update(completed=done, total=total),
        )
    if report is not None:
        write_report(result, report, minimum_recall=min_recall, calls_per_month=calls_per_month)
    advice = recommend(result, minimum_recall=min_recall) if recommended else None
    if as_json:
        data = result.to_dict()
        print_json({**data, "notes": [*wrong, *data["notes"]], **({"recommendation": advice} if advice else {})})
    else:
        show_replay(result, wrong, [] if advice is None else advice_lines(result, advice, calls_per_month), note)
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
