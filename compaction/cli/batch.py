"""``compaction batch``: compact files and directories of conversations, resumable after a crash."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from ..batch import Job, Limits, compact_files, estimate, ray_workers
from ..errors import ConfigurationError
from ..models import prices_of
from . import options
from .batch_report import progress_bar, show_estimate, show_report
from .compact import plan_compaction
from .exit_codes import ExitCode, print_error
from .printing import printable

_GRACE_SECONDS: Final = 1.0


def batch_command(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...", show_default=False, help="Files or directories: .jsonl, .jsonl.gz, .jsonl.zst, .parquet."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A directory, or one file if its name has one of these endings.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"] | None,
        typer.Option(metavar="KIND", help="The kind of output: jsonl, jsonl.gz, jsonl.zst, parquet."),
    ] = None,
    preset: options.PresetName = None,
    pipeline: options.PipelineFile = None,
    window: options.Window = None,
    budget: options.Budget = None,
    reserve_output: options.ReserveOutput = None,
    counter: options.CounterName = "auto",
    format: options.FormatName = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="The column of a Parquet file with the messages.")] = "messages",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes; by default one per processor.", show_default=False)
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(metavar="NAME", help="local, or ray: actors on a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="With --engine ray: the cluster; by default the environment's."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Conversations that wait for a summarizer at the same time.")] = 16,
    requests_per_minute: Annotated[float | None, typer.Option(metavar="N", help="Limit for summary requests.")] = None,
    tokens_per_minute: Annotated[
        int | None,
        typer.Option(parser=options.parse_size, metavar="SIZE", help="Limit for tokens of requests and answers."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model whose prices apply to summaries; in a dry run also to those that a digest would write.",
            show_default=False,
        ),
    ] = None,
    models: options.ModelTableFile = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop at the first bad conversation; broken rules and missed targets count as bad."),
    ] = False,
    max_errors: Annotated[
        int | None,
        typer.Option(min=0, help="Stop after more bad conversations; by default never.", show_default=False),
    ] = None,
    max_bytes: Annotated[
        int, typer.Option(min=1, metavar="N", help="The largest conversation that is read, in bytes.")
    ] = 256_000_000,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Follow symbolic links in input directories; else they are ignored.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard the work of an earlier run and replace existing outputs.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; estimate the result from a sample.")] = False,
    sample: Annotated[int, typer.Option(min=1, help="Conversations in that sample.")] = 200,
    as_json: options.AsJson = False,
) -> int:
    """Compact files and directories of conversations in bounded memory.

    After a crash or Ctrl-C, run the same command again to resume. Beside OUT, OUT.manifest.json describes the batch, and
    OUT.errors.jsonl lists the bad conversations with line and reason. Exit code 1: a conversation was bad, an input could
    not be read, or there were too many errors; the rest of the output is written.
    """
    if address is not None and engine != "ray":
        raise ConfigurationError(f"--address {address}: only --engine ray uses a cluster; pass it too, or leave --address out")
    plan = plan_compaction(preset, window, budget, reserve_output, pipeline, models=models)
    _, note = options.find_counter(counter)
    priced = None if model is None else prices_of(model, models)
    job = Job(
        plan.strategy,
        counter=counter,
        format=format,
        budget=plan.budget,
        window=plan.window,
        column=column,
        max_bytes=max_bytes,
        strict=strict,
        keys=options.signing_keys(),
    )
    if dry_run:
        estimated = estimate(inputs, job, sample=sample, follow_links=follow_links, count_digests=priced is not None)
        show_estimate(estimated, priced, note, as_json=as_json)
        return ExitCode.FOUND if estimated.sample.bad or estimated.failed else ExitCode.DONE
    limits = Limits(concurrency=concurrency, requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
    pool = ray_workers(workers, limits=limits, address=address) if engine == "ray" else workers
    with progress_bar(priced) as on_progress, _stop_on_signals() as stopped:
        try:
            report = compact_files(
                list(inputs),
                output,
                job,
                to=to,
                workers=pool,
                limits=limits,
                max_errors=max_errors,
                follow_links=follow_links,
                restart=restart,
                on_progress=on_progress,
                stop=lambda: bool(stopped),
            )
        except KeyboardInterrupt:
            report = None
    if report is None or report.outcome == "interrupted":
        print_error("interrupted; finished work is kept: run the same again to resume")
        return stopped[0] if stopped else ExitCode.INTERRUPTED
    show_report(report, printable(repr(plan.strategy), 400), priced, note, as_json=as_json)
    return ExitCode.DONE if report.is_well else ExitCode.FOUND


@contextlib.contextmanager
def _stop_on_signals() -> Generator[list[int]]:
    """Yield a list that gets the exit code of Ctrl-C or SIGTERM, so that a batch can end in its own time.

    One second later, or at the next of these signals, the batch ends by `KeyboardInterrupt`. A worker may need minutes for
    its slice; the next run does again what is unfinished then. Outside the main thread the list stays empty.
    """
    codes: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield codes
        return
    timed = hasattr(signal, "setitimer")

    def stop(number: int, _: object) -> None:
        codes.append(128 + number)
        for each, handler in before.items():
            signal.signal(each, handler)
        if timed:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, _GRACE_SECONDS)
        again = "Ctrl-C" if number == signal.SIGINT else "the signal"
        print_error(f"stopping: what is finished within {_GRACE_SECONDS:g} s is kept; {again} again stops at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    alarm: Any = signal.getsignal(signal.SIGALRM) if timed else None
    try:
        yield codes
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)
        for number, handler in before.items():
            signal.signal(number, handler)
