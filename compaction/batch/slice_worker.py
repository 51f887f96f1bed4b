"""The work on one slice: read it, compact its conversations, write its part file. Every kind of worker runs this."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

import anyio
import attrs

from ..errors import CompactionError
from .chunks import Chunk, read_chunks
from .input_files import FileKind
from .job import BadConversation, Job, compact_row, compact_row_async
from .json_lines import JsonLine, OversizedLine
from .part_files import PartFiles, atomic_writer
from .report import BatchCounts
from .slices import Slice, as_unreadable

_ROWS: Final = 128


class SliceInterrupted(CompactionError):
    """A slice was left unfinished because the batch was asked to stop; conversations in progress were finished."""


@attrs.frozen
class WorkerConfig:
    """The job of a worker, and where its results go.

    Args:
        job: How conversations are compacted.
        parts: The folder of the part files.
    """

    job: Job
    parts: Path


@attrs.frozen
class SliceResult:
    """A finished slice, as the manifest records it.

    Args:
        key: The slice's input and number.
        size: Bytes of its part file.
        errors: Bytes of its file of bad conversations.
        weight: Bytes of the input it covers, as stored.
        tally: What was done.
    """

    key: tuple[int, int]
    size: int
    errors: int
    weight: int
    tally: BatchCounts


def compact_slice(config: WorkerConfig, slice: Slice, kind: FileKind, ended: bool) -> SliceResult:
    """Compact a slice.

    Args:
        config: How to compact it, and where the part goes.
        slice: The slice.
        kind: How its part file is stored.
        ended: Whether each line is written with a line end even if it had none.

    Raises:
        UnreadableFile: If the slice cannot be read.
        UnwritableFile: If its part cannot be written.
        ConfigurationError: If the job cannot work for any conversation.
    """
    job, counts, began = config.job, BatchCounts(), time.process_time()
    with _PartWriter(config, slice, kind) as part:
        for chunk in _chunks(slice, job, _ROWS, ended):
            part.write(chunk, [_not_a_row(row, job, counts) or compact_row(job, row, counts) for row in chunk.rows], counts)  # type: ignore[arg-type]
    counts.seconds = time.process_time() - began
    return part.result(counts)


async def compact_slice_async(
    config: WorkerConfig,
    slice: Slice,
    kind: FileKind,
    ended: bool,
    capacity: anyio.CapacityLimiter,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> SliceResult:
    """Compact a slice with a strategy that awaits, several conversations at a time.

    All conversations of the slice are in memory meanwhile.

    Raises:
        SliceInterrupted: If ``stop`` returned true, once the conversations in progress are finished.
    """
    job, counts = config.job, BatchCounts()
    with _PartWriter(config, slice, kind) as part:
        for chunk in _chunks(slice, job, 1 << 20, ended):
            part.write(chunk, await compact_chunk_async(job, chunk, counts, capacity, stop), counts)
    return part.result(counts)


def _chunks(slice: Slice, job: Job, rows: int, ended: bool) -> Iterator[Chunk]:
    """Read a slice some rows at a time; errors raised while the chunks are written are not errors of the input."""
    with as_unreadable(slice.source.path):
        yield from read_chunks(slice, job.column, rows, job.max_bytes, ended=ended)


async def compact_chunk_async(
    job: Job, chunk: Chunk, counts: BatchCounts, capacity: anyio.CapacityLimiter, stop: Callable[[], bool] = lambda: False
) -> list[Any]:
    """Compact the conversations of a chunk, as many at a time as the capacity allows; return them in order.

    Raises:
        SliceInterrupted: If ``stop`` returned true before the last of them was started.
    """
    written: list[Any] = [_not_a_row(row, job, counts) for row in chunk.rows]

    async def compact_one(place: int, row: Any, borrower: object) -> None:
        try:
            written[place] = await compact_row_async(job, row, counts)
        finally:
            capacity.release_on_behalf_of(borrower)

    with _first_of_group():
        async with anyio.create_task_group() as tasks:
            for place, row in enumerate(chunk.rows):
                if written[place] is None:
                    borrower = object()
                    await capacity.acquire_on_behalf_of(borrower)
                    if stop():
                        capacity.release_on_behalf_of(borrower)
                        break
                    tasks.start_soon(compact_one, place, row, borrower)
    if None in written:
        raise SliceInterrupted("it was asked to stop")
    return written


@contextlib.contextmanager
def _first_of_group() -> Generator[None]:
    """Raise the first error of a task group by itself."""
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
    size = row.size if isinstance(row, OversizedLine) else len(row.text) if isinstance(row, JsonLine) else 0
    if size > job.max_bytes + 1:
        counts.conversations += 1
        counts.bad += 1
        reason = f"it has {size:,} bytes, more than the {job.max_bytes:,} that are read; raise max_bytes"
        return BadConversation(reason, "Oversized")
    return None


class _PartWriter:
    """Holds state: the part file of a slice while it is written."""

    def __init__(self, config: WorkerConfig, slice: Slice, kind: FileKind) -> None:
        self._files = PartFiles(config.parts, slice.key)
        self._slice = slice
        self._kind: FileKind = kind
        self._exit_stack = contextlib.ExitStack()
        self._errors: list[bytes] = []
        self._lines = 0

    def __enter__(self) -> Self:
        self._out = self._exit_stack.enter_context(self._files.open_rows(self._kind))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._exit_stack.__exit__(kind, error, traceback)

    def write(self, chunk: Chunk, written: Sequence[Any], counts: BatchCounts) -> None:
        """Write the compacted rows of a chunk, and note its bad conversations."""
        if self._kind == "parquet":
            table = chunk.table(written)
            self._out.write(table)
            counts.bytes_written += table.nbytes
        else:
            text = chunk.text(written)
            self._out.write(text)
            counts.bytes_written += len(text)
        for place, each in enumerate(written, 1):
            if isinstance(each, BadConversation):
                entry = {"line": self._lines + place, "reason": each.reason, "error": each.error, **chunk.original(place - 1)}
                self._errors.append(json.dumps(entry).encode() + b"\n")
        self._lines += len(written)

    def result(self, counts: BatchCounts) -> SliceResult:
        """Write the bad conversations and return the slice's result; call it after the part is closed."""
        errors = b"".join(self._errors)
        if errors:
            with atomic_writer(self._files.errors) as stream:
                stream.write(errors)
        source = self._slice.source
        counts.lines = self._lines
        counts.bytes_read = self._slice.weight if source.kind == "parquet" else self._slice.end - self._slice.start
        return SliceResult(self._slice.key, self._files.rows.stat().st_size, len(errors), self._slice.weight, counts)
