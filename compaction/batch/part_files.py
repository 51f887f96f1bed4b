"""Part files, one for each slice, and the outputs joined from them.

Parts and outputs are written under a temporary name, synced to disk and renamed, so a file that exists is complete, whatever
killed the process.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import UnwritableFile
from ..files import open_replacement
from .arrow_columns import arrow_module
from .input_files import FileKind, OutputFile

_COPY_BYTES: Final = 1 << 20


@contextlib.contextmanager
def atomic_writer(path: Path) -> Generator[IO[bytes]]:
    """`open_replacement` for the files of a batch.

    Raises:
        UnwritableFile: If it cannot be written.
    """
    try:
        with open_replacement(path) as stream:
            yield stream
    except OSError as error:
        remedy = "make room, or check that the folder may be written to; what is finished is kept, so run it again then"
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
        """The file of its bad conversations; lines are counted from the slice's first."""
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.errors"

    def have_sizes(self, size: int, errors: int) -> bool:
        """Whether both files exist and have these sizes."""
        return _size(self.rows) == size and (not errors or _size(self.errors) == errors)

    @contextlib.contextmanager
    def open_rows(self, kind: FileKind) -> Generator[Any]:
        """Open the rows file for writing; its ``write`` takes a chunk's text, or its table for Parquet."""
        with atomic_writer(self.rows) as stream, contextlib.ExitStack() as exit_stack:
            if kind == "jsonl.gz":
                yield exit_stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
            elif kind == "jsonl.zst":
                yield exit_stack.enter_context(_ZstdFrame(stream))
            elif kind == "parquet":
                yield exit_stack.enter_context(_ArrowStream(stream))
            else:
                yield stream


class _ZstdFrame(contextlib.AbstractContextManager["_ZstdFrame"]):
    """Holds state: texts that are written as one zstd frame at the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._codec = arrow_module().Codec("zstd")
        self._texts: list[bytes] = []

    def write(self, text: bytes) -> None:
        self._texts.append(text)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._stream.write(self._codec.compress(b"".join(self._texts), asbytes=True))


class _ArrowStream(contextlib.AbstractContextManager["_ArrowStream"]):
    """Holds state: tables that are written as one Arrow stream at the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._tables: list[Any] = []

    def write(self, table: Any) -> None:
        self._tables.append(table)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._tables:
            arrow = arrow_module()
            table = arrow.concat_tables(self._tables, promote_options="permissive")
            options = arrow.ipc.IpcWriteOptions(compression="lz4")
            with arrow.ipc.new_stream(self._stream, table.schema, options=options) as out:
                out.write_table(table)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def join_parts(target: OutputFile, parts: Sequence[Path], folder: Path) -> int:
    """Join parts into an output; O(their bytes), in constant memory, except that a table is held one part at a time.

    Args:
        target: The output.
        parts: Its part files, in order.
        folder: Where it is written before it is moved into place.

    Returns:
        Its size in bytes.

    Raises:
        UnwritableFile: If it cannot be written, or the parts have columns of different types.
    """
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = folder / f"{target.number:06}.whole"
    with atomic_writer(whole) as stream:
        if target.kind == "parquet":
            _join_tables(path, parts, stream)
        else:
            for part in parts:
                with part.open("rb") as read:
                    shutil.copyfileobj(read, stream, _COPY_BYTES)
            if not parts and target.kind == "jsonl.gz":
                gzip.GzipFile("", "wb", 6, stream, mtime=0).close()
    size = whole.stat().st_size
    try:
        whole.replace(path)
    except OSError as error:
        raise UnwritableFile(f"{path}: it cannot be moved into place ({error.strerror or error}); check the folder") from error
    return size


def _join_tables(path: Path, parts: Sequence[Path], stream: IO[bytes]) -> None:
    from importlib import import_module

    arrow, parquet = arrow_module(), cast("Any", import_module("pyarrow.parquet"))
    filled = [part for part in parts if part.stat().st_size]
    try:
        schemas = [_schema(part) for part in filled] or [arrow.schema({"messages": arrow.string()})]
        schema = arrow.unify_schemas(schemas, promote_options="permissive")
        with parquet.ParquetWriter(stream, schema, compression="zstd") as out:
            for part in filled:
                with arrow.OSFile(str(part)) as read, arrow.ipc.open_stream(read) as tables:
                    out.write_table(_with_schema(tables.read_all(), schema))
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise UnwritableFile(
            f"{path}: a column's type differs from line to line ({error}); write JSONL, or change the column"
        ) from error


def _schema(part: Path) -> Any:
    arrow = arrow_module()
    with arrow.OSFile(str(part)) as read, arrow.ipc.open_stream(read) as tables:
        return tables.schema


def _with_schema(table: Any, schema: Any) -> Any:
    arrow = arrow_module()
    for field in schema:
        if field.name not in table.schema.names:
            table = table.append_column(field, arrow.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


def join_errors(path: Path, slices: Iterable[tuple[str, int, Path]]) -> None:
    """Write the file of bad conversations.

    Args:
        path: The file; it is not written if there are none.
        slices: For each slice in order: its input, the number of lines before it, and its own file of bad conversations.
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
