"""An input cut into slices of bounded size: what one worker does at a time, and what is done again after a crash.

Where a slice begins and ends follows from the input and its size alone, so a later run cuts as the one before did. A plain file
is cut by seeking, and each worker reads its own slice; a packed one can only be read from its start, so its text is sent.
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
from .columns import arrow_module, opened_table
from .lines import Oversized, bounded_lines
from .sources import Source

__all__ = ["Slice", "reading", "slices_of"]

_BUFFER: Final = 1 << 20


@attrs.frozen
class Slice:
    """A part of an input.

    Args:
        source: The input.
        number: Its place in the input, from 0.
        start: Its first byte; of a table its first row group.
        end: The byte, or row group, after its last.
        weight: Bytes of the file it stands for, as stored.
        text: The text, if it is sent along.
        oversized: Bytes of the one line it holds, if that is too long to be sent.
    """

    source: Source
    number: int
    start: int
    end: int
    weight: int
    text: bytes | None = attrs.field(default=None, repr=False)
    oversized: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """What tells it from all other slices of a batch."""
        return self.source.number, self.number


def slices_of(source: Source, size: int, most: int) -> Iterator[Slice]:
    """The slices of an input, in order.

    Args:
        source: The input.
        size: Bytes of text in a slice, about.
        most: The longest line that is read.

    Raises:
        UnreadableFile: If the input cannot be read to its end; slices before that have been given.
    """
    with reading(source.path):
        if source.kind == "parquet":
            yield from _of_table(source, size)
        elif source.kind == "jsonl":
            yield from _of_file(source, size)
        else:
            yield from _of_packed(source, size, most)


@contextlib.contextmanager
def reading(path: str) -> Generator[None]:
    """Say of what is raised within which file could not be read.

    Raises:
        UnreadableFile: In place of what the libraries raise.
    """
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"{path}: its data is cut short or damaged ({error}); fetch or pack it again") from error
    except OSError as error:  # what pyarrow says of damaged data is one too, or a ValueError of its own
        raise UnreadableFile(f"{path}: it cannot be read ({error.strerror or error}); see that it is whole") from error
    except ValueError as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise UnreadableFile(f"{path}: it cannot be read ({error}); see that it is whole") from error


def _of_file(source: Source, size: int) -> Iterator[Slice]:
    with Path(source.path).open("rb", buffering=0) as stream:
        start = number = 0
        while start < source.size:
            end = min(_line_end(stream, start + size), source.size)
            yield Slice(source, number, start, end, end - start)
            start, number = end, number + 1


def _line_end(stream: IO[bytes], at: int) -> int:
    """The first byte after the line in which the byte before ``at`` stands."""
    stream.seek(at - 1)
    at -= 1
    while chunk := stream.read(_BUFFER):
        found = chunk.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(chunk)
    return at


def _of_packed(source: Source, size: int, most: int) -> Iterator[Slice]:
    number = position = start = 0
    held: list[bytes] = []
    length = 0
    with _unpacked(source) as (stream, tell):

        def cut(text: bytes | None, oversized: int, bytes_: int) -> Slice:
            nonlocal number, position, start
            weight = tell() - position
            made = Slice(source, number, start, start + bytes_, weight, text, oversized)
            number, position, start = number + 1, position + weight, start + bytes_
            return made

        for line in bounded_lines(stream, most):
            if isinstance(line, Oversized):
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
def _unpacked(source: Source) -> Generator[tuple[IO[bytes], Any]]:
    """The text of a packed file, and a function that says how much of the file has been read."""
    with Path(source.path).open("rb") as packed:
        if source.kind == "jsonl.gz":
            with gzip.GzipFile(fileobj=packed) as text:
                yield io.BufferedReader(text, _BUFFER), packed.tell
            return
        arrow = arrow_module()
        with arrow.CompressedInputStream(arrow.PythonFile(packed, "r"), "zstd") as text:
            yield io.BufferedReader(text, _BUFFER), packed.tell


def _of_table(source: Source, size: int) -> Iterator[Slice]:
    """Runs of whole row groups: smaller ones together, a larger one alone."""
    with opened_table(source.path) as table:
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
