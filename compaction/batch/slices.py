"""Slices of bounded size into which an input is cut: a worker compacts one at a time, and a crash loses unfinished ones only.

The cuts depend only on the input and the slice size, so a later run makes the same cuts. A plain file is cut by seeking, and
each worker reads its slice itself. A compressed file can only be read from its start, so its text is sent to the workers.
"""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, Final

import attrs

from ..files import unreadable_errors
from .arrow_columns import arrow_module, open_parquet
from .input_files import InputFile
from .json_lines import OversizedLine, bounded_lines

_BUFFER: Final = 1 << 20


@attrs.frozen
class Slice:
    """A part of an input.

    Args:
        source: The input.
        number: Its number in the input, from 0.
        start: Its first byte; for a table, its first row group.
        end: The byte, or row group, after its last.
        weight: Bytes of the file that it covers, as stored.
        text: The text, if the input is compressed.
        oversized: The size in bytes of its only line, if that line is too long to be read.
    """

    source: InputFile
    number: int
    start: int
    end: int
    weight: int
    text: bytes | None = attrs.field(default=None, repr=False)
    oversized: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """The number of the input and the number of the slice; unique in a batch."""
        return self.source.number, self.number


def cut_slices(source: InputFile, size: int, max_line: int) -> Iterator[Slice]:
    """Yield the slices of an input, in order.

    Args:
        source: The input.
        size: The approximate bytes of text in a slice.
        max_line: The longest line that is read, in bytes.

    Raises:
        UnreadableFile: If the input cannot be read to its end; the slices before the damage were yielded.
    """
    with unreadable_errors(source.path):
        if source.kind == "parquet":
            yield from _table_slices(source, size)
        elif source.kind == "jsonl":
            yield from _plain_slices(source, size)
        else:
            yield from _compressed_slices(source, size, max_line)


def _plain_slices(source: InputFile, size: int) -> Iterator[Slice]:
    with Path(source.path).open("rb", buffering=0) as stream:
        start = number = 0
        while start < source.size:
            end = min(_line_end(stream, start + size), source.size)
            yield Slice(source, number, start, end, end - start)
            start, number = end, number + 1


def _line_end(stream: IO[bytes], at: int) -> int:
    """Return the end of the line that contains the byte before ``at``."""
    stream.seek(at - 1)
    at -= 1
    while chunk := stream.read(_BUFFER):
        found = chunk.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(chunk)
    return at


def _compressed_slices(source: InputFile, size: int, max_line: int) -> Iterator[Slice]:
    read = start = 0
    with _decompressed(source) as (stream, tell):
        for number, (text, oversized) in enumerate(_texts(bounded_lines(stream, max_line), size)):
            before, read = read, tell()
            end = start + (oversized or len(text))
            yield Slice(source, number, start, end, read - before, text, oversized)
            start = end


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
                yield io.BufferedReader(text, _BUFFER), file.tell
            return
        arrow = arrow_module()
        with arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd") as text:
            yield io.BufferedReader(text, _BUFFER), file.tell


def _table_slices(source: InputFile, size: int) -> Iterator[Slice]:
    """Yield slices of whole row groups: several small ones, or a single large one."""
    with open_parquet(source.path) as table:
        groups = table.metadata
        start = number = held = read = 0
        if not groups.num_row_groups:
            yield Slice(source, 0, 0, 0, source.size)
        for group in range(groups.num_row_groups):
            held += groups.row_group(group).total_byte_size
            if held >= size or group == groups.num_row_groups - 1:
                position = source.size * (group + 1) // groups.num_row_groups
                yield Slice(source, number, start, group + 1, position - read)
                start, number, held, read = group + 1, number + 1, 0, position
