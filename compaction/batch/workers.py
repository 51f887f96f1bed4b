"""The work on one slice: `compact_slice` reads it, compacts its conversations, and writes its part and its record."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import anyio
import attrs

from ..errors import CompactionError
from ..files import unreadable_errors
from .chunks import Chunk, read_chunks
from .input_files import FileKind
from .job import BadConversation, Job, compact_row
from .parts import PartFiles, SliceResult
from .rate_limits import RateLimiter
from .report import BatchCounts
from .rows import JsonLine, OversizedLine, size_of
from .slices import Slice

_ROWS: Final = 128  # in memory at a time
_WAITING_ROWS: Final = 4_096  # the same, where conversations wait for a summarizer

_MIN_ERROR_BYTES: Final = 262_144
_ERROR_FACTOR: Final = 4
"""A slice lists its bad conversations in at most this many times its bytes as stored, or in 256 KiB if that is more. An entry
is longer than its conversation, and a few kilobytes of a compressed file can hold millions of bad lines."""


class SliceInterrupted(CompactionError):
    """A slice was left unfinished because the batch was stopped."""


def _never() -> bool:
    return False


@attrs.frozen
class WorkerConfig:
    """The configuration of a worker."""

    job: Job
    parts: Path


async def compact_slice(
    config: WorkerConfig,
    slice: Slice,
    *,
    limiter: RateLimiter | None = None,
    capacity: anyio.CapacityLimiter | None = None,
    stop: Callable[[], bool] = _never,
) -> SliceResult:
    """Compact a slice, and write its part and its record.

    Args:
        config: The configuration of the worker.
        slice: The slice.
        limiter: The rate limiter of the summarizers, whose usage is counted.
        capacity: Limits the conversations in progress at a time; ``None`` for one after the other, without awaiting.
        stop: Returns true to start no other conversation, and leave the slice unfinished.

    Raises:
        SliceInterrupted: If ``stop`` returned true.
        UnreadableFile: If the slice cannot be read.
        UnwritableFile: If its part cannot be written.
        ConfigurationError: If the job fails for every conversation.
    """
    began, counts, files = time.process_time(), BatchCounts(), PartFiles(config.parts, slice.key)
    with files.open_rows(slice.kind) as out:
        part = _PartWriter(out, slice.kind, counts, slice.weight)
        for chunk in _chunks_of(slice, config.job, _ROWS if limiter is None else _WAITING_ROWS):
            part.write(chunk, await compact_chunk(config.job, chunk, counts, capacity=capacity, stop=stop))
    counts.bytes_read = slice.weight if slice.source.kind == "parquet" else slice.end - slice.start
    if limiter is None:
        counts.seconds = time.process_time() - began
    else:
        counts.add(limiter.take_usage())
    return files.finish(slice, part.entries(), counts)


def _chunks_of(slice: Slice, job: Job, rows: int) -> Iterator[Chunk]:
    """Yield a slice some rows at a time; an error that the consumer raises is not taken for an error of the input."""
    with unreadable_errors(slice.source.path):
        yield from read_chunks(slice, job.column, rows, job.max_bytes)


async def compact_chunk(
    job: Job,
    chunk: Chunk,
    counts: BatchCounts,
    *,
    capacity: anyio.CapacityLimiter | None = None,
    stop: Callable[[], bool] = _never,
) -> list[Any]:
    """Compact the conversations of a chunk as `compact_slice` does, and return in order what to write for each."""
    written: list[Any] = [_not_a_row(row, job, counts) for row in chunk.rows]
    waiting = [place for place, done in enumerate(written) if done is None]
    if capacity is None:
        for place in itertools.takewhile(lambda _: not stop(), waiting):
            written[place] = await compact_row(job, cast("Any", chunk.rows[place]), counts, sync=True)
    else:

        async def compact_one(place: int, capacity: anyio.CapacityLimiter) -> None:
            async with capacity:  # first come, first served
                if not stop():
                    written[place] = await compact_row(job, cast("Any", chunk.rows[place]), counts)

        with _first_error():
            async with anyio.create_task_group() as tasks:
                for place in waiting:
                    tasks.start_soon(compact_one, place, capacity)
    if None in written:
        raise SliceInterrupted("the batch was stopped")
    return written


@contextlib.contextmanager
def _first_error() -> Generator[None]:
    """Raise the first error of a task group instead of the group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: Any = group
        while isinstance(error, BaseExceptionGroup):
            error = cast("Any", error).exceptions[0]
        raise error from None


def _not_a_row(row: Any, job: Job, counts: BatchCounts) -> Any:
    """Return what to write for a blank or oversized line; ``None`` for a conversation."""
    if isinstance(row, bytes):
        return row
    size = size_of(row)
    if isinstance(row, OversizedLine) or (isinstance(row, JsonLine) and size - row.text.endswith(b"\n") > job.max_bytes):
        counts.conversations += 1
        counts.bad += 1
        reason = f"it has {size:,} bytes, more than the {job.max_bytes:,} that are read; raise max_bytes"
        return BadConversation(reason, "Oversized")
    return None


@attrs.define
class _PartWriter:
    """Holds state: the part file of a slice while it is written, and the error entries of its bad conversations."""

    out: Callable[[Any], object]
    kind: FileKind
    counts: BatchCounts
    weight: int  # bytes of the input that the slice covers, as stored
    _errors: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    _size: int = 0
    _first_unlisted: int | None = None

    def write(self, chunk: Chunk, written: Sequence[Any]) -> None:
        """Write the compacted rows of a chunk, and keep an error entry for each bad conversation."""
        rows: Any = chunk.table(written) if self.kind == "parquet" else chunk.text(written)
        self.counts.bytes_written += rows.nbytes if self.kind == "parquet" else len(rows)
        self.out(rows)
        for place, each in enumerate(written):
            self.counts.lines += 1
            if isinstance(each, BadConversation) and self._first_unlisted is None:
                entry = {"line": self.counts.lines, "reason": each.reason, "error": each.error, **chunk.original(place)}
                self._size += len(json.dumps(entry)) + 1
                if self._size > max(_MIN_ERROR_BYTES, _ERROR_FACTOR * self.weight):
                    self._first_unlisted = self.counts.lines
                else:
                    self._errors.append(entry)

    def entries(self) -> list[dict[str, Any]]:
        """Return the error entries of the slice; one at the end stands for those that are not listed."""
        if self._first_unlisted is None:
            return self._errors
        unlisted = self.counts.bad - len(self._errors)
        reason = f"{unlisted:,} bad conversations from this line on are not listed; there are too many for their size"
        last = {"line": self._first_unlisted, "reason": reason, "error": "NotListed", "original": None, "count": unlisted}
        return [*self._errors, last]
