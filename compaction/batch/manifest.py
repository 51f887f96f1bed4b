"""The manifest of a batch: a file with a line for each finished slice and output, synced as it is written.

Its first line describes the batch: the job, the inputs with sizes and times, the outputs. A run that finds a manifest resumes
that batch if the description still holds, and refuses otherwise. A last line that a crash cut short is ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
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
_PART: Final = re.compile(r"(\d{6}(-\d{8})?|summaries)\.(part|errors|whole|sqlite)([.-].*)?|\.compaction-\w+\.part")


@attrs.frozen
class BatchPlan:
    """The description of a batch as JSON data: two runs with the same plan write the same bytes.

    Args:
        job: The job's description.
        slice_bytes: The size of a slice.
        sources: The inputs.
        targets: The outputs.
    """

    job: Mapping[str, Any]
    slice_bytes: int
    sources: list[dict[str, Any]]
    targets: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON data."""
        return attrs.asdict(self)

    def differences(self, other: Mapping[str, Any], may_change: set[int]) -> list[str]:
        """Return the differences from an earlier plan, in words.

        Args:
            other: The plan of the earlier run, as JSON data.
            may_change: Inputs that may have changed, because no output was made from them.
        """
        mine, found = data_of(json_of(self.to_dict(), "the plan"), "the plan", dict), list[str]()
        for name, value in mine["job"].items():
            if value != other["job"].get(name):
                found.append(f"{name} was {other['job'].get(name)!r:.200}")
        if self.slice_bytes != other["slice_bytes"]:
            found.append(f"slice_bytes was {other['slice_bytes']:,}")
        before = {source["path"]: source for source in other["sources"]}
        now = {source["path"]: source for source in mine["sources"]}
        found += [f"{path} was not an input" for path in now if path not in before]
        found += [f"{path} was an input" for path in before if path not in now]
        found += [
            f"{path} has changed"
            for path, source in now.items()
            if path in before and source != before[path] and source["number"] not in may_change
        ]
        if mine["targets"] != other["targets"] and not found:
            found.append("the outputs were different")
        return found


class Manifest:
    """Holds state: an open manifest, and what it records.

    Args:
        path: The file.
        parts: The folder of the part files; created if missing, emptied if this is a new batch.
        plan: What this run is to do.
        restart: Whether to discard what an earlier run did.

    Raises:
        StateError: If another process is running this batch, or the file has another plan or is not a manifest.
        UnwritableFile: If it cannot be written.
    """

    def __init__(self, path: Path, parts: Path, plan: BatchPlan, *, restart: bool) -> None:
        self.path = path
        self.done: dict[tuple[int, int], SliceResult] = {}
        self.joined: dict[int, int] = {}
        self.failed: dict[int, str] = {}
        self.finished = False
        self.resumed = path.exists() and not restart
        self._parts = parts
        self._lock = _lock_folder(path, parts)
        try:
            if self.resumed:
                self._read(plan)
            else:
                for stale in _leftovers(parts):
                    stale.unlink()
                with atomic_writer(path) as stream:
                    stream.write(_line({"compaction batch": _VERSION, **plan.to_dict()}))
            self._out = path.open("ab")
        except BaseException:
            self._unlock()
            raise

    def _read(self, plan: BatchPlan) -> None:
        text = self.path.read_bytes()
        complete = text[: text.rfind(b"\n") + 1]
        try:
            first, *rest = [data_of(line, str(self.path), dict) for line in complete.splitlines()]
            if first["compaction batch"] != _VERSION:
                raise KeyError("compaction batch")
            for entry in rest:
                self._apply(entry)
            changed = plan.differences(first, set(self.failed))
        except (StateError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{self.path}: it is not a manifest of this version; move it away, or pass restart") from error
        if changed:
            raise StateError(
                f"{self.path}: it belongs to another batch: {'; '.join(changed[:5])}; undo the change, or restart (--restart)"
            )
        self._check_outputs(plan)
        if self.failed:
            self._remove_failed(plan)
        elif len(complete) < len(text):
            os.truncate(self.path, len(complete))

    def _check_outputs(self, plan: BatchPlan) -> None:
        """Check that each finished output is still there, since its parts are gone.

        Raises:
            StateError: If one is missing or changed.
        """
        for target in plan.targets:
            path, size = Path(target["path"]), self.joined.get(target["number"])
            if size is not None and (not path.exists() or path.stat().st_size != size):
                raise StateError(f"{path}: it was finished, and is missing or changed now; put it back, or restart (--restart)")

    def _remove_failed(self, plan: BatchPlan) -> None:
        """Rewrite the manifest without the inputs that could not be read, so that they are read again."""
        self.done = {key: result for key, result in self.done.items() if key[0] not in self.failed}
        self.failed = {}
        self.finished = False
        with atomic_writer(self.path) as stream:
            stream.write(_line({"compaction batch": _VERSION, **plan.to_dict()}))
            stream.writelines(_line(_entry(result)) for result in self.done.values())
            stream.writelines(_line({"joined": place, "size": size}) for place, size in self.joined.items())

    def _apply(self, entry: dict[str, Any]) -> None:
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
        self.done[result.key] = result
        self._write(_entry(result))

    def record_joined(self, target: int, size: int) -> None:
        """Record that an output is written."""
        self.joined[target] = size
        self._write({"joined": target, "size": size})

    def record_failure(self, source: int, reason: str) -> None:
        """Record that an input could not be read."""
        self.failed[source] = reason
        self._write({"failed": source, "reason": reason})

    def record_finished(self) -> None:
        """Record that the batch is finished."""
        self.finished = True
        self._write({"finished": True})

    def _write(self, entry: dict[str, Any]) -> None:
        try:
            self._out.write(_line(entry))
            self._out.flush()
            os.fsync(self._out.fileno())
        except OSError as error:
            raise UnwritableFile(f"{self.path}: it cannot be written ({error.strerror or error}); make room") from error

    def close(self) -> None:
        """Close the file, and let another process open it."""
        with contextlib.suppress(OSError):
            self._out.close()
        self._unlock()

    def _unlock(self) -> None:
        """Release the lock, and remove the folder of parts if it is empty."""
        with contextlib.suppress(OSError):
            (self._parts / _LOCK).unlink()
            self._parts.rmdir()
        self._lock.close()


def _entry(result: SliceResult) -> dict[str, Any]:
    return {**attrs.asdict(result, recurse=False), "key": list(result.key), "tally": result.tally.to_dict()}


def _line(entry: Mapping[str, Any]) -> bytes:
    return json_of(entry, "the manifest", compact=True).encode() + b"\n"


def _leftovers(parts: Path) -> list[Path]:
    """Return the files that an earlier batch left in the folder of parts.

    Raises:
        UnwritableFile: If the folder holds any other file.
    """
    found = [path for path in parts.iterdir() if path.name != _LOCK]
    if foreign := [path for path in found if not _PART.fullmatch(path.name)]:
        raise UnwritableFile(f"{foreign[0]}: it is in the way, and not a part of a batch; move it, or name another output")
    return found


def _lock_folder(path: Path, parts: Path) -> IO[bytes]:
    """Lock the folder of parts while the returned stream is open; a system without file locks does not keep two runs apart."""
    try:
        parts.mkdir(parents=True, exist_ok=True)
        stream = (parts / _LOCK).open("ab")
    except OSError as error:
        raise UnwritableFile(f"{parts}: it cannot be written ({error.strerror}); name one you may write to") from error
    try:
        import fcntl
    except ImportError:
        return stream
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise StateError(f"{path}: another process is running this batch; wait for it, or stop it") from error
    return stream
