"""The work on one slice: read it, compact its conversations and write its part file. Every kind of worker does this."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from ..files import unreadable_errors
from ..run import unawaited
from .chunks import Chunk, read_chunks
from .input_files import FileKind
from .job import BadConversation, Job, compact_row
from .json_lines import JsonLine, OversizedLine
from .part_files import PartFiles, atomic_writer
from .report import BatchCounts
from .slices import Slice

_ROWS: Final = 128

_MIN_ERROR_BYTES: Final = 262_144
_ERROR_FACTOR: Final = 4
"""A slice lists its bad conversations in at most this many times its bytes as stored, or in 256 KiB if that is more. An entry
is longer than its conversation, and a few kilobytes of a compressed file can hold millions of bad lines."""


@attrs.frozen
class WorkerConfig:
    """The configuration of a worker.

    Args:
        job: The job.
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
        tally: The counts of its conversations.
    """

    key: tuple[int, int]
    size: int
    errors: int
    weight: int
    tally: BatchCounts


def compact_slice(config: WorkerConfig, slice: Slice, kind: FileKind, ended: bool) -> SliceResult:
    """Compact a slice.

    Args:
        config: The configuration.
        slice: The slice.
        kind: How its part file is stored.
        ended: Whether each line is written with a line end even if it had none.

    Raises:
        UnreadableFile: If the slice cannot be read.
        UnwritableFile: If its part cannot be written.
        ConfigurationError: If the job fails for every conversation.
    """
    began = time.process_time()

    async def compacted(chunk: Chunk, counts: BatchCounts) -> list[Any]:
        job = config.job
        return [not_a_row(row, job, counts) or compact_row(job, row, counts) for row in chunk.rows]  # type: ignore[arg-type]

    result = unawaited(compact_chunks(config, slice, kind, ended, compacted, rows=_ROWS))
    result.tally.seconds = time.process_time() - began
    return result


async def compact_chunks(
    config: WorkerConfig,
    slice: Slice,
    kind: FileKind,
    ended: bool,
    compacted: Callable[[Chunk, BatchCounts], Awaitable[list[Any]]],
    *,
    rows: int,
) -> SliceResult:
    """Compact a slice, some rows at a time.

    Args:
        config: As for `compact_slice`.
        slice: As for `compact_slice`.
        kind: As for `compact_slice`.
        ended: As for `compact_slice`.
        compacted: Returns what to write for each row of a chunk, and counts the conversations.
        rows: The most rows that are in memory at a time.
    """
    counts, files = BatchCounts(), PartFiles(config.parts, slice.key)
    with files.open_rows(kind) as out:
        part = PartWriter(out, kind, counts, slice.weight)
        for chunk in _chunks_of(slice, config.job, rows, ended):
            part.write(chunk, await compacted(chunk, counts))
    return _slice_result(files, slice, part.entries(), counts)


def _chunks_of(slice: Slice, job: Job, rows: int, ended: bool) -> Iterator[Chunk]:
    """Yield a slice some rows at a time; an error that the consumer raises is not taken for an error of the input."""
    with unreadable_errors(slice.source.path):
        yield from read_chunks(slice, job.column, rows, job.max_bytes, ended=ended)


def not_a_row(row: Any, job: Job, counts: BatchCounts) -> Any:
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


@attrs.define
class PartWriter:
    """Holds state: the part file of a slice while it is written.

    Args:
        out: Writes to the part file.
        kind: How it is stored.
        counts: The counts of the slice.
        weight: Bytes of the input that the slice covers, as stored.
    """

    out: Callable[[Any], object]
    kind: FileKind
    counts: BatchCounts
    weight: int
    _errors: list[bytes] = attrs.field(factory=list[bytes], init=False)
    _size: int = attrs.field(default=0, init=False)
    _unlisted: int = attrs.field(default=0, init=False)
    _first_unlisted: int = attrs.field(default=0, init=False)

    def write(self, chunk: Chunk, written: Sequence[Any]) -> None:
        """Write the compacted rows of a chunk, and keep an error entry for each bad conversation."""
        if self.kind == "parquet":
            rows = chunk.table(written)
            self.counts.bytes_written += rows.nbytes
        else:
            rows = chunk.text(written)
            self.counts.bytes_written += len(rows)
        self.out(rows)
        for place, each in enumerate(written):
            self.counts.lines += 1
            if isinstance(each, BadConversation):
                self._list(each, chunk, place)

    def _list(self, bad: BadConversation, chunk: Chunk, place: int) -> None:
        """Keep the entry of a bad conversation, or only count it if the entries before it are long enough."""
        if not self._unlisted:
            entry = {"line": self.counts.lines, "reason": bad.reason, "error": bad.error, **chunk.original(place)}
            text = json.dumps(entry).encode() + b"\n"
            self._size += len(text)
            if self._size <= max(_MIN_ERROR_BYTES, _ERROR_FACTOR * self.weight):
                self._errors.append(text)
                return
            self._first_unlisted = self.counts.lines
        self._unlisted += 1

    def entries(self) -> list[bytes]:
        """Return the error entries of the slice; one at the end stands for those that are not listed."""
        if not self._unlisted:
            return self._errors
        reason = f"{self._unlisted:,} bad conversations from this line on are not listed; there are too many for their size"
        last = {"line": self._first_unlisted, "reason": reason, "error": "NotListed", "original": None, "count": self._unlisted}
        return [*self._errors, json.dumps(last).encode() + b"\n"]


def _slice_result(files: PartFiles, slice: Slice, errors: Sequence[bytes], counts: BatchCounts) -> SliceResult:
    """Write the error entries of a slice whose part is written, and return its result."""
    if errors:
        with atomic_writer(files.errors) as stream:
            stream.writelines(errors)
    counts.bytes_read = slice.weight if slice.source.kind == "parquet" else slice.end - slice.start
    return SliceResult(slice.key, files.rows.stat().st_size, sum(map(len, errors)), slice.weight, counts)
