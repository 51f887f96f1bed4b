"""The directory of a pool: its sessions, the keys that lead to each, and the order in which they are evicted.

Nothing here waits for a session. While a call of a session runs, the directory uses the pool's own record of that session.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import attrs

from ..checks import checked_count
from ..errors import InputError
from ..formats import MessageFormat, same
from ..index import MessageIndex, Saved, known_key, lookup_key
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

_NEWEST: Final = 3  # messages in the key of the end of a list
_MOST_VIEWS: Final = 4
_MOST_PLACES: Final = 512


@attrs.define(eq=False, kw_only=True)
class KnownLine:
    """A list that a host may continue: the source, or an earlier view with the messages after it. Holds state: its end."""

    base: Sequence[Any] = ()  # the view; empty for the source
    count: int = 0  # the number of source messages that the view replaces
    last: tuple[str, ...] = ()  # the digests of the newest messages
    whole: str = ""  # one digest of all messages
    before: tuple[tuple[str, ...], str] = ((), "")  # ``last`` and ``whole`` without the newest message
    is_specific: bool = True  # whether the view cannot be confused with the beginning of another conversation

    @classmethod
    def of(cls, keys: Iterable[str]) -> KnownLine:
        """Return the line of a source with these keys."""
        line = cls()
        for key in keys:
            line.add(key)
        return line

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> KnownLine:
        """Return the line of a new view; O(contents)."""
        line = cls.of(known_key(raw, format) for raw in view)
        known = set(map(id, source))
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False))
        gap = sum(1 for _ in same)
        is_ours = any(id(raw) not in known for raw in view)
        return attrs.evolve(line, base=view, count=len(source), is_specific=is_ours or len(view) - gap >= _NEWEST)

    def add(self, digest: str) -> None:
        """Append a message of the source."""
        self.before = (self.last, self.whole)
        self.last = (*self.last, digest)[-_NEWEST:]
        self.whole = lookup_key(self.whole, digest)

    def shared(self, source: Sequence[Any], known: int, given: Sequence[Any], format: MessageFormat) -> int:
        """Return how many of the first messages of the source a list contains, if it continues this line.

        Args:
            source: The source.
            known: How many messages of the source to compare.
            given: The list.
            format: The format, which compares messages.
        """
        if not self.base:
            return format.common_prefix(source if len(source) == known else source[:known], given)
        if len(given) < len(self.base) or format.common_prefix(self.base, given) < len(self.base):
            return 0
        return self.count + format.common_prefix(source[self.count : known], given[len(self.base) :])


@attrs.frozen
class Forked:
    """The state that a fork takes over."""

    saved: Saved  # the shared messages, and the edits made before any other message arrived
    parent: str  # the name of the session that the fork leaves; empty if it is not known


@attrs.frozen(eq=False, kw_only=True)
class KnownConversation:
    """A conversation as it was after the last call. Immutable, so the pool can read it while another call runs."""

    source: Sequence[Any]  # its messages. A running call may append to this list
    count: int  # the number of messages that belong to this record
    format: MessageFormat
    is_named: bool  # whether the host names the conversation by an id
    lines: tuple[KnownLine, ...]  # the source and the last few views
    saved: Saved | None = None  # the messages and edits; ``None`` before the first call

    def followed(self, index: MessageIndex) -> KnownConversation:
        """Return the record of an index as it is now. Cost: O(new messages), and O(view) after a compaction."""
        source, saved = index.columns.source, index.snapshot
        edited = self.saved is None or not same(self.saved.journal, saved.journal)
        grew = source is self.source or (
            not index.changes and index.format.common_prefix(self.source[: self.count], source) == self.count
        )
        lines = [attrs.evolve(line) for line in self.lines] if grew else [KnownLine()]
        for raw in source[self.count if grew else 0 :]:
            digest = known_key(raw, index.format)
            for line in lines:
                line.add(digest)
        if saved.journal and (edited or not grew):
            views = [*lines[1:], KnownLine.of_view(index.messages(), source, index.format)]
            lines = [lines[0], *views[-_MOST_VIEWS:]]
        return attrs.evolve(self, source=source, count=len(source), format=index.format, lines=tuple(lines), saved=saved)

    @property
    def certain_lines(self) -> list[KnownLine]:
        """The lines that a list of this conversation may continue, and a list of no other."""
        return [line for line in self.lines if line.is_specific or self.is_named]

    def shared(self, given: Sequence[Any]) -> tuple[int, KnownLine]:
        """Return how many of the first source messages a list contains, and the line that it continues."""
        lines = self.certain_lines
        shared = [line.shared(self.source, self.count, given, self.format) for line in lines]
        best = shared.index(max(shared))
        return shared[best], lines[best]


@attrs.define(eq=False, kw_only=True)
class PooledSession:
    """A session and how the pool finds it. Holds state: the record ``known``, which each call replaces in one assignment."""

    session: CompactionSession
    space: str  # the scope and format, as one key
    id: str | None  # the host's id, if there is one
    known: KnownConversation  # the conversation; before the first call, the list for which the session was created
    fork: Forked | None = None  # the state that it takes over at its first call
    store: SessionStore | None = None  # where it is saved
    is_gone: bool = False  # whether the pool has removed it
    # the keys of its lines as they are now, and of the host's id
    keys: dict[Hashable, None] = attrs.field(factory=dict[Hashable, None])
    # those, and the keys of earlier calls, because lists may fork there; the newest last
    places: dict[Hashable, None] = attrs.field(factory=dict[Hashable, None])

    @property
    def has_begun(self) -> bool:
        """Whether it has had a call."""
        return self.known.saved is not None

    def note(self) -> None:
        """Update the record of the session. The caller holds the session's lock."""
        self.known = self.known.followed(self.session.index)

    def knows(self, saved: Mapping[str, Any] | None) -> bool:
        """Whether it includes every edit of a saved state; if not, another process has compacted the conversation since."""
        return saved is None or self.session.has_had(saved.get("revision"))

    def forked(self, given: Sequence[Any]) -> Forked | None:
        """Return the state that a list takes over if it forks from this session; ``None`` if no edit remains."""
        known = self.known
        count, line = known.shared(given)
        if known.saved is None:
            return None
        saved = known.saved.beginning(count, (known.source if line.base else given)[:count])
        return Forked(saved, self.session.id) if saved.journal else None

    def saved_keys(self) -> tuple[str, list[str]]:
        """Return the scope and the keys under which it is saved. The store calls this while it saves."""
        self.note()
        keys = [whole_key(self.space, self.id, line.whole) for line in self.known.certain_lines]
        return self.space, [*keys, *id_keys(self.space, self.id)]


def keys_of_saved(space: str, name: str, fingerprints: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the keys of a saved session with the remaining messages; ``before`` are its keys before some were removed."""
    whole, id = KnownLine.of(fingerprints).whole, unquote(name.partition(":")[0].rpartition("/")[2])
    named = [whole_key(space, id, whole), *id_keys(space, id)]
    return named if named[-1] in before else [whole_key(space, None, whole)]


def _end_keys(space: str, last: Sequence[str], whole: str) -> tuple[Hashable, Hashable]:
    """Return the keys of the end of a list: its newest messages, and the digest of all.

    They are not saved, so they need no digest of their own: a search makes one for each message of a new list.
    """
    return (space, *last), (space, "whole", whole)


def whole_key(space: str, id: str | None, whole: str) -> str:
    """Return the key under which a list is saved."""
    return lookup_key("whole", space, id, whole)


def id_keys(space: str, id: str | None) -> list[str]:
    """Return the key of a host's id, if there is one."""
    return [] if id is None else [lookup_key("id", space, id)]


_MOST_COMPARED: Final = 8  # sessions with the same key that are compared with a list one by one
_MOST_PARENTS: Final = 4  # sessions that are kept for one place of earlier calls
_MOST_ALIGNED: Final = 3  # sessions that are aligned with a list, which costs O(contents)


@attrs.define(eq=False, kw_only=True)
class ListRequest:
    """The search for the session of a list. Holds state: the results so far."""

    given: list[Any]
    format: MessageFormat  # its format
    space: str  # its scope and format, as one key
    id: str | None
    name: str | None  # the name of the first session with that id; ``None`` without an id
    overhead_tokens: int  # as for `CompactionSession.follow`
    saved: Mapping[str, Any] | None = None  # the state that the host keeps, if any
    # sessions that it may continue, and for each, whether its newest messages are in the list
    perhaps: dict[PooledSession, bool] = attrs.field(factory=dict[PooledSession, bool])
    parent: PooledSession | None = None  # the session that shares the most messages with the list
    _shared: dict[KnownConversation, tuple[int, KnownLine]] = attrs.field(
        factory=dict[KnownConversation, tuple[int, KnownLine]]
    )
    _digests: dict[int, str] = attrs.field(factory=dict[int, str])  # of single messages, as far as they were needed
    _wholes: list[str] = attrs.field(factory=lambda: [""])  # of the first messages together

    def digest(self, place: int) -> str:
        """Return the digest of the message at a place; O(content) the first time."""
        known = self._digests.get(place)
        if known is None:
            known = self._digests[place] = known_key(self.given[place], self.format)
        return known

    def last(self, count: int) -> tuple[str, ...]:
        """Return the digests of the newest among the first ``count`` messages."""
        known = self._digests
        return tuple([known.get(place) or self.digest(place) for place in range(max(0, count - _NEWEST), count)])

    def whole(self, count: int) -> str:
        """Return one digest of the first ``count`` messages together; O(contents) the first time."""
        while len(self._wholes) <= count:
            self._wholes.append(lookup_key(self._wholes[-1], self.digest(len(self._wholes) - 1)))
        return self._wholes[count]

    def _compared(self, known: KnownConversation) -> tuple[int, KnownLine]:
        """Compare the list with a conversation, once for each state."""
        if known not in self._shared:
            self._shared[known] = known.shared(self.given)
        return self._shared[known]

    def continues(self, session: PooledSession) -> bool:
        """Whether the list contains the whole source unchanged, or a complete earlier view and everything after it."""
        known = session.known
        count, _ = self._compared(known)
        return count == known.count

    def accounted_for(self, session: PooledSession) -> int:
        """Return how many of the first messages of the list are messages of a session or of an earlier view."""
        count, line = self._compared(session.known)
        return count - line.count + len(line.base)

    def accounts_for(self, session: PooledSession) -> bool:
        """Whether a list in which the host changed messages still belongs to a session. The caller holds the session's lock."""
        try:
            return session.session.index.accounts_for(self.given, by_id=self.id is not None)
        except InputError:
            return False


class SessionDirectory:
    """The sessions of a pool. Holds state; callers hold the pool's lock.

    One map leads from the end of a line, as it is or was after a call, to the sessions of that line. A list is looked up from
    its end to its beginning: a session whose line it continues is the session of the list; one whose line it leaves is its
    parent.

    Raises:
        ConfigurationError: If a limit is below 1.
    """

    def __init__(self, *, limit: int, max_bytes: int) -> None:
        self._limit = checked_count("limit", limit, 1)  # the largest number of sessions, >= 1
        self._max_bytes = checked_count("max_bytes", max_bytes, 1)  # the largest size of all their messages, in bytes, >= 1
        self.bytes = 0  # the size of all their messages, in bytes
        self._sessions: OrderedDict[PooledSession, int] = OrderedDict()  # the least recently used first; their bytes
        self._names: dict[str, PooledSession] = {}
        self._places: dict[Hashable, dict[PooledSession, None]] = {}

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
        space, id = request.space, request.id
        request.perhaps, request.parent = {}, None
        for named in id_keys(space, id):
            request.perhaps.update(dict.fromkeys(list(self._places.get(named, {}))[-1:], False))
        for count in range(len(request.given), 0, -1):
            key, _ = _end_keys(space, request.last(count), "")
            if (here := self._places.get(key)) is None:
                continue
            for each in itertools.islice(self._ending(key, id), _MOST_ALIGNED):
                if each in request.perhaps or len(request.perhaps) < _MOST_ALIGNED:
                    request.perhaps[each] = True
            if len(here) > _MOST_COMPARED:
                _, key = _end_keys(space, (), request.whole(count))
                here = self._places.get(key, {})
            some = itertools.islice(self._ending(key, id), _MOST_COMPARED)
            found = next((each for each in some if each.knows(request.saved) and request.continues(each)), None)
            if found is not None:
                return found
            parent = max(list(here)[-_MOST_COMPARED:], key=request.accounted_for, default=None)
            if parent is not None and request.accounted_for(parent) >= count:
                request.parent = parent
                if parent.id == id:
                    request.perhaps.setdefault(parent, False)
                return None
        return None

    def _ending(self, key: Hashable, id: str | None) -> Iterator[PooledSession]:
        """Yield the sessions with the host's id that have a line with this end now, the newest first."""
        return (each for each in reversed(self._places.get(key, {})) if each.id == id and key in each.keys)

    def register(self, session: PooledSession) -> None:
        """Update the keys of a session, and make it the most recently used one, unless it was removed."""
        if session.is_gone:
            return
        ends = [key for line in session.known.lines for key in _end_keys(session.space, line.last, line.whole)]
        left, session.keys = session.keys, dict.fromkeys([*ends, *id_keys(session.space, session.id)])
        # A list may also fork before the newest message of the source, which agents alter.
        before = _end_keys(session.space, *session.known.lines[0].before)
        for key in (*before, *session.keys):
            self._places.setdefault(key, {})[session] = None
            session.places[key] = None
        for key in {*left, *before}.difference(session.keys):
            earlier = [each for each in self._places.get(key, ()) if key not in each.keys]
            for each in earlier[:-_MOST_PARENTS]:
                self._leave(each, key)
        if len(session.places) > _MOST_PLACES:
            old = [key for key in session.places if key not in session.keys][: _MOST_PLACES // 2]
            for key in [key for place, key in enumerate(old) if place & 2]:  # of the older half, every second pair of keys
                self._leave(session, key)
        size = session.session.index.total.bytes
        self.bytes += size - self._sessions.get(session, 0)
        self._sessions[session] = size
        self._sessions.move_to_end(session)

    def _leave(self, session: PooledSession, key: Hashable) -> None:
        session.places.pop(key, None)
        sessions = self._places.get(key, {})
        sessions.pop(session, None)
        if not sessions:
            self._places.pop(key, None)

    def named(self, name: str) -> PooledSession | None:
        """Return the session with a name; ``None`` if it is not in memory."""
        return self._names.get(name)

    def in_space(self, space: str) -> list[PooledSession]:
        """Return the sessions of a scope and format."""
        return [session for session in self._sessions if session.space == space]

    def renew(self, session: PooledSession) -> None:
        """Register a session again, without the keys of its earlier calls."""
        self._leave_all(session)
        self.register(session)

    def _leave_all(self, session: PooledSession) -> None:
        for key in list(session.places):
            self._leave(session, key)

    def evict(self) -> Iterator[tuple[PooledSession, str]]:
        """Remove sessions above the limits, least recently used first, except those with a running call; yield each."""
        while (too_many := len(self._sessions) > self._limit) or self.bytes > self._max_bytes:
            removed = next(filter(self.remove_if_free, self._sessions), None)
            if removed is None:
                return
            yield removed, "count" if too_many else "bytes"

    def remove_if_free(self, session: PooledSession) -> bool:
        """Remove a session unless it has a running call; return whether it was removed."""
        with session.session.lock.if_free() as free:
            if free:
                self.remove(session)
        return free

    def remove(self, session: PooledSession) -> None:
        """Remove a session, unless it was removed before."""
        if session.is_gone:
            return
        session.is_gone = True
        self._leave_all(session)
        self.bytes -= self._sessions.pop(session)
        del self._names[session.session.id]
