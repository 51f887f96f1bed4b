"""The finished work of a batch, in a folder beside its output, and the outputs that are joined from it.

A worker writes the part file of a slice and then its record, which has the counts and the bad conversations. Part files and
outputs are written under a temporary name, synced to disk and renamed, so every one that exists is complete, even after the
process was killed. A slice is finished if its record can be read and was made from the input as it is now.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import StateError, UnwritableFile
from ..files import open_replacement, unwritable_errors
from ..json_data import data_of, json_of, natural_number
from .input_files import InputFile, OutputFile
from .report import BatchCounts
from .rows import arrow_module
from .slices import Slice

_GZIP_LEVEL: Final = 6
_KEPT: Final = "free some space or allow writing to the folder, then run the same again; finished work is kept"


@contextlib.contextmanager
def atomic_writer(path: Path) -> Generator[IO[bytes]]:
    """Open a file that replaces another when it is complete, as `open_replacement` does."""
    with unwritable_errors(path, _KEPT), open_replacement(path) as stream:
        yield stream


def state_json(data: Mapping[str, Any]) -> bytes:
    """Return the content of a manifest or a record."""
    return json_of(data, "the state of a batch", compact=True).encode() + b"\n"


def size_or_none(path: Path) -> int | None:
    """Return the size of a file in bytes; ``None`` if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return None


# -------------------------------------------------------------------- the work on one slice


@attrs.frozen
class SliceResult:
    """A finished slice, as its record describes it."""

    key: tuple[int, int]  # the slice's input and number
    size: int  # bytes of its part file
    weight: int  # bytes of the input it covers, as stored
    tally: BatchCounts  # the counts of its conversations


@attrs.frozen
class PartFiles:
    """The files of one slice."""

    folder: Path
    key: tuple[int, int]

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.{suffix}"

    @property
    def rows(self) -> Path:
        """The file of its compacted conversations."""
        return self._path("part")

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The entries of its bad conversations, from its record; their line numbers count from the slice's first line."""
        return data_of(self._path("record").read_bytes(), "the record", dict)["errors"]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def open_rows(self, kind: str, source: str) -> Generator[Callable[[Any], object]]:
        """Open the rows file; yields a function that takes a chunk's text, or its table for Parquet.

        JSONL is written at once. Arrow compresses a text, and joins tables, as a whole: both are written at the end. An error
        about a column with values of two types names the ``source``.
        """
        with atomic_writer(self.rows) as stream:
            if kind == "jsonl":
                yield stream.write
                return
            if kind == "jsonl.gz":
                with gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0) as packed:
                    yield packed.write
                return
            arrow, chunks = arrow_module(), list[Any]()
            yield chunks.append
            if kind == "jsonl.zst":
                stream.write(arrow.Codec("zstd").compress(b"".join(chunks)))
            elif chunks:
                with _type_errors(source):
                    table = arrow.concat_tables(chunks, promote_options="permissive")
                write_table(table, stream)

    def finish(self, slice: Slice, errors: Sequence[Mapping[str, Any]], counts: BatchCounts) -> SliceResult:
        """Write the record of a slice whose rows are written, and return its result."""
        result = SliceResult(self.key, self.rows.stat().st_size, slice.weight, counts)
        record = {
            "input": _state(slice.source),
            "size": result.size,
            "weight": result.weight,
            "tally": counts.to_dict(),
            "errors": errors,
        }
        path = self._path("record")
        with unwritable_errors(path, _KEPT):  # a record that a crash cut short cannot be read, so the slice is done again
            path.write_bytes(state_json(record))
        return result

    def result(self, source: InputFile) -> SliceResult | None:
        """Return the result of an earlier run; ``None`` if there is none, or the input has changed since."""
        try:
            data = data_of(self._path("record").read_bytes(), "the record", dict)
            size, weight = natural_number(data["size"]), natural_number(data["weight"])
            result = SliceResult(self.key, size, weight, BatchCounts.from_dict(data["tally"]))
        except (OSError, StateError, KeyError, TypeError, ValueError, AttributeError):
            return None
        return result if data["input"] == _state(source) else None


def _state(source: InputFile) -> list[int]:
    return [source.size, source.modified_ns]


# -------------------------------------------------------------------- outputs


def join_parts(target: OutputFile, parts: Sequence[Path], folder: Path) -> int:
    """Join parts into an output, and return its size; O(bytes), in constant memory, or with one part of a table in memory.

    A single part of a text becomes the output.
    """
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not parts:
        empty = PartFiles(folder, (target.number, 0))
        with empty.open_rows(target.kind, target.path):
            parts = [empty.rows]
    if len(parts) == 1 and target.kind != "parquet":
        whole = parts[0]
    else:
        whole = folder / f"{target.number:06}.whole"
        with atomic_writer(whole) as stream:
            if target.kind == "parquet":
                _join_tables(path, parts, stream)
            else:
                for part in parts:
                    with part.open("rb") as read:
                        shutil.copyfileobj(read, stream)
    size = whole.stat().st_size
    with unwritable_errors(path, "check the folder"):
        try:
            whole.replace(path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            with whole.open("rb") as read, atomic_writer(path) as stream:  # the folder of parts is a link to another disk
                shutil.copyfileobj(read, stream)
            whole.unlink()
    return size


def _join_tables(path: Path, parts: Sequence[Path], stream: IO[bytes]) -> None:
    arrow, parquet = arrow_module(), cast("Any", import_module("pyarrow.parquet"))
    filled = [part for part in parts if part.stat().st_size]
    schemas: list[Any] = []
    for part in filled:
        with open_tables(part) as tables:
            schemas.append(tables.schema)
    with _type_errors(path):
        schema = arrow.unify_schemas(schemas or [arrow.schema({"messages": arrow.string()})], promote_options="permissive")
        with parquet.ParquetWriter(stream, schema, compression="zstd") as out:
            for part in filled:
                with open_tables(part) as tables:
                    both = [schema.empty_table(), tables.read_all()]  # the first one has all columns, in order
                    out.write_table(arrow.concat_tables(both, promote_options="permissive"))


@contextlib.contextmanager
def _type_errors(path: Path | str) -> Generator[None]:
    """Raise the errors that joining tables causes as `UnwritableFile`, with the remedy."""
    arrow = arrow_module()
    try:
        yield
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise UnwritableFile(
            f"{path}: the lines have different types in one column ({error}); write JSONL, or change the column"
        ) from error


def write_table(table: Any, stream: IO[bytes], compression: str | None = "lz4") -> None:
    """Write a table as a part that `open_tables` reads."""
    arrow = arrow_module()
    options = arrow.ipc.IpcWriteOptions(compression=compression)
    with arrow.ipc.new_stream(stream, table.schema, options=options) as out:
        out.write_table(table)


@contextlib.contextmanager
def open_tables(part: Path) -> Generator[Any]:
    """Open the part of a table; yields a reader of its record batches."""
    arrow = arrow_module()
    with arrow.OSFile(str(part)) as read, arrow.ipc.open_stream(read) as tables:
        yield tables
