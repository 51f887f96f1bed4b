"""A cache of summaries on disk, so that nothing is paid for twice after a crash, in a second run, or by a second worker.

An answer is kept under a digest of everything that could change it: the summarizer and the request. It is written before
anything else can fail.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any, Final

import attrs

from ..errors import ConfigurationError
from ..messages import MediaPart, Message, Part, ToolCallPart, ToolResultPart
from ..stores import DatabaseFile
from .base import Summarizer, SummaryRequest, asks_model, cache_key_of, timeout_of, usable_text
from .text_generator import as_summarizer

_APPLICATION: Final = 0x636D7073
_SCHEMA: Final = 1
_TABLE: Final = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB NOT NULL) WITHOUT ROWID"
_BUSY_SECONDS: Final = 10.0


def _check_inner(instance: object, attribute: attrs.Attribute[Summarizer], value: Summarizer) -> None:
    cache_key_of(value)


def _checked_path(path: str | os.PathLike[str]) -> str:
    try:
        name, file = os.fspath(path), Path(path)
    except TypeError as error:
        raise ConfigurationError(f"CachedSummarizer: 'path' must be a path (got {path!r})") from error
    if name in ("", ":memory:") or name.startswith("file:"):
        raise ConfigurationError(f"CachedSummarizer: 'path' must name a file (got {name!r}); only a file outlives a process")
    return str(file.absolute())


@attrs.frozen
class CachedSummarizer:
    """A summarizer that remembers the answers of another one in a file.

    The file is an SQLite database that any number of processes and threads may share. It holds summaries in clear text, so it
    is as confidential as the conversations.

    Args:
        inner: The summarizer to ask. Its ``cache_key``, or else its `repr`, must distinguish it from others.
        path: The file; created if it does not exist, readable by its owner alone. Its folder must exist.

    Raises:
        ConfigurationError: If the inner summarizer has no such key, or the path does not name a file.
        StateError: If the file cannot be opened, is another database, is damaged, or is of a newer version.
    """

    inner: Summarizer = attrs.field(converter=as_summarizer, validator=_check_inner)
    path: str = attrs.field(converter=_checked_path)

    def __attrs_post_init__(self) -> None:
        self._database.make()

    @property
    def _database(self) -> DatabaseFile:
        """The database; no connection is kept between two uses, so threads, forks and processes may share the file."""
        return DatabaseFile(
            path=Path(self.path), tables=(_TABLE,), schema=_SCHEMA, application=_APPLICATION, timeout_seconds=_BUSY_SECONDS
        )

    @property
    def cache_key(self) -> str:
        """The inner summarizer's key."""
        return cache_key_of(self.inner)

    @property
    def asks_model(self) -> bool:
        """Whether the inner summarizer asks a model."""
        return asks_model(self.inner)

    @property
    def timeout_seconds(self) -> float | None:
        """Seconds that an answer may take: those of the inner summarizer."""
        return timeout_of(self.inner)

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the remembered answer, or the inner summarizer's, which may be an awaitable.

        Raises:
            SummaryFailed: If the inner summarizer fails; failures are not remembered.
            StateError: If the file cannot be read or written.
        """
        key = _digest_of(request, self.cache_key)
        known = self._read(key)
        if known is not None:
            return known
        answer = self.inner.summarize(request)
        return self._awaited(key, answer) if isinstance(answer, Awaitable) else self._write(key, answer)

    async def _awaited(self, key: str, answer: Awaitable[str]) -> str:
        return self._write(key, await answer)

    def _read(self, key: str) -> str | None:
        with self._database.open() as database:
            row = database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0]).decode("utf-8", "surrogatepass")

    def _write(self, key: str, answer: str) -> str:
        text = usable_text(answer).encode("utf-8", "surrogatepass")
        with self._database.open() as database:
            database.execute("INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", (key, text))
        return answer


def _digest_of(request: SummaryRequest, summarizer: str) -> str:
    """Return a digest of everything that the answer of the summarizer with this key can depend on; O(its text)."""
    fields: dict[str, Any] = {
        "summarizer": summarizer,
        "groups": [_messages(group.messages) for group in request.groups],
        "kept": [_messages(group.messages) for group in request.kept],
        "originals": _messages(request.originals),
        "sources": _messages(request.sources),
        "previous": request.previous,
        "said": request.said,
        "budget": request.budget,
        "counter": request.counter.name,
        "focus": request.focus,
        "language": request.language,
        "template": attrs.asdict(request.template),
    }
    text = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _messages(messages: Iterable[Message]) -> list[Any]:
    return [[message.role, message.name, [_part(part) for part in message.parts]] for message in messages]


def _part(part: Part) -> list[Any]:
    """Return a part as JSON-ready data: its kind and what a summarizer can see of it."""
    kind = type(part).__name__
    if isinstance(part, ToolCallPart):
        return [kind, part.id, part.name, part.arguments]
    if isinstance(part, ToolResultPart):
        return [kind, part.call_id, part.text, part.failed, [_part(medium) for medium in part.media]]
    if isinstance(part, MediaPart):
        return [kind, part.kind, part.name, part.detail, part.size_bytes]
    return [kind, part.text]
