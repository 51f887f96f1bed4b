"""The finished work of a batch, in a folder beside its output, and the outputs that are joined from it.

A worker writes the part file of a slice and then its record, which has the counts. Part files and outputs are written under a
temporary name, synced to disk and renamed, so every one that exists is complete, even after the process was killed. A slice is
finished if its record can be read and was made from the input as it is now.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import operator
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import StateError, UnwritableFile
from ..files import open_replacement
from ..json_data import data_of, json_of, natural_number
from .input_files import InputFile, OutputFile, Slice
from .report import BatchCounts
from .rows import arrow_module

_VERSION: Final = 2
_GZIP_LEVEL: Final = 6
_LOCK: Final = "lock"
_LOCK_ATTEMPTS: Final = 50
_LOCK_PAUSE: Final = 0.02  # seconds
_EXCERPT_CHARS: Final = 80  # of a value, in an error
_PART: Final = re.compile(
    r"(\d{6}(-\d{8})?|summaries)\.(part|errors|record|joined|whole|sqlite)([.-].*)?|\.compaction-\w+\.part"
)


@contextlib.contextmanager
def _unwritable_errors(path: Path) -> Generator[None]:
    """Raise the errors that writing a file causes as `UnwritableFile`, with the remedy."""
    try:
        yield
    except OSError as error:
        remedy = "free some space or allow writing to the folder, then run the same again; finished work is kept"
        raise UnwritableFile(f"{path}: it cannot be written ({error.strerror or error}); {remedy}") from error


@contextlib.contextmanager
def atomic_writer(path: Path) -> Generator[IO[bytes]]:
    """Open a file that replaces another when it is complete, as `open_replacement` does."""
    with _unwritable_errors(path), open_replacement(path) as stream:
        yield stream


def _json(data: Mapping[str, Any]) -> bytes:
    return json_of(data, "the state of a batch", compact=True).encode() + b"\n"


# -------------------------------------------------------------------- the work on one slice


@attrs.frozen
class SliceResult:
    """A finished slice, as its record describes it.

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
    def errors(self) -> Path:
        """The file of its bad conversations; their line numbers count from the slice's first line."""
        return self._path("errors")

    @contextlib.contextmanager
    def open_rows(self, kind: str) -> Generator[Callable[[Any], object]]:
        """Open the rows file; yields a function that writes a chunk's text, or its table for Parquet."""
        with atomic_writer(self.rows) as stream:
            if kind == "jsonl":
                yield stream.write
            elif kind == "jsonl.gz":
                with gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0) as packed:
                    yield packed.write
            else:
                arrow = arrow_module()
                held: list[Any] = []
                yield held.append
                if kind == "jsonl.zst":
                    stream.write(arrow.Codec("zstd").compress(b"".join(held)))
                elif held:
                    write_table(arrow.concat_tables(held, promote_options="permissive"), stream)

    def finish(self, slice: Slice, errors: Sequence[bytes], counts: BatchCounts) -> SliceResult:
        """Write the error entries and the record of a slice whose rows are written, and return its result."""
        if errors:
            with atomic_writer(self.errors) as stream:
                stream.writelines(errors)
        result = SliceResult(self.key, self.rows.stat().st_size, sum(map(len, errors)), slice.weight, counts)
        record = {"input": _state(slice.source), **attrs.asdict(result, filter=lambda field, _: field.name != "key")}
        with _unwritable_errors(path := self._path("record")):  # one that a crash tears cannot be read: the slice is done again
            path.write_bytes(_json(record))
        return result

    def result(self, source: InputFile) -> SliceResult | None:
        """Return the result of an earlier run; ``None`` if there is none, or the input has changed since."""
        try:
            data = data_of(self._path("record").read_bytes(), "the record", dict)
            size, errors, weight = (natural_number(data[name]) for name in ("size", "errors", "weight"))
            result = SliceResult(self.key, size, errors, weight, BatchCounts.from_dict(data["tally"]))
        except (OSError, StateError, KeyError, TypeError, ValueError, AttributeError):
            return None
        return result if data["input"] == _state(source) else None

    def are_complete(self, result: SliceResult) -> bool:
        """Return whether the files of a result still have their sizes; the rows go when they are joined."""
        return _size(self.rows) == result.size and (not result.errors or _size(self.errors) == result.errors)


def _state(source: InputFile) -> list[int]:
    return [source.size, source.modified_ns]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


# -------------------------------------------------------------------- the batch


class Manifest:
    """Holds state: the plan of a batch in a file, and what is finished of it; while it is open, other processes are locked out.

    The file has the job, the inputs with sizes and times, and the outputs. Two runs with the same plan write the same bytes. A
    run that finds the file of another plan raises an error. At the end, the file also has the counts and the outputs' sizes.

    Args:
        path: The file.
        parts: The folder of the parts; it is created if missing, and emptied for a new batch.
        plan: The plan of this run, as JSON data.
        restart: Whether to discard the work of an earlier run.

    Attributes:
        joined: The size of each finished output, by number.
        total: The counts of the finished batch; ``None`` until it is finished.
        resumed: Whether an earlier run left a manifest of unfinished work, which this run resumes.

    Raises:
        StateError: If another process is running this batch, or the file has another plan or is not a manifest.
        UnwritableFile: If it cannot be written.
    """

    def __init__(self, path: Path, parts: Path, plan: Mapping[str, Any], *, restart: bool) -> None:
        self.path = path
        self.parts = parts
        self.joined: dict[int, int] = {}
        self.total: BatchCounts | None = None
        self.resumed = False
        self._plan = data_of(json_of(plan, "the plan"), "the plan", dict)
        self._lock = _lock_folder(path, parts)
        try:
            if path.exists() and not restart:
                self._read()
                self.resumed = self.total is None
            else:
                for stale in _leftovers(parts):
                    stale.unlink()
            if self.total is None:
                self._write()
        except BaseException:
            self.close()
            raise

    def _write(self, **result: Any) -> None:
        with atomic_writer(self.path) as stream:
            stream.write(_json({"compaction batch": _VERSION, **self._plan, **result}))

    def _read(self) -> None:
        try:
            earlier = data_of(self.path.read_bytes(), str(self.path), dict)
            if earlier["compaction batch"] != _VERSION:
                raise KeyError("compaction batch")
            marks = {path.stem: int(path.read_bytes()) for path in self.parts.glob("*.joined")}
            found: dict[str, Any] = earlier.get("joined") or marks
            self.joined = {int(number): natural_number(size) for number, size in found.items()}
            self.total = BatchCounts.from_dict(earlier["tally"]) if "tally" in earlier else None
            changed = list(self._differences(earlier))
        except (StateError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{self.path}: it is not a manifest of this version; move it, or restart (--restart)") from error
        if changed:
            raise StateError(
                f"{self.path}: it belongs to another batch: {'; '.join(changed[:5])}; undo the change, or restart (--restart)"
            )
        for target in self._plan["targets"]:
            if (size := self.joined.get(target["number"])) is not None and _size(Path(target["path"])) != size:
                remedy = "it was finished, and is missing or changed now; restore it, or restart (--restart)"
                raise StateError(f"{target['path']}: {remedy}")

    def _differences(self, earlier: Mapping[str, Any]) -> Iterator[str]:
        """Yield the differences to an earlier plan, in words. An input whose output is not written yet may have changed."""
        plan = self._plan
        now, before = ({**each["job"], "slice_bytes": each["slice_bytes"]} for each in (plan, earlier))
        for name, value in now.items():
            if value != before.get(name):
                yield f"{name} was {_excerpt(before.get(name), value)} and is now {_excerpt(value, before.get(name))}"
        sources, old = ({source["path"]: source for source in each["sources"]} for each in (plan, earlier))
        yield from (f"{path} was not an input" for path in sources if path not in old)
        yield from (f"{path} was an input" for path in old if path not in sources)
        written = {number for target in plan["targets"] if target["number"] in self.joined for number in target["sources"]}
        for path, source in sources.items():
            if path in old and source != old[path] and source["number"] in written:
                yield f"{path} has changed"
        if plan["targets"] != earlier["targets"]:
            yield "the outputs were different"

    def record_joined(self, number: int, size: int) -> None:
        """Record that an output is written."""
        self.joined[number] = size
        with atomic_writer(self.parts / f"{number:06}.joined") as stream:
            stream.write(b"%d\n" % size)

    def record_finished(self, total: BatchCounts) -> None:
        """Record that the batch is finished, and delete the parts."""
        self._write(joined={str(number): size for number, size in self.joined.items()}, tally=total.to_dict())
        shutil.rmtree(self.parts, ignore_errors=True)

    def close(self) -> None:
        """Release the lock, and remove what was being written and the folder of parts if it is empty."""
        with contextlib.suppress(OSError):
            for unfinished in self.parts.glob(".compaction-*.part"):
                unfinished.unlink()
            (self.parts / _LOCK).unlink()
            self.parts.rmdir()
        self._lock.close()


def _excerpt(value: Any, other: Any) -> str:
    """Return the text of a value; of a long one, the part that begins shortly before it differs from another."""
    text = repr(value)
    same = sum(itertools.takewhile(bool, map(operator.eq, text, repr(other))))
    start = 0 if len(text) <= _EXCERPT_CHARS else max(0, same - _EXCERPT_CHARS // 4)
    end = start + _EXCERPT_CHARS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _leftovers(parts: Path) -> list[Path]:
    """Return the files that an earlier batch left in the folder of parts."""
    found = [path for path in parts.iterdir() if path.name != _LOCK]
    if foreign := [path for path in found if not _PART.fullmatch(path.name)]:
        raise UnwritableFile(f"{foreign[0]}: it is not a part file of a batch; move it, or choose another output")
    return found


def _lock_folder(path: Path, parts: Path) -> IO[bytes]:
    """Lock the folder of parts while the returned stream is open."""
    for _ in range(_LOCK_ATTEMPTS):
        try:
            parts.mkdir(parents=True, exist_ok=True)
            stream = (parts / _LOCK).open("ab")
        except OSError as error:
            raise UnwritableFile(
                f"{parts}: it cannot be written ({error.strerror}); choose a folder you may write to"
            ) from error
        if _is_locked(stream):
            return stream
        stream.close()
        time.sleep(_LOCK_PAUSE)  # the workers of a killed run hold the lock for about 20 ms more
    raise StateError(f"{path}: another process is running this batch; wait for it, or stop it")


def _is_locked(stream: IO[bytes]) -> bool:
    """Try to lock a file, and return whether it is locked; without ``fcntl``, as on Windows, nothing is locked."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return os.fstat(stream.fileno()).st_nlink > 0  # or else the process that had locked it has deleted it


# -------------------------------------------------------------------- outputs


def join_parts(target: OutputFile, parts: Sequence[Path], folder: Path) -> int:
    """Join parts into an output; O(bytes), in constant memory, or with one part of a table in memory.

    A single part of a text becomes the output.

    Returns:
        Its size in bytes.
    """
    path = Path(target.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not parts:
        empty = PartFiles(folder, (target.number, 0))
        with empty.open_rows(target.kind):
            parts = [empty.rows]
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
            shutil.copyfileobj(read, stream)


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
        with part.open("rb") as lines:
            for line in lines:
                entry = json.loads(line)
                yield json.dumps({"file": name, **entry, "line": before + entry["line"]}, ensure_ascii=False).encode() + b"\n"
