"""Slices of an input, of bounded size: the unit of work of one worker, and of what is done again after a crash.

The cuts depend on the input and the slice size alone, so a later run makes the same ones. A plain file is cut by seeking, and
workers read their slices themselves; a compressed file can only be read from its start, so its text is sent to the workers.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, Final

import attrs

from ..errors import UnreadableFile
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
        oversized: The size of its only line, if that is too long to be read.
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
        """The input's number and the slice's, unique in a batch."""
        return self.source.number, self.number


def cut_slices(source: InputFile, size: int, max_line: int) -> Iterator[Slice]:
    """Yield the slices of an input, in order.

    Args:
        source: The input.
        size: Bytes of text in a slice, roughly.
        max_line: The longest line that is read, in bytes.

    Raises:
        UnreadableFile: If the input cannot be read to its end; the slices before that have been yielded.
    """
    with as_unreadable(source.path):
        if source.kind == "parquet":
            yield from _table_slices(source, size)
        elif source.kind == "jsonl":
            yield from _plain_slices(source, size)
        else:
            yield from _compressed_slices(source, size, max_line)


@contextlib.contextmanager
def as_unreadable(path: str) -> Generator[None]:
    """Turn the errors of reading a file into `UnreadableFile` that names it.

    Raises:
        UnreadableFile: In place of what the libraries raise.
    """
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"{path}: its data is cut short or damaged ({error}); fetch or compress it again") from error
    except OSError as error:  # pyarrow reports damaged data as an OSError, or as a ValueError of its own
        raise UnreadableFile(f"{path}: it cannot be read ({error.strerror or error}); check that it is whole") from error
    except ValueError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise UnreadableFile(f"{path}: it cannot be read ({error}); check that it is whole") from error


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
    number = position = start = 0
    held: list[bytes] = []
    length = 0
    with _decompressed(source) as (stream, tell):

        def cut(text: bytes | None, oversized: int, bytes_: int) -> Slice:
            nonlocal number, position, start
            weight = tell() - position
            slice = Slice(source, number, start, start + bytes_, weight, text, oversized)
            number, position, start = number + 1, position + weight, start + bytes_
            return slice

        for line in bounded_lines(stream, max_line):
            if isinstance(line, OversizedLine):
                if held:
                    yield cut(b"".join(held), 0, length)
                yield cut(b"", line.size, line.size)
                held, length = [], 0
                continue
            held.append(line)
            length += len(line)
            if length >= size:
                yield cut(b"".join(held), 0, length)
                held, length = [], 0
        if held:
            yield cut(b"".join(held), 0, length)


@contextlib.contextmanager
def _decompressed(source: InputFile) -> Generator[tuple[IO[bytes], Any]]:
    """Open the text of a compressed file; the second value is a function that returns how much of the file has been read."""
    with Path(source.path).open("rb") as file:
        if source.kind == "jsonl.gz":
            with gzip.GzipFile(fileobj=file) as text:
                yield io.BufferedReader(text, _BUFFER), file.tell
            return
        arrow = arrow_module()
        with arrow.CompressedInputStream(arrow.PythonFile(file, "r"), "zstd") as text:
            yield io.BufferedReader(text, _BUFFER), file.tell


def _table_slices(source: InputFile, size: int) -> Iterator[Slice]:
    """Yield runs of whole row groups: small ones together, a large one alone."""
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
