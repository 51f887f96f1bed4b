"""Part files, one for each slice, and the outputs joined from them.

Parts and outputs are written under a temporary name, synced to disk and renamed. So every file that exists is complete, even
after the process was killed.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import UnwritableFile
from ..files import open_replacement
from .arrow_columns import arrow_module
from .input_files import FileKind, OutputFile

_COPY_BYTES: Final = 1 << 20
_LARGEST_COPY: Final = 1 << 30


@contextlib.contextmanager
def atomic_writer(path: Path) -> Generator[IO[bytes]]:
    """Open a file that replaces another when it is complete, as `open_replacement` does.

    Raises:
        UnwritableFile: If it cannot be written.
    """
    try:
        with open_replacement(path) as stream:
            yield stream
    except OSError as error:
        remedy = "free some space or allow writing to the folder, then run the same again; finished work is kept"
        raise UnwritableFile(f"{path}: it cannot be written ({error.strerror or error}); {remedy}") from error


@attrs.frozen
class PartFiles:
    """The part files of one slice.

    Args:
        folder: The folder of the parts.
        key: The slice's input and number.
    """

    folder: Path
    key: tuple[int, int]

    @property
    def rows(self) -> Path:
        """The file of its compacted conversations."""
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.part"

    @property
    def errors(self) -> Path:
        """The file of its bad conversations; their line numbers count from the slice's first line."""
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.errors"

    def have_sizes(self, size: int, errors: int) -> bool:
        """Whether both files exist and have these sizes."""
        return _size(self.rows) == size and (not errors or _size(self.errors) == errors)

    @contextlib.contextmanager
    def open_rows(self, kind: FileKind) -> Generator[Callable[[Any], object]]:
        """Open the rows file; yields a function that writes a chunk's text, or its table for Parquet."""
        with atomic_writer(self.rows) as stream:
            if kind == "jsonl":
                yield stream.write
            elif kind == "jsonl.gz":
                with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
                    yield packed.write
            else:
                arrow = arrow_module()
                held: list[Any] = []
                yield held.append
                if kind == "jsonl.zst":
                    stream.write(arrow.Codec("zstd").compress(b"".join(held), asbytes=True))
                elif held:
                    write_table(arrow.concat_tables(held, promote_options="permissive"), stream)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def join_parts(target: OutputFile, parts: Sequence[Path], folder: Path) -> int:
    """Join parts into an output; O(bytes), in constant memory, or with one part of a table in memory.

    A single part of a text becomes the output. Linux joins several parts without reading them into this process.

    Args:
        target: The output.
        parts: Its part files, in order.
        folder: The folder in which it is written before it is moved.

    Returns:
        Its size in bytes.

    Raises:
        UnwritableFile: If it cannot be written, or the parts have columns of different types.
    """
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(parts) == 1 and target.kind != "parquet":
        whole = parts[0]
    else:
        whole = folder / f"{target.number:06}.whole"
        with atomic_writer(whole) as stream:
            _write_parts(target, parts, stream)
    size = whole.stat().st_size
    try:
        whole.replace(path)
    except OSError as error:
        raise UnwritableFile(f"{path}: it cannot be moved here ({error.strerror or error}); check the folder") from error
    return size


def _write_parts(target: OutputFile, parts: Sequence[Path], stream: IO[bytes]) -> None:
    if target.kind == "parquet":
        _join_tables(Path(target.path), parts, stream)
        return
    for part in parts:
        with part.open("rb") as read:
            if sys.platform == "linux":
                with contextlib.suppress(OSError):  # of a file system that cannot do it; a full disk is found below
                    while os.copy_file_range(read.fileno(), stream.fileno(), _LARGEST_COPY):
                        pass
            shutil.copyfileobj(read, stream, _COPY_BYTES)  # what is left
    if not parts and target.kind == "jsonl.gz":
        gzip.GzipFile("", "wb", 6, stream, mtime=0).close()


def _join_tables(path: Path, parts: Sequence[Path], stream: IO[bytes]) -> None:
    arrow, parquet = arrow_module(), cast("Any", import_module("pyarrow.parquet"))
    filled = [part for part in parts if part.stat().st_size]
    try:
        schemas: list[Any] = []
        for part in filled:
            with open_tables(part) as tables:
                schemas.append(tables.schema)
        empty = arrow.schema({"messages": arrow.string()})
        schema = arrow.unify_schemas(schemas or [empty], promote_options="permissive")
        with parquet.ParquetWriter(stream, schema, compression="zstd") as out:
            for part in filled:
                with open_tables(part) as tables:
                    out.write_table(_with_schema(tables.read_all(), schema))
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


def _with_schema(table: Any, schema: Any) -> Any:
    arrow = arrow_module()
    for field in schema:
        if field.name not in table.schema.names:
            table = table.append_column(field, arrow.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


def join_errors(path: Path, slices: Iterable[tuple[str, int, Path]]) -> None:
    """Write the file of bad conversations.

    Args:
        path: The file; it is not written if there are no bad conversations.
        slices: For each slice in order: its input, the number of lines before it, and its file of bad conversations.
    """
    first = next(found := _errors(slices), None)
    if first is None:
        path.unlink(missing_ok=True)
        return
    with atomic_writer(path) as stream:
        stream.write(first)
        stream.writelines(found)


def _errors(slices: Iterable[tuple[str, int, Path]]) -> Iterator[bytes]:
    for name, before, part in slices:
        if not part.exists():
            continue
        with part.open("rb") as lines:
            for line in lines:
                entry = json.loads(line)
                yield json.dumps({"file": name, **entry, "line": before + entry["line"]}, ensure_ascii=False).encode() + b"\n"
