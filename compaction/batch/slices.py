"""The slices of an input: a worker compacts one slice at a time, and a crash loses unfinished slices only.

The cuts depend only on the input and the slice size, so a later run makes the same cuts. A plain file is cut by seeking, and
each worker reads its slice itself. A compressed file can only be read from its start, so its text is sent to the workers.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import attrs

from ..errors import ConfigurationError, UnreadableFile
from ..files import unreadable_errors
from .input_files import MAGIC_BYTES, FileKind, InputFile, binary_kind
from .job import Job
from .rows import (
    BUFFER_BYTES,
    Chunk,
    JsonLine,
    LineChunk,
    MessageColumn,
    OversizedLine,
    TableChunk,
    arrow_module,
    bounded_lines,
    open_parquet,
)


@attrs.frozen
class Slice:
    """A part of an input."""

    source: InputFile
    number: int  # its number in the input, from 0
    start: int  # its first byte; for a table, its first row group; 0 if the input is compressed
    end: int  # the byte, or row group, after its last; the bytes of its text if the input is compressed
    weight: int  # bytes of the file that it covers, as stored
    text: bytes | None = attrs.field(default=None, repr=False)  # the text, if the input is compressed
    oversized: int = 0  # the size in bytes of its only line, if that line is too long to be read
    part_kind: FileKind = "jsonl"  # how its part file is stored
    add_line_end: bool = False  # whether each line is written with a line end even if it had none

    @property
    def key(self) -> tuple[int, int]:
        """The number of the input and the number of the slice; unique in a batch."""
        return self.source.number, self.number


def cut_slices(source: InputFile, size: int, max_line: int) -> Iterator[Slice]:
    """Yield the slices of an input, each of about ``size`` bytes of text; a line over ``max_line`` bytes is not read."""
    with unreadable_errors(source.path):
        if source.kind == "parquet":
            yield from _table_slices(source, size)
        elif source.kind == "jsonl":
            yield from _plain_slices(source, size)
        else:
            yield from _compressed_slices(source, size, max_line)


def _plain_slices(source: InputFile, size: int) -> Iterator[Slice]:
    """Yield slices that end with the line that has the byte at which they have the size."""
    with Path(source.path).open("rb") as stream:
        if (stored := binary_kind(stream.read(MAGIC_BYTES))) is not None:
            raise UnreadableFile(f"{source.path}: it is {stored}, although its name says jsonl; rename it")
        start = number = 0
        while start < source.size:
            stream.seek(start + size - 1)
            next(bounded_lines(stream, BUFFER_BYTES), None)
            end = min(stream.tell(), source.size)
            yield Slice(source, number, start, end, weight=end - start)
            start, number = end, number + 1


def _compressed_slices(source: InputFile, size: int, max_line: int) -> Iterator[Slice]:
    read = 0
    with _decompressed(source) as (stream, tell):
        for number, (text, oversized) in enumerate(_texts(bounded_lines(stream, max_line), size)):
            before, read = read, tell()
            yield Slice(source, number, 0, oversized or len(text), weight=read - before, text=text, oversized=oversized)


def _texts(lines: Iterator[bytes | OversizedLine], size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each slice and 0, or no text and the size of an oversized line."""
    held = bytearray()
    for line in lines:
        if isinstance(line, bytes):
            held += line
            if len(held) < size:
                continue
        if held:
            yield bytes(held), 0
            held.clear()
        if isinstance(line, OversizedLine):
            yield b"", line.size
    if held:
        yield bytes(held), 0


@contextlib.contextmanager
def _decompressed(source: InputFile) -> Generator[tuple[IO[bytes], Any]]:
    """Open the text of a compressed file, with a function that returns how many bytes of the file have been read."""
    with Path(source.path).open("rb") as file:
        if source.kind == "jsonl.gz":
            with gzip.GzipFile(fileobj=file) as text:
                yield io.BufferedReader(text, BUFFER_BYTES), file.tell
            return
        arrow = arrow_module()
        with arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd") as text:
            yield io.BufferedReader(text, BUFFER_BYTES), file.tell


def _table_slices(source: InputFile, size: int) -> Iterator[Slice]:
    """Yield slices of whole row groups: several small ones, or a single large one."""
    with open_parquet(source.path) as table:
        metadata, groups = table.metadata, table.metadata.num_row_groups
        if not groups:
            yield Slice(source, 0, 0, 0, weight=source.size)
        start = held = read = number = 0
        for end in range(1, groups + 1):
            held += metadata.row_group(end - 1).total_byte_size
            if held >= size or end == groups:
                position = source.size * end // groups
                yield Slice(source, number, start, end, weight=position - read)
                start, held, read, number = end, 0, position, number + 1


# -------------------------------------------------------------------- reading


def read_chunks(slice: Slice, job: Job, max_rows: int) -> Iterator[Chunk]:
    """Yield a slice some rows at a time; an error that the consumer raises is not taken for an error of the input."""
    with unreadable_errors(slice.source.path):
        if slice.source.kind == "parquet":
            yield from _table_chunks(slice, job, max_rows)
        else:
            lines = _lines(slice, job.max_bytes)
            while taken := list(itertools.islice(lines, max_rows)):
                yield LineChunk(
                    [
                        line if isinstance(line, OversizedLine) or line.isspace() else JsonLine(line, slice.add_line_end)
                        for line in taken
                    ]
                )


def _lines(slice: Slice, max_bytes: int) -> Iterator[bytes | OversizedLine]:
    if slice.oversized:
        yield OversizedLine(slice.oversized)
    elif slice.text is not None:
        yield from io.BytesIO(slice.text)  # one line at a time: a slice may have millions of empty ones
    else:
        with Path(slice.source.path).open("rb", buffering=BUFFER_BYTES) as stream:
            stream.seek(slice.start)
            left = slice.end - slice.start
            for line in bounded_lines(stream, max_bytes):
                yield line
                left -= line.size if isinstance(line, OversizedLine) else len(line)
                if left <= 0:
                    return


def _table_chunks(slice: Slice, job: Job, max_rows: int) -> Iterator[Chunk]:
    arrow = arrow_module()
    with open_parquet(slice.source.path) as table:
        try:
            found = MessageColumn.of(table.schema_arrow, job.column)
        except ConfigurationError as error:
            raise UnreadableFile(f"{slice.source.path}: {error}") from error
        if not table.metadata.num_rows:
            empty = table.schema_arrow.empty_table()
            yield TableChunk(empty, found, [])
            return
        for batch in table.iter_batches(max_rows, row_groups=range(slice.start, slice.end), use_threads=False):
            rows = arrow.Table.from_batches([batch])
            yield TableChunk(rows, found, found.rows(rows.column(found.name), job.max_bytes))
