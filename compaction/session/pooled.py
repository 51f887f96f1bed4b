"""A session of a pool, with a record of it that the pool can read while a turn runs."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import attrs

from ..formats import MessageFormat
from ..index import KnownLine, ListKeys, MessageIndex, Saved, lookup_key, same_beginning
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

_MOST_VIEWS: Final = 4
_MOST_ENDS: Final = 512


@attrs.frozen(kw_only=True)
class Inheritance:
    """The state that a new session starts from.

    Args:
        saved: Messages and edits of another session.
        parent: The name of that session; ``None`` if a saved session is resumed.
        state: The saved state, if a saved session is resumed.
    """

    saved: Saved | None = None
    parent: str | None = None
    state: dict[str, Any] | None = None

    @classmethod
    def of(cls, session: CompactionSession, state: dict[str, Any], name: str | None, given: Sequence[Any]) -> Inheritance:
        """Return what a list inherits from a saved session: the whole state, or the part that a fork takes over."""
        if session.index.accounts_for(given, by_id=True):
            return cls(state=state)
        saved = session.index.snapshot
        count = same_beginning(saved.fingerprints, given, saved.format)
        return cls(saved=saved.beginning(count, given[:count]), parent=name)

    @property
    def edits(self) -> int:
        """The number of edits taken over from another session."""
        return 0 if self.saved is None else len(self.saved.journal)


@attrs.frozen(eq=False, kw_only=True)
class KnownConversation:
    """A conversation as it was after the last turn. Immutable, so the pool can read it while another turn runs.

    Args:
        source: Its messages. A running turn may append to this list.
        count: The number of messages that belong to this record.
        format: The format of the messages.
        lines: The source and the last few views; a host may continue any of them.
        saved: The messages and edits; ``None`` before the first turn.
    """

    source: Sequence[Any]
    count: int
    format: MessageFormat
    lines: tuple[KnownLine, ...]
    saved: Saved | None = None

    def followed(self, index: MessageIndex) -> KnownConversation:
        """Return the record of an index as it is now. Cost: O(new messages), and O(view) after a compaction."""
        source, saved = index.columns.source, index.snapshot
        grew = self._grew_to(source, index)
        lines = [attrs.evolve(line) for line in self.lines] if grew else [KnownLine()]
        keys = ListKeys(source, index.format)
        for digest in map(keys.digest, range(self.count if grew else 0, len(source))):
            for line in lines:
                line.add(digest)
        if saved.journal and not (grew and self.saved is not None and _same(self.saved.journal, saved.journal)):
            lines = [lines[0], *lines[1:][1 - _MOST_VIEWS :], KnownLine.of_view(index.messages(), source, index.format)]
        return KnownConversation(source=source, count=len(source), format=index.format, lines=tuple(lines), saved=saved)

    def _grew_to(self, source: Sequence[Any], index: MessageIndex) -> bool:
        if source is self.source:
            return True
        return not index.changes and index.format.common_prefix(self.source[: self.count], source) >= self.count

    def shared(self, given: Sequence[Any], *, by_id: bool) -> tuple[int, KnownLine]:
        """Return how many of the first source messages a list contains, and the line that it continues."""
        lines = [line for line in self.lines if line.is_specific or by_id]
        shared = [line.shared(self.source, self.count, given, self.format) for line in lines]
        best = shared.index(max(shared))
        return shared[best], lines[best]


@attrs.define(eq=False, kw_only=True)
class PooledSession:
    """A session and how the pool finds it. Holds state: the record ``known``, which each turn replaces in one assignment.

    Args:
        session: The session.
        space: The scope and format, as one key.
        id: The host's id, if there is one.
        known: The conversation; before the first turn, the list for which the session was created.
        inheritance: The state that it takes over at its first turn.
        store: Where it is saved.

    Attributes:
        is_gone: Whether the pool has removed it.
        keys: The keys that lead to it now.
        ends: The keys of the places where its turns ended.
    """

    session: CompactionSession
    space: str
    id: str | None
    known: KnownConversation
    inheritance: Inheritance | None = None
    store: SessionStore | None = None
    is_gone: bool = False
    keys: tuple[str, ...] = ()
    ends: list[str] = attrs.field(factory=list[str])

    @property
    def has_begun(self) -> bool:
        """Whether it has had a turn."""
        return self.known.saved is not None

    def note(self) -> None:
        """Update the record of the session. The caller holds the session's lock."""
        self.known = self.known.followed(self.session.index)

    # ---------------------------------------------------------------- judging a list, without the session's lock

    def knows(self, saved: Mapping[str, Any] | None) -> bool:
        """Whether it includes every edit of a saved state; if not, another process has compacted the conversation since."""
        return saved is None or self.session.has_had(saved.get("revision"))

    def continues(self, given: Sequence[Any]) -> bool:
        """Whether a list contains the whole source unchanged, or a complete earlier view and everything after it."""
        known = self.known
        return known.shared(given, by_id=self.id is not None)[0] >= known.count

    def accounted_for(self, given: Sequence[Any]) -> int:
        """Return how many of the first messages of a list are messages of this session or of an earlier view."""
        count, line = self.known.shared(given, by_id=self.id is not None)
        return count - line.count + len(line.base) if count else 0

    def part(self, given: Sequence[Any]) -> Inheritance | None:
        """Return the inheritance of a fork: the shared messages, and the edits made before any other message arrived."""
        known = self.known
        count, line = known.shared(given, by_id=self.id is not None)
        if known.saved is None or not count:
            return None
        saved = known.saved.beginning(count, (known.source if line.base else given)[:count])
        return Inheritance(saved=saved, parent=self.session.id) if saved.journal else None

    # ---------------------------------------------------------------- keys

    def keys_now(self) -> tuple[str, ...]:
        """Return the keys that lead a continuing list to this session."""
        lines = self.known.lines
        found = [end_key(self.space, self.id, -1, lines[0].last)]
        if self.id is not None:
            found.append(id_key(self.space, self.id))
        for line in lines:
            found += [end_key(self.space, self.id, line.length, line.last), whole_key(self.space, self.id, line.whole)]
        return tuple(dict.fromkeys(found))

    def saved_keys(self) -> tuple[str, list[str]]:
        """Return the scope and the keys under which it is saved. The store calls this while it saves."""
        self.note()
        lines = [line for line in self.known.lines if line.is_specific or self.id is not None]
        keys = [whole_key(self.space, self.id, line.whole) for line in lines]
        return self.space, keys if self.id is None else [*keys, id_key(self.space, self.id)]

    def add_ends(self) -> tuple[list[str], list[str]]:
        """Record where the lines end now, because lists may fork there; return the new keys and the discarded ones.

        A list may also fork before the newest message of the source, which agents alter.
        """
        ends = [(line.length, line.last, line.whole) for line in self.known.lines]
        source = self.known.lines[0]
        ends.append((source.length - 1, *source.before))
        now = [fork_key(self.space, length, *last) for length, last, _ in ends]
        now += [fork_key(self.space, length, whole) for length, _, whole in ends]
        new = [key for key in dict.fromkeys(now) if key not in self.ends[-4 * _MOST_VIEWS :]]
        self.ends += new
        if len(self.ends) <= _MOST_ENDS:
            return new, []
        gone = self.ends[1 : _MOST_ENDS // 2 : 2]
        del self.ends[1 : _MOST_ENDS // 2 : 2]
        return new, gone


def keys_of_saved(space: str, name: str, fingerprints: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the keys of a saved session from which messages were removed.

    Args:
        space: Its scope and format, as one key.
        name: Its name, which contains the host's id, if there is one.
        fingerprints: The fingerprints of the remaining messages.
        before: Its previous keys.
    """
    whole, id = ListKeys.whole_of(fingerprints), unquote(name.partition(":")[0].rpartition("/")[2])
    of_id = id_key(space, id)
    return [whole_key(space, id, whole), of_id] if of_id in before else [whole_key(space, None, whole)]


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return one is other or (len(one) == len(other) and all(map(operator.is_, one, other)))


def end_key(space: str, id: str | None, length: int, last: Sequence[str]) -> str:
    """The key of the end of a list: its newest messages and its length, or -1 for any length."""
    return lookup_key("end", space, id, length, *last)


def whole_key(space: str, id: str | None, whole: str) -> str:
    """The key of a whole list."""
    return lookup_key("whole", space, id, whole)


def fork_key(space: str, length: int, *digests: str) -> str:
    """The key of a place where a list may fork: the digests of its newest messages, or the digest of all."""
    return lookup_key("fork", space, length, *digests)


def id_key(space: str, id: str) -> str:
    """The key of a host's id."""
    return lookup_key("id", space, id)
