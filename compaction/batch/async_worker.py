"""The work on a slice whose strategy awaits summaries: several conversations are in progress at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import anyio

from ..errors import CompactionError
from .chunks import Chunk
from .input_files import FileKind
from .job import Job, compact_row_async
from .report import BatchCounts
from .slice_worker import SliceResult, WorkerConfig, compact_chunks, not_a_row
from .slices import Slice

_ROWS: Final = 4_096


class SliceInterrupted(CompactionError):
    """A slice was left unfinished because the batch was stopped; conversations in progress were finished."""


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

    At most `_ROWS` conversations are in memory at a time; the next ones are read when these are finished.

    Raises:
        SliceInterrupted: If ``stop`` returned true; conversations in progress are finished first.
    """

    async def compacted(chunk: Chunk, counts: BatchCounts) -> list[Any]:
        return await compact_chunk_async(config.job, chunk, counts, capacity, stop)

    return await compact_chunks(config, slice, kind, ended, compacted, rows=_ROWS)


async def compact_chunk_async(
    job: Job, chunk: Chunk, counts: BatchCounts, capacity: anyio.CapacityLimiter, stop: Callable[[], bool] = lambda: False
) -> list[Any]:
    """Compact the conversations of a chunk, as many at a time as the capacity allows, and return them in order.

    Raises:
        SliceInterrupted: If ``stop`` returned true before the last one was started.
    """
    written: list[Any] = [not_a_row(row, job, counts) for row in chunk.rows]

    async def compact_one(place: int, row: Any, borrower: object) -> None:
        try:
            written[place] = await compact_row_async(job, row, counts)
        finally:
            capacity.release_on_behalf_of(borrower)

    try:
        async with anyio.create_task_group() as tasks:
            for place, row in enumerate(chunk.rows):
                if written[place] is None:
                    borrower = object()
                    await capacity.acquire_on_behalf_of(borrower)
                    if stop():
                        capacity.release_on_behalf_of(borrower)
                        break
                    tasks.start_soon(compact_one, place, row, borrower)
    except BaseExceptionGroup as group:
        error: Any = group
        while isinstance(error, BaseExceptionGroup):
            error = cast("Any", error).exceptions[0]
        raise error from None
    if None in written:
        raise SliceInterrupted("the batch was stopped")
    return written
