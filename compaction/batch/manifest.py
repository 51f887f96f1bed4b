"""What a batch has finished, on disk: one line for each slice and each output, synced as it is written.

The first line says what the batch is: its job, its inputs with sizes and times, its outputs. A run that finds a manifest goes
on with it if that line is still true, and refuses if not. A line that was cut short by a crash counts as not written.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import attrs

from ..errors import StateError, UnwritableFile
from .parts import sealed
from .tally import Tally
from .working import Done

__all__ = ["Manifest", "Plan"]

_VERSION: Final = 1
_LOCK: Final = "lock"
_PART: Final = re.compile(r"(\d{6}(-\d{8})?|summaries)\.(part|errors|whole|sqlite)([.-].*)?")


@attrs.frozen
class Plan:
    """What a batch is to do, as JSON data: two runs with the same plan write the same bytes.

    Args:
        job: The job's description.
        slice_bytes: How large a slice is.
        sources: The inputs.
        targets: The outputs.
    """

    job: Mapping[str, Any]
    slice_bytes: int
    sources: list[dict[str, Any]]
    targets: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return attrs.asdict(self)

    def differences(self, other: Mapping[str, Any], forgiven: set[int]) -> list[str]:
        """What is not as it was, in words.

        Args:
            other: The plan of the run before.
            forgiven: Inputs that may have changed, because nothing was made of them.
        """
        mine, found = json.loads(json.dumps(self.to_dict())), list[str]()
        for name, value in mine["job"].items():
            if value != other["job"].get(name):
                found.append(f"{name} was {other['job'].get(name)!r:.200}")
        if self.slice_bytes != other["slice_bytes"]:
            found.append(f"slice_bytes was {other['slice_bytes']:,}")
        before = {source["path"]: source for source in other["sources"]}
        now = {source["path"]: source for source in mine["sources"]}
        found += [f"{path} was no input" for path in now if path not in before]
        found += [f"{path} was an input" for path in before if path not in now]
        found += [
            f"{path} has changed"
            for path, source in now.items()
            if path in before and source != before[path] and source["number"] not in forgiven
        ]
        if mine["targets"] != other["targets"] and not found:
            found.append("the outputs were others")
        return found


class Manifest:
    """Holds state: an open manifest, and what it says is done.

    Args:
        path: The file.
        parts: The folder of the parts; made if it is not there, emptied if this is a new batch.
        plan: What this run is to do.
        restart: Whether to forget what an earlier run did.

    Raises:
        StateError: If another process is at work on it, if it is of another plan, or no manifest.
        UnwritableFile: If it cannot be written.
    """

    def __init__(self, path: Path, parts: Path, plan: Plan, *, restart: bool) -> None:
        self.path = path
        self.done: dict[tuple[int, int], Done] = {}
        self.joined: dict[int, int] = {}
        self.failed: dict[int, str] = {}
        self.finished = False
        self.resumed = path.exists() and not restart
        self._parts = parts
        self._lock = _locked(path, parts)
        try:
            if self.resumed:
                self._read(plan)
            else:
                for stale in _ours(parts):
                    stale.unlink()
                with sealed(path) as stream:
                    stream.write(_line({"compaction batch": _VERSION, **plan.to_dict()}))
            self._out = path.open("ab")
        except BaseException:
            self._unlock()
            raise

    def _read(self, plan: Plan) -> None:
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        try:
            first, *rest = [json.loads(line) for line in whole.splitlines()]
            if first["compaction batch"] != _VERSION:
                raise KeyError("compaction batch")
            for entry in rest:
                self._take(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self.path}: it is no manifest of this version; move it away, or pass restart") from error
        changed = plan.differences(first, set(self.failed))
        if changed:
            raise StateError(
                f"{self.path}: what was begun was another batch: {'; '.join(changed[:5])}; put it back, or restart (--restart)"
            )
        self._check_outputs(plan)
        if self.failed:
            self._forget_failed(plan)
        elif len(whole) < len(text):
            os.truncate(self.path, len(whole))

    def _check_outputs(self, plan: Plan) -> None:
        """See that each output that was finished still stands: what it was made of is gone."""
        for target in plan.targets:
            path, size = Path(target["path"]), self.joined.get(target["number"])
            if size is not None and (not path.exists() or path.stat().st_size != size):
                raise StateError(f"{path}: it was finished, and is no longer what it was; put it back, or restart (--restart)")

    def _forget_failed(self, plan: Plan) -> None:
        """Write the manifest anew without the inputs that could not be read: they are read again, as they are now."""
        self.done = {key: done for key, done in self.done.items() if key[0] not in self.failed}
        self.failed = {}
        self.finished = False
        with sealed(self.path) as stream:
            stream.write(_line({"compaction batch": _VERSION, **plan.to_dict()}))
            stream.writelines(_line(_entry(done)) for done in self.done.values())
            stream.writelines(_line({"joined": place, "size": size}) for place, size in self.joined.items())

    def _take(self, entry: dict[str, Any]) -> None:
        if "key" in entry:
            first, second = entry["key"]
            tally = Tally.from_dict(entry["tally"])
            self.done[first, second] = Done((first, second), entry["size"], entry["errors"], entry["weight"], tally)
        elif "joined" in entry:
            self.joined[entry["joined"]] = entry["size"]
        elif "failed" in entry:
            self.failed[entry["failed"]] = entry["reason"]
        else:
            self.finished = bool(entry["finished"])

    def note_done(self, done: Done) -> None:
        """A slice is finished, and its part stands."""
        self.done[done.key] = done
        self._write(_entry(done))

    def note_joined(self, target: int, size: int) -> None:
        """An output stands."""
        self.joined[target] = size
        self._write({"joined": target, "size": size})

    def note_failed(self, source: int, reason: str) -> None:
        """An input could not be read."""
        self.failed[source] = reason
        self._write({"failed": source, "reason": reason})

    def note_finished(self) -> None:
        """All is done."""
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
        """Let another process have it."""
        with contextlib.suppress(OSError):
            self._out.close()
        self._unlock()

    def _unlock(self) -> None:
        """Give up the lock, and the folder of parts if there are none."""
        with contextlib.suppress(OSError):
            (self._parts / _LOCK).unlink()
            self._parts.rmdir()
        self._lock.close()


def _entry(done: Done) -> dict[str, Any]:
    return {**attrs.asdict(done, recurse=False), "key": list(done.key), "tally": done.tally.to_dict()}


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _ours(parts: Path) -> list[Path]:
    """What an earlier batch left among the parts.

    Raises:
        UnwritableFile: If anything else stands there.
    """
    found = [path for path in parts.iterdir() if path.name != _LOCK]
    if foreign := [path for path in found if not _PART.fullmatch(path.name)]:
        raise UnwritableFile(f"{foreign[0]}: it is in the way, and no part of a batch; move it, or name another output")
    return found


def _locked(path: Path, parts: Path) -> IO[bytes]:
    """A lock among the parts, held while the stream is open; where the system has none, two runs are not kept apart."""
    try:
        parts.mkdir(parents=True, exist_ok=True)
        stream = (parts / _LOCK).open("ab")
    except OSError as error:
        raise UnwritableFile(f"{parts}: it cannot be written ({error.strerror}); name an output you may write to") from error
    try:
        import fcntl
    except ImportError:
        return stream
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        stream.close()
        raise StateError(f"{path}: another process is at work on this batch; wait for it, or stop it") from error
    return stream
