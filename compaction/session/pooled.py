"""A session of a pool, with what the pool must know of it while another turn runs."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import attrs

from ..formats import MessageFormat
from ..index import MessageIndex, Saved
from .list_keys import KnownLine, ListKeys, lookup_key
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

_MOST_VIEWS: Final = 4
_MOST_ENDS: Final = 512


@attrs.frozen(kw_only=True)
class Inheritance:
    """The state that a new session takes over before its first turn.

    Args:
        saved: Messages and edits.
        parent: The name of the session that made the edits; ``None`` if it is the same session, saved before.
        state: What was saved of that session, if it is the same.
    """

    saved: Saved | None = None
    parent: str | None = None
    state: dict[str, Any] | None = None

    @classmethod
    def of(cls, session: CompactionSession, state: dict[str, Any], name: str | None, given: Sequence[Any]) -> Inheritance:
        """Return what a list takes over from a session that was saved: all of it, or what a fork may."""
        if session.index.accounts_for(given, by_id=True):
            return cls(state=state)
        saved = session.index.snapshot
        count = saved.matching(given, saved.format)
        return cls(saved=saved.beginning(count, given[:count]), parent=name)

    @property
    def edits(self) -> int:
        """How many edits of another session are taken over."""
        return 0 if self.saved is None else len(self.saved.journal)


@attrs.frozen(eq=False, kw_only=True)
class KnownConversation:
    """A conversation as of the last turn, which nobody changes while another turn runs.

    Args:
        source: Its messages; there may be more than those known.
        count: How many messages are known.
        format: The format of the messages.
        lines: The source, and the last few views that were sent, each of which a host may continue.
        saved: The messages and edits; ``None`` before the first turn.
    """

    source: Sequence[Any]
    count: int
    format: MessageFormat
    lines: tuple[KnownLine, ...]
    saved: Saved | None = None

    def followed(self, index: MessageIndex) -> KnownConversation:
        """Return the conversation as an index has it now; O(new) digests, O(view) more after a compaction."""
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
        """Return how many first messages of the source a list has, and by which line. C speed."""
        lines = [line for line in self.lines if line.is_specific or by_id]
        shared = [line.shared(self.source, self.count, given, self.format) for line in lines]
        best = shared.index(max(shared))
        return shared[best], lines[best]


@attrs.define(eq=False, kw_only=True)
class PooledSession:
    """A session and how it is found. Holds state: what the pool knows of it, replaced at once by the turn under way.

    Args:
        session: The session.
        space: The scope and format.
        id: The host's id for it, if there is one.
        known: The conversation; before the first turn, the list that it was made for.
        inheritance: What it takes over at its first turn.
        store: Where it is saved.

    Attributes:
        is_gone: Whether the pool no longer has it.
        keys: The keys under which it is found now.
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
        """Whether it has followed a list."""
        return self.known.saved is not None

    def note(self) -> None:
        """Take note of the session as it is; for a caller who holds its lock."""
        self.known = self.known.followed(self.session.index)

    # ---------------------------------------------------------------- judging a list, without the session's lock

    def knows(self, saved: Mapping[str, Any] | None) -> bool:
        """Whether it knows all that the state of its host decides; if not, another process went on with the conversation."""
        return saved is None or self.session.has_had(saved.get("revision"))

    def continues(self, given: Sequence[Any]) -> bool:
        """Whether a list has all of the source as it was, or a whole sent view and all that came after it."""
        known = self.known
        return known.shared(given, by_id=self.id is not None)[0] >= known.count

    def reach(self, given: Sequence[Any]) -> int:
        """Return how many first messages of a list are those of this session, or of a view that was sent."""
        count, line = self.known.shared(given, by_id=self.id is not None)
        return count - line.count + len(line.base) if count else 0

    def part(self, given: Sequence[Any]) -> Inheritance | None:
        """Return what a fork takes over: the messages it shares, and the edits decided when no other had been read."""
        known = self.known
        count, line = known.shared(given, by_id=self.id is not None)
        if known.saved is None or not count:
            return None
        saved = known.saved.beginning(count, (known.source if line.base else given)[:count])
        return Inheritance(saved=saved, parent=self.session.id) if saved.journal else None

    # ---------------------------------------------------------------- keys

    def keys_now(self) -> tuple[str, ...]:
        """Return the keys under which a list that continues it is found."""
        lines = self.known.lines
        found = [end_key(self.space, self.id, -1, lines[0].last)]
        if self.id is not None:
            found.append(id_key(self.space, self.id))
        for line in lines:
            found += [end_key(self.space, self.id, line.length, line.last), whole_key(self.space, self.id, line.whole)]
        return tuple(dict.fromkeys(found))

    def saved_keys(self) -> tuple[str, list[str]]:
        """Return the scope and the keys under which it is saved; called while it is saved."""
        self.note()
        lines = [line for line in self.known.lines if line.is_specific or self.id is not None]
        keys = [whole_key(self.space, self.id, line.whole) for line in lines]
        return self.space, keys if self.id is None else [*keys, id_key(self.space, self.id)]

    def add_ends(self) -> tuple[list[str], list[str]]:
        """Take note of where the lines end now, which is where lists may fork; return the new keys and the forgotten ones."""
        lines = self.known.lines
        now = [fork_key(self.space, line.length, *line.last) for line in lines]
        now += [fork_key(self.space, line.length, line.whole) for line in lines]
        new = [key for key in dict.fromkeys(now) if key not in self.ends[-4 * _MOST_VIEWS :]]
        self.ends += new
        if len(self.ends) <= _MOST_ENDS:
            return new, []
        gone = self.ends[1 : _MOST_ENDS // 2 : 2]
        del self.ends[1 : _MOST_ENDS // 2 : 2]
        return new, gone


def keys_of_saved(space: str, name: str, fingerprints: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the keys of a saved session of which messages went.

    Args:
        space: Its scope and format.
        name: Its name, which has the host's id, if there is one.
        fingerprints: Of its messages.
        before: The keys it had.
    """
    whole, id = "", unquote(name.partition(":")[0].rpartition("/")[2])
    for each in fingerprints:
        whole = lookup_key(whole, lookup_key(each))  # as in `ListKeys`
    of_id = id_key(space, id)
    return [whole_key(space, id, whole), of_id] if of_id in before else [whole_key(space, None, whole)]


def _same(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def end_key(space: str, id: str | None, length: int, last: Sequence[str]) -> str:
    """The key of a list's end: its newest messages and how many there are; -1 for any number."""
    return lookup_key("end", space, id, length, *last)


def whole_key(space: str, id: str | None, whole: str) -> str:
    """The key of a whole list."""
    return lookup_key("whole", space, id, whole)


def fork_key(space: str, length: int, *digests: str) -> str:
    """The key of a place from which a list may fork, by the digests of its newest messages or by that of all."""
    return lookup_key("fork", space, length, *digests)


def id_key(space: str, id: str) -> str:
    """The key of a host's id."""
    return lookup_key("id", space, id)
