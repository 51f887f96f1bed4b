"""One slice, done: read, compacted and written as a part. What a worker process, a task that awaits or a Ray actor runs."""

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
from .chunks import Chunk, chunks_of
from .job import Bad, Job, handle, handle_async
from .lines import Line, Oversized
from .parts import PartFiles, sealed
from .slices import Slice, reading
from .sources import Kind
from .tally import Tally

__all__ = ["Abandoned", "Done", "Order", "handled_async", "work", "work_async"]

_ROWS: Final = 128


class Abandoned(CompactionError):
    """A slice was left before its end because somebody asked to stop; the conversations under way were finished."""


@attrs.frozen
class Order:
    """What a worker is told besides the slice.

    Args:
        job: What is to be done to each conversation.
        parts: The folder of the parts.
    """

    job: Job
    parts: Path


@attrs.frozen
class Done:
    """A slice that is finished.

    Args:
        key: Its input and number.
        size: Bytes of its part.
        errors: Bytes of its bad conversations.
        weight: Bytes of the input it stands for, as stored.
        tally: What was done.
    """

    key: tuple[int, int]
    size: int
    errors: int
    weight: int
    tally: Tally


def work(order: Order, slice: Slice, kind: Kind, ended: bool) -> Done:
    """Do a slice.

    Args:
        order: What is to be done.
        slice: To what.
        kind: How its part is stored.
        ended: Whether each line is to end as one.

    Raises:
        UnreadableFile: If it cannot be read.
        UnwritableFile: If its part cannot be written.
        ConfigurationError: If no conversation could be compacted like this.
    """
    job, tally, began = order.job, Tally(), time.process_time()
    with _Part(order, slice, kind) as part:
        for chunk in _chunks(slice, job, _ROWS, ended):
            part.put(chunk, [_oddity(row, job, tally) or handle(job, row, tally) for row in chunk.rows], tally)  # type: ignore[arg-type]
    tally.seconds = time.process_time() - began
    return part.done(tally)


async def work_async(
    order: Order,
    slice: Slice,
    kind: Kind,
    ended: bool,
    limiter: anyio.CapacityLimiter,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Done:
    """`work`, for a strategy that awaits: so many conversations at a time as the limiter has room for.

    All conversations of the slice are in memory meanwhile.

    Raises:
        Abandoned: If it was asked to stop, once the conversations under way are done.
    """
    job, tally = order.job, Tally()
    with _Part(order, slice, kind) as part:
        for chunk in _chunks(slice, job, 1 << 20, ended):
            part.put(chunk, await handled_async(job, chunk, tally, limiter, stop), tally)
    return part.done(tally)


def _chunks(slice: Slice, job: Job, rows: int, ended: bool) -> Iterator[Chunk]:
    """The slice, some rows at a time. What goes wrong while they are written is no fault of the input, and passes outside."""
    with reading(slice.source.path):
        yield from chunks_of(slice, job.column, rows, job.max_bytes, ended=ended)


async def handled_async(
    job: Job, chunk: Chunk, tally: Tally, limiter: anyio.CapacityLimiter, stop: Callable[[], bool] = lambda: False
) -> list[Any]:
    """The conversations of a chunk, as many at a time as the limiter has room for, in their order.

    Raises:
        Abandoned: If it was asked to stop before the last of them was begun.
    """
    handled: list[Any] = [_oddity(row, job, tally) for row in chunk.rows]

    async def one(place: int, row: Any, ticket: object) -> None:
        try:
            handled[place] = await handle_async(job, row, tally)
        finally:
            limiter.release_on_behalf_of(ticket)

    with _first_of_group():
        async with anyio.create_task_group() as tasks:
            for place, row in enumerate(chunk.rows):
                if handled[place] is None:
                    ticket = object()
                    await limiter.acquire_on_behalf_of(ticket)
                    if stop():
                        limiter.release_on_behalf_of(ticket)
                        break
                    tasks.start_soon(one, place, row, ticket)
    if None in handled:
        raise Abandoned("it was asked to stop")
    return handled


@contextlib.contextmanager
def _first_of_group() -> Generator[None]:
    """The first error of a task group, by itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: Any = group
        while isinstance(error, BaseExceptionGroup):
            error = cast("Any", error).exceptions[0]
        raise error from None


def _oddity(row: Any, job: Job, tally: Tally) -> Any:
    """What to write of a row that is no conversation; ``None`` if it is one."""
    if isinstance(row, bytes):
        return row
    size = row.size if isinstance(row, Oversized) else len(row.text) if isinstance(row, Line) else 0
    if size > job.max_bytes + 1:
        tally.conversations += 1
        tally.bad += 1
        return Bad(f"it has {size:,} bytes, more than the {job.max_bytes:,} that are read; raise max_bytes", "Oversized")
    return None


class _Part:
    """Holds state: the part of a slice while it is written."""

    def __init__(self, order: Order, slice: Slice, kind: Kind) -> None:
        self._files = PartFiles(order.parts, slice.key)
        self._slice = slice
        self._kind: Kind = kind
        self._opened = contextlib.ExitStack()
        self._errors: list[bytes] = []
        self._lines = 0

    def __enter__(self) -> Self:
        self._out = self._opened.enter_context(self._files.writing(self._kind))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._opened.__exit__(kind, error, traceback)

    def put(self, chunk: Chunk, handled: Sequence[Any], tally: Tally) -> None:
        """Write what became of a chunk."""
        if self._kind == "parquet":
            table = chunk.table(handled)
            self._out.write(table)
            tally.bytes_written += table.nbytes
        else:
            text = chunk.text(handled)
            self._out.write(text)
            tally.bytes_written += len(text)
        for place, each in enumerate(handled, 1):
            if isinstance(each, Bad):
                entry = {"line": self._lines + place, "reason": each.reason, "error": each.error, **chunk.original(place - 1)}
                self._errors.append(json.dumps(entry).encode() + b"\n")
        self._lines += len(handled)

    def done(self, tally: Tally) -> Done:
        """What there is to say of it, after the part is closed."""
        errors = b"".join(self._errors)
        if errors:
            with sealed(self._files.errors) as stream:
                stream.write(errors)
        tally.lines = self._lines
        tally.bytes_read = self._slice.weight if self._slice.source.kind == "parquet" else self._slice.end - self._slice.start
        return Done(self._slice.key, self._files.rows.stat().st_size, len(errors), self._slice.weight, tally)
