"""The store protocol: records of the messages that left a conversation's view, so that nothing compacted is lost.

A store keeps records by session and id. A message's id is a digest of its content and of a salt, so storing it again changes
nothing, and equal messages of two conversations have different ids. A stub or summary is a record too; its children are the
records it stands for.

    >>> StoredRecord.of_message({"role": "user", "content": "tea"}, role="user", text="tea", salt="kim-17").id
    'd1f8887e7e854be9'
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from ..errors import StateError
from ..index import Request
from ..json_data import json_of

RANKED: Final = 20_000
"""The number of newest matches that a search ranks; older ones are left out, and the result says so."""

StoredKind: TypeAlias = Literal["message", "summary", "placeholder"]
"""``summary``: a stub or summary, which stands in the view for other records. ``placeholder``: the very message that shows it
in the view; if that message leaves the view later, its record is there already and leads to what it stands for."""


class NotStored(StateError):
    """There is no record with that id in the session; an id of another session is answered in the same way."""


@attrs.frozen(kw_only=True)
class StoredRecord:
    """A message, stub, summary or placeholder in a store.

    Args:
        id: Its id within the session: 16 hexadecimal digits, or the 8 of a summary's mark.
        kind: Whether it is a message, or stands for others.
        role: The message's role; ``"summary"`` for a stub or summary.
        text: The searchable text: words, results, calls and thoughts. Empty if a search should not find it.
        data: The message or placeholder as JSON text, exactly; empty for a stub or summary.
        children: Ids of the records that it stands for, in order.
        by: The strategy that took it out of the view.
        reason: The reason, in a few words.
        at: The time, in seconds of the run's clock; ``None`` without one.
        tokens: Tokens it took in the view.
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
            salt: The session's name, or another text that differs from conversation to conversation.
            about: ``by``, ``reason``, ``at`` and ``tokens``.

        Raises:
            StateError: If it cannot be written as JSON.
        """
        data = json_of(wire, "a message", escaped=False, finite=False)
        return cls(id=_digest(data, salt), role=role, text=text, data=data, **about)

    @classmethod
    def of_summary(cls, children: Sequence[str], *, salt: str, id: str | None = None, **about: Any) -> StoredRecord:
        """Return the record of a stub or summary.

        Args:
            children: Ids of the records it stands for, in order.
            salt: As for `of_message`.
            id: Its own id; by default a digest of its children and the salt.
            about: ``by``, ``reason``, ``at`` and ``tokens``.
        """
        id = id or _digest("\n".join(children), salt)
        return cls(id=id, kind="summary", role="summary", children=tuple(children), **about)

    @classmethod
    def of_placeholder(cls, wire: Any, children: Sequence[str], *, role: str, salt: str, **about: Any) -> StoredRecord:
        """Return the record of a message that an edit writes in place of others; its id is the one `of_message` gives it.

        Args:
            wire: The message as JSON-ready data.
            children: Ids of the records it stands for, in order.
            role: Its role.
            salt: As for `of_message`.
            about: ``by``, ``reason``, ``at`` and ``tokens``.

        Raises:
            StateError: If it cannot be written as JSON.
        """
        record = cls.of_message(wire, role=role, text="", salt=salt, **about)
        return attrs.evolve(record, kind="placeholder", children=tuple(children))


def _digest(text: str, salt: str) -> str:
    key = hashlib.blake2b(salt.encode("utf-8", "surrogatepass")).digest()
    return hashlib.blake2b(text.encode(), digest_size=8, key=key).hexdigest()


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
    """Counts of the messages that one strategy took out of the view for one reason.

    Args:
        by: The strategy.
        reason: The reason.
        messages: The number of messages.
        tokens: Their tokens.
        chars: Characters of their JSON.
        first_at: When the first was stored; ``None`` without a clock.
        last_at: When the last was stored.
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
    """A description of what a session stored.

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
        """Store these records, all or none, durably before it returns; may be awaited.

        A message or placeholder that is already stored is left as it is, whichever of the two it was first; a stub or summary
        gains the children it lacks.
        """
        ...

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        """Return the records with these ids, in that order.

        Raises:
            NotStored: If the session has none of that id. Whether another session has it makes no difference.
        """
        ...

    def range(self, session: str, first: int, count: int) -> list[StoredRecord]:
        """Return up to ``count`` messages from a position on, in the order they were stored, without what stands for others."""
        ...

    def search(self, session: str, query: str, *, limit: int) -> SearchResult:
        """Return the messages that hold all words of a query, best first; ``"quoted words"`` must stand together.

        Any text is a query; punctuation has no meaning in it.
        """
        ...

    def describe(self, session: str) -> StoreDescription:
        """Return counts of what a session stored, and its newest stubs and summaries."""
        ...


@runtime_checkable
class ForgettingStore(Store, Protocol):
    """A store that can delete messages for good, which `CompactionSession.forget` needs."""

    def forget(self, session: str, records: Sequence[StoredRecord]) -> Awaitable[None] | None:
        """Delete every record of a session that holds one of these messages, and leave no trace of it; may be awaited.

        A record holds a message if it has its id or the same JSON data, the order of keys aside: a fork has copies with the ids
        of another session. Every record of which a child holds it goes too. Deleting what is not there changes nothing.
        """
        ...


@attrs.frozen(kw_only=True)
class StoreRequest(Request):
    """A request to store records before their messages leave the view.

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
