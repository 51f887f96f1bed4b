"""What a store is: the place where messages wait that left a conversation's view, so that nothing compacted is lost.

A store keeps records by session and id. A message's id is a digest of its content, so storing it again changes nothing; a stub
or summary is a record too, whose children are what it stands for.

    >>> Record.of_message({"role": "user", "content": "tea"}, role="user", text="tea").id
    '883bf28bdc0546a1'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from ..edits import Request
from ..errors import StateError

__all__ = ["RANKED", "Description", "Found", "Hit", "NotStored", "Record", "RecordKind", "Store", "StoreRequest", "Tally"]

RANKED: Final = 20_000
"""How many of the newest matches a search ranks; older ones are left out, and the answer says so."""

RecordKind: TypeAlias = Literal["message", "summary"]
"""``summary``: what stands in a view for other records, a stub or a summary."""


class NotStored(StateError):
    """There is no record of that id, or it belongs to another session."""


@attrs.frozen(kw_only=True)
class Record:
    """One thing a store keeps.

    Args:
        id: Its name within the session: 16 hexadecimal digits, or the 8 of a summary's mark.
        kind: Whether it is a message or stands for others.
        role: The message's role; of a summary, ``"summary"``.
        text: What can be searched: its words, results, calls and thoughts. Empty if it should not be found.
        data: The message as JSON text, exactly; a summary has none.
        children: Ids of what a summary stands for, in order.
        by: The strategy that took it out of the view.
        reason: Why, in a few words.
        at: When, in seconds of the clock passed in with the run; ``None`` without one.
        tokens: Tokens it took in the view.
        position: Its place among what the session stored, from 1; 0 before it is stored.
    """

    id: str
    kind: RecordKind = "message"
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
    def of_message(cls, wire: Any, *, role: str, text: str, **about: Any) -> Record:
        """The record of a message; its id is a digest of its content.

        Args:
            wire: The message as JSON-ready data; the order of its keys is kept.
            role: Its role.
            text: What can be searched.
            about: ``by``, ``reason``, ``at`` and ``tokens``.

        Raises:
            StateError: If it cannot be written as JSON.
        """
        data = _json_text(wire)
        return cls(id=_digest(data), role=role, text=text, data=data, **about)

    @classmethod
    def of_summary(cls, children: Sequence[str], *, id: str | None = None, **about: Any) -> Record:
        """The record of a stub or summary.

        Args:
            children: Ids of what it stands for, in order.
            id: Its own id; by default a digest of its children.
            about: ``by``, ``reason``, ``at`` and ``tokens``.
        """
        return cls(id=id or _digest("\n".join(children)), kind="summary", role="summary", children=tuple(children), **about)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _json_text(wire: Any) -> str:
    """JSON that reads back as the same data; characters as they are, or escaped if one of them is half a sign."""
    try:
        text = json.dumps(wire, ensure_ascii=False)
        return text if _is_utf8(text) else json.dumps(wire)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"a message cannot be stored, it is no JSON ({error}); it stays in the view") from error


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@attrs.frozen(kw_only=True)
class Hit:
    """A message that matches a search.

    Args:
        record: The message.
        score: How well, by bm25; higher is better.
    """

    record: Record
    score: float


@attrs.frozen(kw_only=True)
class Found:
    """What a search found.

    Args:
        hits: The best, best first.
        matches: How many messages were ranked.
        capped: Whether there are older matches that were not ranked.
    """

    hits: tuple[Hit, ...]
    matches: int
    capped: bool


@attrs.frozen(kw_only=True)
class Tally:
    """What one strategy took out of the view for one reason.

    Args:
        by: The strategy.
        reason: Why.
        messages: How many messages.
        tokens: Their tokens.
        chars: Characters of their JSON.
        first_at: When the first was stored; ``None`` without a clock.
        last_at: When the last was.
    """

    by: str
    reason: str
    messages: int
    tokens: int
    chars: int
    first_at: float | None
    last_at: float | None


@attrs.frozen(kw_only=True)
class Description:
    """What a session stored.

    Args:
        tallies: Sums by strategy and reason.
        summaries: The newest stubs and summaries, newest first, at most 20.
    """

    tallies: tuple[Tally, ...]
    summaries: tuple[Record, ...]


@runtime_checkable
class Store(Protocol):
    """Keeps records; each session's apart. Every method raises `StateError` if it cannot do what it says."""

    def put(self, session: str, records: Sequence[Record]) -> Awaitable[None] | None:
        """Keep these records, all or none, safe against a crash from when it returns; may be awaited.

        A message that is there already is left as it is; a summary gains the children it lacks.
        """
        ...

    def get(self, session: str, ids: Sequence[str]) -> list[Record]:
        """The records with these ids, in that order; what does not exist, or belongs to another session, is an error."""
        ...

    def range(self, session: str, first: int, count: int) -> list[Record]:
        """Up to ``count`` messages from a position on, in the order they were stored; summaries left out."""
        ...

    def search(self, session: str, query: str, *, limit: int) -> Found:
        """The messages that hold all words of a query, best first; ``"quoted words"`` have to stand together.

        Any text is a query; signs have no meaning in it.
        """
        ...

    def describe(self, session: str) -> Description:
        """What a session stored, in sums."""
        ...


@attrs.frozen(kw_only=True)
class StoreRequest(Request):
    """Records to be stored before what they hold may leave the view.

    Args:
        store: Where to.
        session: Whose they are.
        records: What.
    """

    store: Store = attrs.field(eq=False, repr=False)
    session: str
    records: tuple[Record, ...]

    def call(self) -> Any:
        return self.store.put(self.session, self.records)
