"""The work on one slice: `compact_slice` reads it, compacts its conversations, and writes its part and its record."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from ..errors import CompactionError, ConfigurationError, InputError, StateError, SyncDriverError
from ..run import compact, compact_sync
from .input_files import FileKind
from .job import Job
from .parts import PartFiles, SliceResult
from .rate_limits import RateLimiter, rate_limited
from .report import BatchCounts
from .rows import BadConversation, Chunk, OversizedLine, Row, Written
from .slices import Slice, read_chunks
from .unchanged import count_unchanged

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

    def limited(self, limiter: RateLimiter, cache: str) -> WorkerConfig:
        """Return it with summarizers that wait for a rate limiter; a file of that name, among the parts, keeps each answer."""
        return attrs.evolve(self, job=rate_limited(self.job, limiter, self.parts / cache))


async def compact_slice(
    config: WorkerConfig, slice: Slice, *, limiter: RateLimiter | None = None, stop: Callable[[], bool] = _never
) -> SliceResult:
    """Compact a slice, and write its part and its record.

    With the rate limiter of the job's summarizers, several conversations are in progress at a time, and its usage is counted.
    Without, they come one after the other, and nothing is awaited.

    Raises:
        SliceInterrupted: If ``stop`` returned true: no other conversation is started, and the slice is left unfinished.
        UnreadableFile: If the slice cannot be read.
        UnwritableFile: If its part cannot be written.
        ConfigurationError: If the job fails for every conversation.
    """
    began, counts, files = time.process_time(), BatchCounts(), PartFiles(config.parts, slice.key)
    with files.open_rows(slice.part_kind, slice.source.path) as out:
        part = _PartWriter(out, slice.part_kind, counts, slice.weight)
        for chunk in read_chunks(slice, config.job, _ROWS if limiter is None else _WAITING_ROWS):
            part.write(chunk, await compact_chunk(config.job, chunk, counts, limiter=limiter, stop=stop))
    counts.bytes_read = slice.weight if slice.source.kind == "parquet" else slice.end - slice.start
    if limiter is None:
        counts.seconds = time.process_time() - began
    else:
        counts.add(limiter.take_usage())
    return files.finish(slice, part.entries(), counts)


async def compact_chunk(
    job: Job, chunk: Chunk, counts: BatchCounts, *, limiter: RateLimiter | None = None, stop: Callable[[], bool] = _never
) -> list[Written]:
    """Compact the conversations of a chunk as `compact_slice` does, and return in order what to write for each."""
    written: dict[int, Written] = {}  # by place in the chunk
    conversations: list[tuple[int, Row]] = []
    for place, row in enumerate(chunk.rows):
        if isinstance(row, bytes):
            written[place] = row
        elif isinstance(row, OversizedLine):
            reason = f"it has {row.size:,} bytes, more than the {job.max_bytes:,} that are read; raise max_bytes"
            written[place] = BadConversation(reason, "Oversized")
        else:
            conversations.append((place, row))
    counts.lines += len(chunk.rows)
    counts.conversations += sum(not isinstance(row, bytes) for row in chunk.rows)
    if limiter is None:
        for place, row in itertools.takewhile(lambda _: not stop(), conversations):
            written[place] = await compact_row(job, row, counts, sync=True)
    else:
        written |= await _compact_together(job, conversations, counts, limiter, stop)
    if len(written) < len(chunk.rows):
        raise SliceInterrupted("the batch was stopped")
    counts.bad += sum(isinstance(each, BadConversation) for each in written.values())
    return [written[place] for place in range(len(chunk.rows))]


async def _compact_together(
    job: Job, rows: list[tuple[int, Row]], counts: BatchCounts, limiter: RateLimiter, stop: Callable[[], bool]
) -> dict[int, Written]:
    """Compact as many conversations at a time as the limits allow; the first error ends all."""
    written: dict[int, Written] = {}
    failed: list[Exception] = []

    async def compact_one(place: int, row: Row) -> None:
        async with limiter.capacity:  # first come, first served
            if not stop():
                try:
                    written[place] = await compact_row(job, row, counts)
                except Exception as error:  # raised below: a task group would raise it in an exception group
                    failed.append(error)
                    tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for place, row in rows:
            tasks.start_soon(compact_one, place, row)
    if failed:
        raise failed[0]
    return written


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

    def write(self, chunk: Chunk, written: Sequence[Written]) -> None:
        """Write the compacted rows of a chunk, which are counted, and keep an error entry for each bad conversation."""
        rows: Any = chunk.table(written) if self.kind == "parquet" else chunk.text(written)
        self.counts.bytes_written += rows.nbytes if self.kind == "parquet" else len(rows)
        self.out(rows)
        for place, each in enumerate(written):
            if isinstance(each, BadConversation) and self._first_unlisted is None:
                line = self.counts.lines - len(written) + place + 1
                entry = {"line": line, "reason": each.reason, "error": each.error, **chunk.original(place)}
                self._size += len(json.dumps(entry)) + 1
                if self._size > max(_MIN_ERROR_BYTES, _ERROR_FACTOR * self.weight):
                    self._first_unlisted = line
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


# -------------------------------------------------------------------- one conversation


async def compact_row(job: Job, row: Row, counts: BatchCounts, *, sync: bool = False) -> Written:
    """Compact one conversation, and count it unless it is bad.

    If the strategy awaits nothing (``sync``), this coroutine does not either, see `compaction.index.unawaited`.

    Raises:
        ConfigurationError: If the job fails for every conversation.
        SyncDriverError: If the strategy awaits something in spite of ``sync``.
        StateError: If a file that the strategy uses cannot be read or written.
    """
    try:
        messages = row.read()
        if count_unchanged(job, row, messages, counts):
            return row.write(messages, messages)
        options = job.options
        result = compact_sync(messages, job.strategy, **options) if sync else await compact(messages, job.strategy, **options)
        if (reason := job.objection(messages, result)) is not None:
            return BadConversation(reason, "strict")
        written = row.write(messages, result.messages)
    except (ConfigurationError, SyncDriverError, StateError):
        raise  # every other conversation would raise it too
    except RecursionError:
        return BadConversation("it is nested too deeply; write the inner part as a string", "RecursionError")
    except Exception as error:
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        return BadConversation(reason, type(error).__name__)
    counts.count(result)
    return written
