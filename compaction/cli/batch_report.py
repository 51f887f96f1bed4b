"""The output of ``compaction batch``: the progress bar, the final table, and the estimate of a dry run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator

import attrs

from ..batch import BatchCounts, BatchEstimate, BatchProgress, BatchReport
from ..models import ModelPrices
from .printing import (
    Column,
    number_columns,
    open_console,
    percent,
    plural,
    print_json,
    print_lines,
    print_table,
    progress_line,
)

_MAX_ITEMS = 5
_SIZE_COLUMNS = (Column(""), *number_columns("before", "after", "left"))


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


def show_report(report: BatchReport, what: str, prices: ModelPrices | None, note: str | None, *, as_json: bool) -> None:
    """Print the final table and lines of a batch."""
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


def show_estimate(found: BatchEstimate, prices: ModelPrices | None, note: str | None, *, as_json: bool) -> None:
    """Print the estimate of a dry run."""
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
