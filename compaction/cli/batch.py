"""``compaction batch``: compact files and directories of conversations, resumable after a crash."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import attrs
import typer

from ..batch import BatchCounts, BatchEstimate, BatchProgress, BatchReport, Job, Limits, compact_files, estimate, ray_workers
from ..errors import ConfigurationError
from ..models import ModelPrices, prices_of
from . import options
from .compact import plan_compaction
from .exit_codes import ExitCode, print_error
from .printing import (
    Column,
    number_columns,
    open_console,
    percent,
    plural,
    print_json,
    print_lines,
    print_table,
    printable,
    progress_line,
)

_GRACE_SECONDS: Final = 1.0
_MAX_ITEMS = 5
_SIZE_COLUMNS = (Column(""), *number_columns("before", "after", "left"))


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
        _show_estimate(estimated, priced, note, as_json=as_json)
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
    _show_report(report, printable(repr(plan.strategy), 400), priced, note, as_json=as_json)
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


@contextlib.contextmanager
def progress_bar(prices: ModelPrices | None) -> Generator[Callable[[BatchProgress], object]]:
    """Show the progress of a batch; yields a function that updates it.

    It is drawn when it is updated, not by a thread of its own: a program with one thread can fork its workers.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.table import Column

    words = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    with progress_line(BarColumn(Console(stderr=True).width // 8), words, auto_refresh=False) as update:

        def show(now: BatchProgress) -> None:
            done, total = min(now.bytes_done, now.bytes_total), now.bytes_total
            update(completed=done, total=total, description=_moment(now, prices), refresh=True)

        yield show


def _moment(now: BatchProgress, prices: ModelPrices | None) -> str:
    """Return the progress in words, the most important first: a narrow terminal cuts the end."""
    from rich.filesize import decimal

    tally = now.tally
    time = f"{_duration(now.seconds)} so far" if now.seconds_left is None else f"{_duration(now.seconds_left)} left"
    words = [f"{decimal(now.bytes_done)} of {decimal(now.bytes_total)}", time, plural(tally.conversations, "conversation")]
    words += [plural(tally.bad, "error")] if tally.bad else []
    words += [_usage(tally, prices)] if tally.requests else []
    return ", ".join([*words, f"{_short(tally.tokens_before)} to {_short(tally.tokens_after)} tokens"])


def _show_report(report: BatchReport, what: str, prices: ModelPrices | None, note: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({**report.to_dict(), "dollars": _dollars(report.tally, prices)})
        return
    with open_console(sys.stdout) as console:
        print_table(console, _SIZE_COLUMNS, _sizes(report.tally))
        print_lines(console, _lines(report, what, prices, note))


def _sizes(tally: BatchCounts) -> list[list[str]]:
    pairs = [
        ("tokens", tally.tokens_before, tally.tokens_after),
        ("messages", tally.messages_before, tally.messages_after),
        ("bytes of text", tally.bytes_read, tally.bytes_written),
    ]
    return [[name, f"{before:,}", f"{after:,}", percent(after / before) if before else "-"] for name, before, after in pairs]


def _lines(report: BatchReport, what: str, prices: ModelPrices | None, note: str | None) -> Iterator[str]:
    tally = report.tally
    resumed = ", resumed" if report.resumed else ""
    yield f"{report.outcome}{resumed}: {_counts(tally)}"
    yield f"{_duration(report.seconds)} with {plural(report.workers, 'worker')}; tokens counted by {note or report.counter}"
    yield f"strategy: {what}"
    if tally.uncounted:
        yield f"tokens not counted: {plural(tally.uncounted, 'conversation')}, too small for the strategy and written unchanged"
    if tally.requests:
        yield f"summarizer: {_usage(tally, prices)}"
    yield from _listed("written", [f"{path} ({size:,} bytes)" for path, size in report.outputs.items()])
    yield from _listed("not read, and not written", list(report.failed.values()))
    yield from _listed("ignored", report.foreign)
    if report.errors is not None:
        yield f"bad conversations: {report.errors}"


def _counts(tally: BatchCounts) -> str:
    words = [plural(tally.conversations, "conversation"), f"{tally.changed:,} changed", f"{tally.bad:,} bad"]
    words += [f"{tally.over_target:,} over target"] if tally.over_target else []
    words += [f"{tally.degraded:,} degraded"] if tally.degraded else []
    return ", ".join(words)


def _listed(label: str, items: list[str]) -> Iterator[str]:
    yield from (f"{label}: {item}" for item in items[:_MAX_ITEMS])
    if len(items) > _MAX_ITEMS:
        yield f"{label}: {len(items) - _MAX_ITEMS:,} more; --json lists all"


def _show_estimate(found: BatchEstimate, prices: ModelPrices | None, note: str | None, *, as_json: bool) -> None:
    whole, sample = found.whole, found.sample
    if as_json:
        print_json({**attrs.asdict(found), "whole": whole, "dollars": _dollars(whole, prices), "note": note})
        return
    with open_console(sys.stdout) as console:
        print_table(console, _SIZE_COLUMNS, _sizes(whole)[:2])
        share = percent(found.bytes_sampled / found.bytes_total) if found.bytes_total else "all"
        lines = [
            f"from a sample of {plural(sample.conversations, 'conversation')}, {share} of the input; nothing was written",
            f"estimate for all: {_counts(whole)}",
            f"time: about {_duration(whole.seconds)} of one processor{f'; {note}' if note else ''}",
        ]
        if sample.requests:
            lines.append(f"requests to a summarizer: {_usage(whole, prices)}; the longest possible answers are assumed")
        print_lines(console, [*lines, *(f"not read: {reason}" for reason in found.failed.values())])


def _usage(tally: BatchCounts, prices: ModelPrices | None) -> str:
    words = (
        f"{plural(tally.requests, 'request')}, {_short(tally.prompt_tokens)} tokens in, {_short(tally.completion_tokens)} out"
    )
    dollars = _dollars(tally, prices)
    return words if prices is None else f"{words}, ${dollars:,.2f} at the prices of {prices.model}, {prices.date}"


def _dollars(tally: BatchCounts, prices: ModelPrices | None) -> float | None:
    return None if prices is None else prices.dollars(fresh=tally.prompt_tokens, output=tally.completion_tokens)


def _short(number: int) -> str:
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)


def _duration(seconds: float) -> str:
    """Return a time in words.

    >>> _duration(4.2), _duration(3_700)
    ('4.2 s', '1:01:40')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
