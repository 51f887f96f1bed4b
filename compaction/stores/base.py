"""The protocol of stores, which keep the messages that were removed from a conversation's view, and their records.

A store keeps records by session and id. The id of a message is a digest of its content and a salt. So storing a message again
changes nothing, and equal messages of two conversations have different ids. A stub or summary has a record too; its children
are the records it stands for.

    >>> StoredRecord.of_message({"role": "user", "content": "tea"}, role="user", text="tea", salt="kim-17").id
    'd1f8887e7e854be9'
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from ..errors import StateError
from ..index import Request
from ..json_data import json_of, redacted_json

_WORDS: Final = re.compile(r'"([^"]+)"|([^\s"]+)')

RANKED: Final = 20_000  # the number of the newest matches that a search ranks; if there are older ones, the result says so

StoredKind: TypeAlias = Literal["message", "summary", "placeholder"]
"""The kind of a record.

- ``message``: an original message.
- ``summary``: a stub or summary, which stands for other records in the view.
- ``placeholder``: the message in the view that holds a stub or summary. It is stored together with the stub or summary, so it
  can leave the view later without another write.
"""


class NotStored(StateError):
    """The session has no record with this id; whether another session has one makes no difference."""


@attrs.frozen(kw_only=True)
class StoredRecord:
    """A message, stub, summary or placeholder in a store.

    Args:
        id: Its id within the session: 16 hexadecimal digits, or the 8 of a summary's mark.
        kind: A message, or a record that stands for others; see `StoredKind`.
        role: The message's role; ``"summary"`` for a stub or summary.
        text: The searchable text: texts, results, calls and reasoning. Empty if a search should not find the record.
        data: The message or placeholder as JSON text; empty for a stub or summary.
        children: Ids of the records that it stands for, in order.
        by: The strategy that removed it from the view.
        reason: The reason, in a few words.
        at: The time, in seconds of the run's clock; ``None`` without a clock.
        tokens: Its tokens in the view.
        position: Its place among the session's records, from 1; 0 before it is stored.
    """

    id: str
    kind: StoredKind = "message"
    role: str
    text: str = ""
    data: str = ""
    children: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    at: float | None = None
    tokens: int = 0
    position: int = 0

    @classmethod
    def of_message(cls, wire: Any, *, role: str, text: str, salt: str, **about: Any) -> StoredRecord:
        """Return the record of a message; its id is a digest of its content and the salt.

        Args:
            wire: The message as JSON-ready data; the order of its keys is kept.
            role: Its role.
            text: The searchable text.
            salt: The session's name, or another text that is different for each conversation.
            about: ``by``, ``reason``, ``at`` and ``tokens``.

        Raises:
            StateError: If it cannot be written as JSON.
        """
        data = json_of(wire, "a message", escaped=False, finite=False)
        return cls(id=_digest(data, salt), role=role, text=text, data=data, **about)

    @classmethod
    def of_summary(cls, children: Sequence[str], *, salt: str, id: str | None = None, **about: Any) -> StoredRecord:
        """Return the record of a stub or summary that stands for the records with these ids, in order.

        Its own id is by default a digest of these and the salt; the other arguments are those of `of_message`.
        """
        id = id or _digest("\n".join(children), salt)
        return cls(id=id, kind="summary", role="summary", children=tuple(children), **about)

    @classmethod
    def of_placeholder(cls, wire: Any, children: Sequence[str], *, role: str, salt: str, **about: Any) -> StoredRecord:
        """Return the record of a message that an edit writes in place of the records with these ids, in order.

        It has the id that `of_message` would give it; the other arguments are those of that method.
        """
        record = cls.of_message(wire, role=role, text="", salt=salt, **about)
        return attrs.evolve(record, kind="placeholder", children=tuple(children))

    def redacted(self, redact: Callable[[str], str]) -> StoredRecord:
        """Return the record without the secrets in its text and its message, under the same id; O(characters)."""
        data = redacted_json(self.data, redact) if self.data else ""
        return attrs.evolve(self, text=redact(self.text), data=data)


def _digest(text: str, salt: str) -> str:
    key = hashlib.blake2b(salt.encode("utf-8", "surrogatepass")).digest()
    return hashlib.blake2b(text.encode(), digest_size=8, key=key).hexdigest()


def query_words(query: str) -> list[str]:
    """Return the words of a query; quoted words are one.

    >>> query_words('tea "a cup of"')
    ['tea', 'a cup of']
    """
    return [phrase or word for phrase, word in _WORDS.findall(query)]


@attrs.frozen(kw_only=True)
class SearchHit:
    """A message that matches a search.

    Args:
        record: The message.
        score: Its bm25 score; higher is better.
    """

    record: StoredRecord
    score: float


@attrs.frozen(kw_only=True)
class SearchResult:
    """The result of a search.

    Args:
        hits: The best matches, best first.
        matches: The number of messages that were ranked.
        capped: Whether there are older matches that were not ranked.
    """

    hits: tuple[SearchHit, ...]
    matches: int
    capped: bool


@attrs.frozen(kw_only=True)
class StoreCounts:
    """Counts of the messages that one strategy removed from the view for one reason.

    Args:
        by: The strategy.
        reason: The reason.
        messages: The number of messages.
        tokens: Their tokens.
        chars: Characters of their JSON.
        first_at: The time at which the first was stored; ``None`` without a clock.
        last_at: The time at which the last was stored.
    """

    by: str
    reason: str
    messages: int
    tokens: int
    chars: int
    first_at: float | None
    last_at: float | None


@attrs.frozen(kw_only=True)
class StoreDescription:
    """A description of the records of a session.

    Args:
        tallies: Counts by strategy and reason.
        summaries: The newest stubs and summaries, newest first, at most 20.
    """

    tallies: tuple[StoreCounts, ...]
    summaries: tuple[StoredRecord, ...]


@runtime_checkable
class Store(Protocol):
    """Keeps the records of each session apart. Every method raises `StateError` if it fails."""

    def put(self, session: str, records: Sequence[StoredRecord]) -> Awaitable[None] | None:
        """Store all of these records or none, and return when they are durable; may be a coroutine.

        A message or placeholder that is already stored does not change, whichever of the two it is; a stub or summary gets the
        children that it lacks.
        """
        ...

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        """Return the records with these ids, in that order.

        Raises:
            NotStored: If the session does not have one of them.
        """
        ...

    def range(self, session: str, first: int, count: int) -> list[StoredRecord]:
        """Return up to ``count`` original messages from a position on, in the order in which they were stored."""
        ...

    def search(self, session: str, query: str, *, limit: int) -> SearchResult:
        """Return the messages that contain all words of a query, best first; ``"quoted words"`` must be adjacent.

        Any text is a valid query; punctuation is ignored.
        """
        ...

    def describe(self, session: str) -> StoreDescription:
        """Return counts of the messages in a session, and its newest stubs and summaries."""
        ...


@runtime_checkable
class ForgettingStore(Store, Protocol):
    """A store that can delete messages, which `CompactionSession.forget` needs."""

    def forget(self, session: str, records: Sequence[StoredRecord]) -> Awaitable[None] | None:
        """Delete every record of a session that contains one of these messages, with all its bytes; may be a coroutine.

        A record contains a message if it has the message's id, or the same JSON data in any order of keys: a fork has copies
        with the ids of another session. The records that stand for a deleted record are deleted too. Unknown records are
        ignored.
        """
        ...


@attrs.frozen(kw_only=True)
class StoreRequest(Request):
    """A request to store records before their messages are removed from the view.

    Args:
        store: The store.
        session: The session's name.
        records: The records.
    """

    store: Store = attrs.field(eq=False, repr=False)
    session: str
    records: tuple[StoredRecord, ...]

    def call(self) -> Any:
        return self.store.put(self.session, self.records)


def copied(store: Store, parent: str, child: str, ids: Mapping[str, str]) -> Awaitable[None] | None:
    """Copy records of a session, and all records that they stand for, to another session; return what `Store.put` returns.

    ``ids`` has the id in the child for each id in the parent; ids that are not stored are ignored. The copies do not depend on
    the parent: deleting it, or forgetting messages in it, does not change them.
    """
    records: dict[str, StoredRecord] = {}
    waiting = list(ids)
    while waiting:
        id = waiting.pop()
        if id not in records:
            with contextlib.suppress(NotStored):
                [records[id]] = store.get(parent, [id])
                waiting += records[id].children
    records |= {other: attrs.evolve(records[own], id=other) for own, other in ids.items() if own in records}
    return store.put(child, sorted(records.values(), key=lambda record: record.position)) if records else None
