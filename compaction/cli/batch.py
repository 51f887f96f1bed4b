"""``compaction batch``: compact as many conversations as there are, and go on after a crash."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..batch import Limits, compact_files, estimate
from ..errors import ConfigurationError
from ..replay import prices_of
from .batch_report import progress_shown, show_estimate, show_report, write_json
from .compact import PRESETS, Plan, plan_of
from .exits import ExitCode, complain
from .options import AsJson, CounterName, FormatName, counter_named, parse_size
from .terminal import safe

__all__ = ["batch"]

_ENGINES = ("local", "ray")


def batch(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...", show_default=False, help="Files and directories: .jsonl, .jsonl.gz, .jsonl.zst, .parquet."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="A directory; or one file, if its name ends like one.", show_default=False
        ),
    ],
    to: Annotated[
        str | None, typer.Option(metavar="KIND", help="How to store the output: jsonl, jsonl.gz, jsonl.zst, parquet.")
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"How, with --window: {', '.join(PRESETS)}.", show_default=True)
    ] = "context_window",
    pipeline: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="In place of --preset: a pipeline in TOML or YAML.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(parser=parse_size, metavar="SIZE", help="Tokens the model takes in and puts out: 32000, 32k, 1m."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="In place of --window: tokens a result may have.")
    ] = None,
    reserve_output: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="Tokens of --window kept for the answer.")
    ] = None,
    counter: CounterName = "auto",
    format: FormatName = None,
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column of a Parquet file that holds the messages.")
    ] = "messages",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one for each processor.", show_default=False)
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="local, or ray: actors on a Ray cluster.")] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="With --engine ray: the cluster; by default the one of the environment."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Conversations that wait for a summarizer at a time.")] = 16,
    requests_per_minute: Annotated[float | None, typer.Option(metavar="N", help="The most that a summarizer is asked.")] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="The most that a summarizer reads and writes.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose prices a summarizer costs; see compaction replay.", show_default=False),
    ] = None,
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="A price table of your own (TOML).")] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="End at the first bad conversation; broken rules and missed targets are bad too."),
    ] = False,
    max_errors: Annotated[
        int | None, typer.Option(min=0, help="End after so many bad conversations; by default never.", show_default=False)
    ] = None,
    max_bytes: Annotated[int, typer.Option(min=1, metavar="N", help="The longest conversation that is read.")] = 256_000_000,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what an earlier run did, and replace outputs that are there.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing: say from a sample what it would come to.")] = False,
    sample: Annotated[int, typer.Option(min=1, help="Conversations of that sample.")] = 200,
    as_json: AsJson = False,
) -> int:
    """Compact files and directories of conversations, in bounded memory, and so that it can be gone on with.

    Beside OUT stand OUT.manifest.jsonl, what is done, and OUT.errors.jsonl, bad conversations with their place and reason.
    After a crash, or Ctrl-C, run the same again. Exit code 1: a conversation was bad, an input could not be read, or there were
    too many errors; what could be written is.
    """
    if engine not in _ENGINES:
        raise ConfigurationError(f"--engine {engine}: there is no such engine; use one of {', '.join(_ENGINES)}")
    plan = plan_of(preset, window, budget, reserve_output, pipeline)
    _, note = counter_named(counter)
    priced = None if model is None else prices_of(model, prices)
    options: dict[str, Any] = {
        "counter": counter,
        "format": format,
        "budget": plan.budget,
        "window": plan.window,
        "column": column,
    }
    if dry_run:
        found = estimate(inputs, plan.strategy, sample=sample, strict=strict, max_bytes=max_bytes, **options)
        show_estimate(found, priced, note, as_json=as_json)
        return ExitCode.FOUND if found.sample.bad or found.failed else ExitCode.DONE
    limits = Limits(concurrency=concurrency, requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
    made = _ray(limits, workers, address) if engine == "ray" else workers
    with progress_shown(priced) as on_progress, _stopped_gently() as stop:
        report = compact_files(
            list(inputs),
            output,
            plan.strategy,
            **options,
            to=to,
            workers=made,
            limits=limits,
            strict=strict,
            max_errors=max_errors,
            max_bytes=max_bytes,
            restart=restart,
            on_progress=on_progress,
            stop=stop,
        )
    if as_json:
        write_json(report, priced)
    else:
        show_report(report, _what(plan), priced, note)
    if report.outcome == "interrupted":
        complain("interrupted; what is finished is kept: run the same again to go on")
        return ExitCode.INTERRUPTED
    return ExitCode.DONE if report.is_well else ExitCode.FOUND


def _what(plan: Plan) -> str:
    """What is done, on one line."""
    return safe(repr(plan.strategy), 400)


def _ray(limits: Limits, workers: int | None, address: str | None) -> Any:
    from ..batch.ray import ray_workers

    return ray_workers(workers, limits=limits, address=address)


@contextlib.contextmanager
def _stopped_gently() -> Generator[Callable[[], bool]]:
    """Ctrl-C asks to stop; a second one stops."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(*_: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)
        sys.stderr.write("compaction: finishing what is under way; Ctrl-C again to stop at once\n")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
