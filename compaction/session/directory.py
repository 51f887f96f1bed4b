"""The directory of a pool: its sessions, the keys that lead to each, and the order in which they are evicted.

Nothing here waits for a session. While a call of a session runs, the directory uses the pool's own record of that session.
"""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import attrs

from ..errors import ConfigurationError, InputError
from ..formats import MessageFormat
from ..index import KnownLine, ListKeys, MessageIndex, Saved, lookup_key, same_beginning
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

_MOST_VIEWS: Final = 4
_MOST_PLACES: Final = 512


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
    """A conversation as it was after the last call. Immutable, so the pool can read it while another call runs.

    Args:
        source: Its messages. A running call may append to this list.
        count: The number of messages that belong to this record.
        format: The format of the messages.
        lines: The source and the last few views; a host may continue any of them.
        saved: The messages and edits; ``None`` before the first call.
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
    """A session and how the pool finds it. Holds state: the record ``known``, which each call replaces in one assignment.

    Args:
        session: The session.
        space: The scope and format, as one key.
        id: The host's id, if there is one.
        known: The conversation; before the first call, the list for which the session was created.
        inheritance: The state that it takes over at its first call.
        store: Where it is saved.

    Attributes:
        is_gone: Whether the pool has removed it.
        keys: The keys that lead to it now, apart from ``places``.
        places: The keys of the places where its calls ended: a list continues it there, or forks there.
    """

    session: CompactionSession
    space: str
    id: str | None
    known: KnownConversation
    inheritance: Inheritance | None = None
    store: SessionStore | None = None
    is_gone: bool = False
    keys: tuple[Hashable, ...] = ()
    places: list[Hashable] = attrs.field(factory=list[Hashable])

    @property
    def has_begun(self) -> bool:
        """Whether it has had a call."""
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

    def keys_now(self) -> tuple[Hashable, ...]:
        """Return the keys that lead lists to this session that the host has altered."""
        tail = tail_key(self.space, self.id, self.known.lines[0].last)
        return (tail,) if self.id is None else (tail, id_key(self.space, self.id))

    def saved_keys(self) -> tuple[str, list[str]]:
        """Return the scope and the keys under which it is saved. The store calls this while it saves."""
        self.note()
        lines = [line for line in self.known.lines if line.is_specific or self.id is not None]
        keys = [whole_key(self.space, self.id, line.whole) for line in lines]
        return self.space, keys if self.id is None else [*keys, id_key(self.space, self.id)]

    def add_places(self) -> tuple[list[Hashable], list[Hashable]]:
        """Record where the lines end now; return the new keys and the discarded ones.

        A list may also fork before the newest message of the source, which agents alter.
        """
        ends = [(line.length, line.last, line.whole) for line in self.known.lines]
        source = self.known.lines[0]
        ends.append((source.length - 1, *source.before))
        now = [place_key(self.space, length, *last) for length, last, _ in ends]
        now += [place_key(self.space, length, whole) for length, _, whole in ends]
        new = [key for key in dict.fromkeys(now) if key not in self.places[-4 * _MOST_VIEWS :]]
        self.places += new
        if len(self.places) <= _MOST_PLACES:
            return new, []
        gone = self.places[1 : _MOST_PLACES // 2 : 2]
        del self.places[1 : _MOST_PLACES // 2 : 2]
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


def tail_key(space: str, id: str | None, last: Sequence[str]) -> Hashable:
    """The key of the newest messages of a list of any length.

    It is not saved, so it needs no digest: a search makes one for each message of a new list.
    """
    return space, id, *last


def whole_key(space: str, id: str | None, whole: str) -> str:
    """The key of a whole list."""
    return lookup_key("whole", space, id, whole)


def place_key(space: str, length: int, *digests: str) -> Hashable:
    """The key of the end of a list, likewise: its length and the digests of its newest messages, or the digest of all."""
    return space, length, *digests


def id_key(space: str, id: str) -> str:
    """The key of a host's id."""
    return lookup_key("id", space, id)


_MOST_COMPARED: Final = 8  # sessions with the same key that are compared with a list one by one
_MOST_ALIGNED: Final = 3  # sessions that are aligned with a list, which costs O(contents)


@attrs.define(eq=False, kw_only=True)
class ListRequest:
    """The search for the session of a list. Holds state: the results so far.

    Args:
        given: The list.
        keys: Its digests.
        space: Its scope and format, as one key.
        scopes: The names of its scopes.
        id: The host's id.
        overhead_tokens: As for `CompactionSession.follow`.
        saved: The state that the host keeps, if any.

    Attributes:
        refused: Sessions that the list does not continue.
        perhaps: Sessions that it may continue, and for each, whether its newest messages are in the list.
        parent: The session that shares the most messages with the list.
        judged: Sessions that it continues, each with the source and the number of known messages at the time of the comparison.
    """

    given: list[Any]
    keys: ListKeys
    space: str
    scopes: tuple[str, ...]
    id: str | None
    overhead_tokens: int
    saved: Mapping[str, Any] | None = None
    refused: set[PooledSession] = attrs.field(factory=set[PooledSession])
    perhaps: dict[PooledSession, bool] = attrs.field(factory=dict[PooledSession, bool])
    parent: PooledSession | None = None
    judged: dict[PooledSession, tuple[Sequence[Any], int]] = attrs.field(factory=dict[PooledSession, tuple[Sequence[Any], int]])

    def continues(self, session: PooledSession) -> bool:
        """Whether the list continues a session that was not refused. Compared once for each state of the session."""
        if session in self.refused or not session.knows(self.saved):
            return False
        known = (session.known.source, session.known.count)
        judged = self.judged.get(session)
        if judged is not None and judged[0] is known[0] and judged[1] == known[1]:
            return True
        continues = session.continues(self.given)
        if continues:
            self.judged[session] = known
        return continues

    def accounts_for(self, session: PooledSession) -> bool:
        """Whether a list in which the host changed messages still belongs to a session. The caller holds the session's lock."""
        try:
            return session.session.index.accounts_for(self.given, by_id=self.id is not None)
        except InputError:
            return False

    @property
    def name(self) -> str | None:
        """The name of the first session with the host's id; ``None`` without an id."""
        return None if self.id is None else "/".join([quote(each, safe="") for each in (*self.scopes, self.id) if each])


class SessionDirectory:
    """The sessions of a pool. Holds state; callers hold the pool's lock.

    Args:
        limit: The largest number of sessions, >= 1.
        max_bytes: The largest size of all their messages, in bytes, >= 1.

    Attributes:
        bytes: The size of all their messages, in bytes.
        changes: The number of changes so far; while it is the same, a search finds the same.

    Raises:
        ConfigurationError: If a limit is below 1.
    """

    def __init__(self, *, limit: int, max_bytes: int) -> None:
        for name, bound in (("limit", limit), ("max_bytes", max_bytes)):
            if bound < 1:
                raise ConfigurationError(f"{name}={bound!r}: a pool needs room for one session; use 1 or more")
        self._limit = limit
        self._max_bytes = max_bytes
        self.bytes = 0
        self.changes = 0
        self._sessions: OrderedDict[PooledSession, int] = OrderedDict()  # the least recently used first; their bytes
        self._names: dict[str, PooledSession] = {}
        self._by_key: dict[Hashable, dict[PooledSession, None]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, session: PooledSession) -> bool:
        """Add a session and return true; return false if there is another of that name."""
        if session.session.id in self._names:
            return False
        self._names[session.session.id] = session
        self.register(session)
        return True

    def find(self, request: ListRequest) -> PooledSession | None:
        """Return the session that the list certainly continues; otherwise record the possible ones and the parent of a fork."""
        space, id, keys = request.space, request.id, request.keys
        request.perhaps, request.parent = {}, None
        if id is not None:
            of_id = self._newest(id_key(space, id))
            if (found := next(filter(request.continues, of_id), None)) is not None:
                return found
            request.perhaps.update(dict.fromkeys(of_id[:1], False))
        for count in range(len(request.given), 0, -1):
            last = keys.last(count)
            here = self._newest(place_key(space, count, *last))
            if len(here) == _MOST_COMPARED:
                here = self._newest(place_key(space, count, keys.whole(count)))
            if (found := next((each for each in here if each.id == id and request.continues(each)), None)) is not None:
                return found
            for each in self._newest(tail_key(space, id, last))[:_MOST_ALIGNED]:
                if each in request.perhaps or len(request.perhaps) < _MOST_ALIGNED:
                    request.perhaps[each] = True
            most, parent = max(
                ((each.accounted_for(request.given), each) for each in here), key=itemgetter(0), default=(0, None)
            )
            if parent is not None and most >= count:
                request.parent = parent
                if parent.id == id:
                    request.perhaps.setdefault(parent, False)
                break
        return None

    def _newest(self, key: Hashable) -> list[PooledSession]:
        """Return the newest sessions with a key, the newest first."""
        return list(itertools.islice(reversed(self._by_key.get(key, {})), _MOST_COMPARED))

    def register(self, session: PooledSession) -> None:
        """Update the keys of a session, and make it the most recently used one."""
        self.changes += 1
        now = session.keys_now()
        new, discarded = session.add_places()
        self._leave(session, [*set(session.keys).difference(now), *discarded])
        session.keys = now
        for key in (*now, *new):
            sessions = self._by_key.setdefault(key, {})
            sessions[session] = None
            if len(sessions) > _MOST_COMPARED:
                del sessions[next(iter(sessions))]
        size = session.session.index.total.bytes
        self.bytes += size - self._sessions.get(session, 0)
        self._sessions[session] = size
        self._sessions.move_to_end(session)

    def named(self, name: str) -> PooledSession | None:
        """Return the session with a name; ``None`` if it is not in memory."""
        return self._names.get(name)

    def in_space(self, space: str) -> list[PooledSession]:
        """Return the sessions of a scope and format."""
        return [session for session in self._sessions if session.space == space]

    def renew(self, session: PooledSession) -> None:
        """Register a session again, without the keys of its earlier calls."""
        self._leave(session, [*session.keys, *session.places])
        session.keys, session.places = (), []
        self.register(session)

    def evict(self) -> list[tuple[PooledSession, str]]:
        """Remove sessions above the limits, least recently used first, except those with a running call."""
        evicted: list[tuple[PooledSession, str]] = []
        for session in list(self._sessions) if self._over() else ():
            if (why := self._over()) is None:
                break
            with session.session.lock.if_free() as free:
                if free:
                    self.remove(session)
                    evicted.append((session, why))
        return evicted

    def _over(self) -> str | None:
        if len(self._sessions) > self._limit:
            return "count"
        return "bytes" if self.bytes > self._max_bytes else None

    def remove(self, session: PooledSession) -> None:
        """Remove a session."""
        self.changes += 1
        session.is_gone = True
        self._leave(session, [*session.keys, *session.places])
        self.bytes -= self._sessions.pop(session, 0)
        if self._names.get(session.session.id) is session:
            del self._names[session.session.id]

    def _leave(self, session: PooledSession, keys: Iterable[Hashable]) -> None:
        for key in keys:
            if sessions := self._by_key.get(key):
                sessions.pop(session, None)
                if not sessions:
                    del self._by_key[key]
