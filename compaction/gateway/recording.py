"""Recordings of conversations, in a log that ``compaction replay`` reads.

Each line contains the messages that a request added to its conversation, without secrets. Breakpoints and headers are not
recorded.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ..files import open_replacement
from ..formats import MessageFormat, fields_of, for_comparison
from ..json_data import redacted_json

_MOST: Final = 1_000


class SessionRecorder:
    """Appends conversations to a file in a folder. Holds state: the digests of the recorded messages of each conversation."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        started = datetime.fromtimestamp(clock(), UTC).strftime("%Y%m%dT%H%M%S")
        self.path = folder / f"gateway-{started}-{os.getpid()}.jsonl"
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, list[bytes]] = OrderedDict()
        self._size = 0  # of the file, in bytes, after the last change that this process made

    def record(self, conversation: str, format: MessageFormat, messages: Sequence[Any]) -> None:
        """Record the messages that a request added, given all of its messages; O(contents)."""
        from ..summarizers import redact  # its patterns take long to compile

        plain = for_comparison(messages, format)
        digests = [hashlib.blake2b(json.dumps(message).encode(), digest_size=16).digest() for message in plain]
        with self._alone():
            if self._size_now() != self._size:  # another process deleted lines, to which the next ones would refer
                self._known.clear()
            known = self._known.pop(conversation, [])
            keep = 0  # the number of recorded messages that are still the first ones
            while keep < min(len(known), len(digests)) and known[keep] == digests[keep]:
                keep += 1
            about = {"gateway": 1, "conversation": conversation, "format": format.name, "at": self._clock()}
            line = {**about, "keep": keep, "messages": plain[keep:]}
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(redacted_json(json.dumps(line), redact) + "\n")
            self._size = self._size_now()
            self._known[conversation] = digests  # only now: after an error, the next line has all messages
            if len(self._known) > _MOST:
                self._known.popitem(last=False)

    def forget(self, conversation: str) -> bool:
        """Delete a conversation from the files of the folder, and return whether one had it; O(files)."""
        found = False
        with self._alone():
            self._known.pop(conversation, None)
            was_changed = self._size_now() != self._size
            for path in sorted(self.path.parent.glob("gateway-*.jsonl")):
                with path.open("rb") as lines:
                    if not any(_is_of(line, conversation) for line in lines):
                        continue
                found = True
                with path.open("rb") as lines, open_replacement(path) as kept:
                    kept.writelines(line for line in lines if not _is_of(line, conversation))
                if not path.stat().st_size:
                    path.unlink()
            if not was_changed:
                self._size = self._size_now()
        return found

    def _size_now(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Let no other thread or process change the files of the folder; without ``fcntl``, as on Windows, no other thread."""
        with self._lock:
            folder = None
            try:
                with suppress(ImportError, OSError):  # some file systems lock no folders
                    import fcntl

                    folder = os.open(self.path.parent, os.O_RDONLY)
                    fcntl.flock(folder, fcntl.LOCK_EX)
                yield
            finally:
                if folder is not None:
                    os.close(folder)


def _is_of(line: bytes, conversation: str) -> bool:
    """Whether a line of a recording belongs to a conversation; one that a crash cut off does if it has the name."""
    if json.dumps(conversation).encode() not in line:
        return False
    try:
        fields = fields_of(json.loads(line)) or {}
    except ValueError:
        return True
    return fields.get("conversation") == conversation
