"""Files that are whole or not there: the parts that workers write, and the outputs that are joined from them.

A part is written under a temporary name, synced to disk, and renamed; so is an output. Whatever kills a process, a name that is
there stands for a file that is complete.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import UnwritableFile
from .columns import arrow_module
from .sources import Kind, Target

__all__ = ["PartFiles", "join_errors", "join_parts", "sealed"]

_COPIED: Final = 1 << 20


@contextlib.contextmanager
def sealed(path: Path) -> Generator[IO[bytes]]:
    """A stream whose content is the file once the ``with`` ends, synced and renamed; if anything is raised, nothing happened.

    Raises:
        UnwritableFile: If it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.tmp")  # a worker that outlives its parent does not meet the next one
    try:
        try:
            with part.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        remedy = "make room, or see that the folder may be written to; what is finished is kept, so run it again then"
        raise UnwritableFile(f"{path}: it cannot be written ({error.strerror or error}); {remedy}") from error


@attrs.frozen
class PartFiles:
    """The parts of one slice.

    Args:
        folder: Where they stand.
        key: The slice's input and number.
    """

    folder: Path
    key: tuple[int, int]

    @property
    def rows(self) -> Path:
        """What was written of it."""
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.part"

    @property
    def errors(self) -> Path:
        """Its bad conversations; lines are counted from the slice's first."""
        return self.folder / f"{self.key[0]:06}-{self.key[1]:08}.errors"

    def stand(self, size: int, errors: int) -> bool:
        """Whether both are there, as large as they were."""
        return _size(self.rows) == size and (not errors or _size(self.errors) == errors)

    @contextlib.contextmanager
    def writing(self, kind: Kind) -> Generator[Any]:
        """What a chunk's text, or its table, is written to: has ``write(data)``."""
        with sealed(self.rows) as stream, contextlib.ExitStack() as opened:
            if kind == "jsonl.gz":
                yield opened.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
            elif kind == "jsonl.zst":
                yield opened.enter_context(_Frame(stream))
            elif kind == "parquet":
                yield opened.enter_context(_TableStream(stream))
            else:
                yield stream


class _Frame(contextlib.AbstractContextManager["_Frame"]):
    """Holds state: a text that becomes one zstd frame."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._codec = arrow_module().Codec("zstd")
        self._texts: list[bytes] = []

    def write(self, text: bytes) -> None:
        self._texts.append(text)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._stream.write(self._codec.compress(b"".join(self._texts), asbytes=True))


class _TableStream(contextlib.AbstractContextManager["_TableStream"]):
    """Holds state: an Arrow stream, begun by the first table, whose columns the others have too."""

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


def join_parts(target: Target, parts: Sequence[Path], folder: Path) -> int:
    """Make an output of its parts; O(their bytes), in constant memory, but for a table a part at a time.

    Args:
        target: The output.
        parts: The files it is made of, in order.
        folder: Where it is made, before it takes its place.

    Returns:
        Its size in bytes.

    Raises:
        UnwritableFile: If it cannot be written, or the parts have columns of different types.
    """
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = folder / f"{target.number:06}.whole"
    with sealed(whole) as stream:
        if target.kind == "parquet":
            _join_tables(path, parts, stream)
        else:
            for part in parts:
                with part.open("rb") as read:
                    shutil.copyfileobj(read, stream, _COPIED)
            if not parts and target.kind == "jsonl.gz":
                gzip.GzipFile("", "wb", 6, stream, mtime=0).close()
    size = whole.stat().st_size
    try:
        whole.replace(path)
    except OSError as error:
        raise UnwritableFile(f"{path}: it cannot be put in its place ({error.strerror or error}); see to it") from error
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
                    out.write_table(_shaped(tables.read_all(), schema))
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise UnwritableFile(f"{path}: a column differs from line to line ({error}); write JSONL, or mend it") from error


def _schema(part: Path) -> Any:
    arrow = arrow_module()
    with arrow.OSFile(str(part)) as read, arrow.ipc.open_stream(read) as tables:
        return tables.schema


def _shaped(table: Any, schema: Any) -> Any:
    arrow = arrow_module()
    for field in schema:
        if field.name not in table.schema.names:
            table = table.append_column(field, arrow.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


def join_errors(path: Path, slices: Iterable[tuple[str, int, Path]]) -> None:
    """Make the file of bad conversations.

    Args:
        path: Where it is to be; nothing is written if there are none.
        slices: Of each slice in order: its input, how many lines stand before it, and its own file.
    """
    first = next(found := _errors(slices), None)
    if first is None:
        path.unlink(missing_ok=True)
        return
    with sealed(path) as stream:
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
