"""The manifest of a batch, a file with its plan and its finished outputs, and the lock of its folder of parts."""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from ..errors import StateError, UnwritableFile
from ..files import unwritable_errors
from ..json_data import data_of, json_of, natural_number
from .parts import atomic_writer, size_or_none, state_json
from .report import BatchCounts

_VERSION: Final = 3
_LOCK: Final = "lock"
_LOCK_ATTEMPTS: Final = 50
_LOCK_PAUSE: Final = 0.02  # seconds
_EXCERPT_CHARS: Final = 80  # of a value, in an error
# 000001-00000002.part and .record (of a slice), 000001.joined and .whole (of an output), 000001-00000002.sqlite and
# summaries.sqlite-wal (answers of summarizers), .compaction-a1b2.part (a file that was being written)
_PART: Final = re.compile(r"(\d{6}(-\d{8})?|summaries)\.(part|record|joined|whole|sqlite)([.-].*)?|\.compaction-\w+\.part")


class Manifest:
    """Holds state: the plan of a batch in a file, and what is finished of it; while it is open, other processes are locked out.

    The file has the job, the inputs with sizes and times, and the outputs. Two runs with the same plan write the same bytes. A
    run that finds the file of another plan raises an error. At the end, the file also has the counts and the outputs' sizes.

    The folder of parts is created if missing, and emptied for a new batch or with ``restart``.

    Attributes:
        joined: The size of each finished output, by number.
        total: The counts of the batch, if it is finished.
        resumed: Whether an earlier run left unfinished work.

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
            stream.write(state_json({"compaction batch": _VERSION, **self._plan, **result}))

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
            if (size := self.joined.get(target["number"])) is not None and size_or_none(Path(target["path"])) != size:
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
        with contextlib.suppress(OSError):
            for part in filter(_is_part, self.parts.iterdir()):
                part.unlink()

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


def _is_part(path: Path) -> bool:
    return _PART.fullmatch(path.name) is not None


def _leftovers(parts: Path) -> list[Path]:
    """Return the files that an earlier batch left in the folder of parts."""
    found = [path for path in parts.iterdir() if path.name != _LOCK]
    if foreign := [path for path in found if not _is_part(path)]:
        raise UnwritableFile(f"{foreign[0]}: it is not a part file of a batch; move it, or choose another output")
    return found


def _lock_folder(path: Path, parts: Path) -> IO[bytes]:
    """Lock the folder of parts while the returned stream is open."""
    for _ in range(_LOCK_ATTEMPTS):
        with unwritable_errors(parts, "choose a folder you may write to"):
            parts.mkdir(parents=True, exist_ok=True)
            stream = (parts / _LOCK).open("ab")
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
