"""The manifest of a batch: a file with a line for each finished slice and output, synced to disk after each line.

Its first line is the plan: the job, the inputs with sizes and times, and the outputs. Two runs with the same plan write the
same bytes. A run that finds a manifest resumes the batch if its own plan is the same, and raises an error otherwise. If a crash
cut the last line short, that line is ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import attrs

from ..errors import StateError, UnwritableFile
from ..json_data import data_of, json_of, natural_number
from .part_files import atomic_writer
from .report import BatchCounts
from .slice_worker import SliceResult

_VERSION: Final = 1
_LOCK: Final = "lock"
_LOCK_ATTEMPTS: Final = 50
_LOCK_PAUSE: Final = 0.02  # seconds
_PART: Final = re.compile(r"(\d{6}(-\d{8})?|summaries)\.(part|errors|whole|sqlite)([.-].*)?|\.compaction-\w+\.part")


def _differences(plan: Mapping[str, Any], earlier: Mapping[str, Any], may_change: set[int]) -> Iterator[str]:
    """Yield the differences between a plan and an earlier one, in words.

    Args:
        plan: The plan.
        earlier: The plan of the earlier run.
        may_change: Inputs that may have changed, because no output was made from them.
    """
    for name, value in plan["job"].items():
        if value != earlier["job"].get(name):
            yield f"{name} was {earlier['job'].get(name)!r:.200} and is now {value!r:.200}"
    if plan["slice_bytes"] != earlier["slice_bytes"]:
        yield f"slice_bytes was {earlier['slice_bytes']:,} and is now {plan['slice_bytes']:,}"
    before = {source["path"]: source for source in earlier["sources"]}
    now = {source["path"]: source for source in plan["sources"]}
    yield from (f"{path} was not an input" for path in now if path not in before)
    yield from (f"{path} was an input" for path in before if path not in now)
    for path, source in now.items():
        if path in before and source != before[path] and source["number"] not in may_change:
            yield f"{path} has changed"
    if plan["targets"] != earlier["targets"]:
        yield "the outputs were different"


class Manifest:
    """Holds state: an open manifest, and its entries.

    Args:
        path: The file.
        parts: The folder of the part files; it is created if missing, and emptied for a new batch.
        plan: The plan of this run, as JSON data.
        restart: Whether to discard the work of an earlier run.

    Attributes:
        done: The finished slices, by key.
        joined: The size of each finished output, by number.
        failed: Why each input that could not be read failed, by number.
        finished: Whether the batch is finished.
        resumed: Whether an earlier run left a manifest that this run resumes.

    Raises:
        StateError: If another process is running this batch, or the file has another plan or is not a manifest.
        UnwritableFile: If it cannot be written.
    """

    def __init__(self, path: Path, parts: Path, plan: Mapping[str, Any], *, restart: bool) -> None:
        self.path = path
        self.done: dict[tuple[int, int], SliceResult] = {}
        self.joined: dict[int, int] = {}
        self.failed: dict[int, str] = {}
        self.finished = False
        self.resumed = path.exists() and not restart
        self._parts = parts
        self._plan = data_of(json_of(plan, "the plan"), "the plan", dict)
        self._lock = _lock_folder(path, parts)
        try:
            if self.resumed:
                self._read()
            else:
                for stale in _leftovers(parts):
                    stale.unlink()
                self._rewrite()
            self._out = path.open("ab")
        except BaseException:
            self._unlock()
            raise

    def _read(self) -> None:
        text = self.path.read_bytes()
        complete = text[: text.rfind(b"\n") + 1]
        try:
            first, *rest = [data_of(line, str(self.path), dict) for line in complete.splitlines()]
            if first["compaction batch"] != _VERSION:
                raise KeyError("compaction batch")
            for entry in rest:
                self._apply(entry)
            changed = list(_differences(self._plan, first, set(self.failed)))
        except (StateError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{self.path}: it is not a manifest of this version; move it, or restart (--restart)") from error
        if changed:
            raise StateError(
                f"{self.path}: it belongs to another batch: {'; '.join(changed[:5])}; undo the change, or restart (--restart)"
            )
        self._check_outputs()
        if self.failed:  # these inputs are read again
            self.done = {key: result for key, result in self.done.items() if key[0] not in self.failed}
            self.failed, self.finished = {}, False
            self._rewrite()
        elif len(complete) < len(text):
            os.truncate(self.path, len(complete))

    def _check_outputs(self) -> None:
        """Check that each finished output still exists; its part files were deleted.

        Raises:
            StateError: If one is missing or changed.
        """
        for target in self._plan["targets"]:
            path, size = Path(target["path"]), self.joined.get(target["number"])
            if size is not None and (not path.exists() or path.stat().st_size != size):
                raise StateError(f"{path}: it was finished, and is missing or changed now; restore it, or restart (--restart)")

    def _rewrite(self) -> None:
        """Write the plan and the current entries as a new file."""
        with atomic_writer(self.path) as stream:
            stream.write(_line({"compaction batch": _VERSION, **self._plan}))
            stream.writelines(_line(attrs.asdict(result)) for result in self.done.values())
            stream.writelines(_line({"joined": place, "size": size}) for place, size in self.joined.items())

    def _apply(self, entry: Mapping[str, Any]) -> None:
        if "key" in entry:
            first, second = map(natural_number, entry["key"])
            counts = BatchCounts.from_dict(entry["tally"])
            size, errors, weight = [natural_number(entry[name]) for name in ("size", "errors", "weight")]
            self.done[first, second] = SliceResult((first, second), size, errors, weight, counts)
        elif "joined" in entry:
            self.joined[natural_number(entry["joined"])] = natural_number(entry["size"])
        elif "failed" in entry:
            self.failed[natural_number(entry["failed"])] = str(entry["reason"])
        else:
            self.finished = bool(entry["finished"])

    def record_slice(self, result: SliceResult) -> None:
        """Record that a slice is finished and its part is written."""
        self._record(attrs.asdict(result))

    def record_joined(self, target: int, size: int) -> None:
        """Record that an output is written."""
        self._record({"joined": target, "size": size})

    def record_failure(self, source: int, reason: str) -> None:
        """Record that an input could not be read; the first failure of an input is kept."""
        if source not in self.failed:
            self._record({"failed": source, "reason": reason})

    def record_finished(self) -> None:
        """Record that the batch is finished."""
        if not self.finished:
            self._record({"finished": True})

    def _record(self, entry: Mapping[str, Any]) -> None:
        self._apply(entry)
        try:
            self._out.write(_line(entry))
            self._out.flush()
            os.fsync(self._out.fileno())
        except OSError as error:
            raise UnwritableFile(f"{self.path}: it cannot be written ({error.strerror or error}); free some space") from error

    def close(self) -> None:
        """Close the file, and release the lock."""
        with contextlib.suppress(OSError):
            self._out.close()
        self._unlock()

    def _unlock(self) -> None:
        """Release the lock, and remove the folder of parts if it is empty."""
        with contextlib.suppress(OSError):
            (self._parts / _LOCK).unlink()
            self._parts.rmdir()
        self._lock.close()


def _line(entry: Mapping[str, Any]) -> bytes:
    return json_of(entry, "the manifest", compact=True).encode() + b"\n"


def _leftovers(parts: Path) -> list[Path]:
    """Return the files that an earlier batch left in the folder of parts.

    Raises:
        UnwritableFile: If the folder contains any other file.
    """
    found = [path for path in parts.iterdir() if path.name != _LOCK]
    if foreign := [path for path in found if not _PART.fullmatch(path.name)]:
        raise UnwritableFile(f"{foreign[0]}: it is not a part file of a batch; move it, or choose another output")
    return found


def _lock_folder(path: Path, parts: Path) -> IO[bytes]:
    """Lock the folder of parts while the returned stream is open; without ``fcntl``, as on Windows, nothing is locked."""
    try:
        parts.mkdir(parents=True, exist_ok=True)
        stream = (parts / _LOCK).open("ab")
    except OSError as error:
        raise UnwritableFile(f"{parts}: it cannot be written ({error.strerror}); choose a folder you may write to") from error
    try:
        import fcntl
    except ImportError:
        return stream
    for _ in range(_LOCK_ATTEMPTS):
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return stream
        time.sleep(_LOCK_PAUSE)  # the workers of a killed run hold the lock for about 20 ms more
    stream.close()
    raise StateError(f"{path}: another process is running this batch; wait for it, or stop it")
