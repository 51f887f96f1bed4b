"""The directory of a pool: its sessions, the keys that lead to each, and the order in which they are evicted.

Each of a session's `host_lists` has two keys: the digests of its newest messages, and one digest of all its messages. A list
is looked up from its end: first with all its messages, then without the newest, and so on::

    session A   u1 a1 u2 a2 u3         ends with u3 now, and ended with u1 and with u2 at earlier calls
    a list      u1 a1 u2 a2 u3 a3 u4   without a3 and u4, it ends as A does now: it belongs to A
    a list      u1 a1 u2 a9 u9         without a9 and u9, it ends as A once did: it forks there, and A is its parent

Nothing here waits for a session. While a call of a session runs, the directory uses the pool's own record of that session.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import attrs

from ..checks import checked_count
from ..errors import InputError
from ..formats import MessageFormat
from ..index import Saved, known_key, lookup_key
from .host_lists import NEWEST, HostList, KnownConversation, Overlap
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

_MOST_ENDS: Final = 256  # of one session
_MOST_COMPARED: Final = 8  # sessions with the same key that are compared with a list one by one
_MOST_PARENTS: Final = 4  # sessions that are kept for a key of earlier calls
_MOST_ALIGNED: Final = 3  # sessions that are aligned with a list, which costs O(contents)


@attrs.frozen
class Forked:
    """The state that a fork takes over."""

    saved: Saved  # the shared messages, and the edits made before any other message arrived
    parent: str  # the name of the session that the fork leaves; empty if it is not known


@attrs.define(eq=False, kw_only=True)
class PooledSession:
    """A session and how the pool finds it. Holds state: the record ``known``, which each call replaces in one assignment."""

    session: CompactionSession
    space: str  # the scope and format, as one key
    id: str | None  # the host's id, if there is one
    known: KnownConversation  # the conversation; before the first call, the list for which the session was created
    fork: Forked | None = None  # the state that it takes over at its first call
    store: SessionStore | None = None  # where it is saved
    bytes: int = 0  # the size of its messages when it was last registered
    is_gone: bool = False  # whether the pool has removed it
    keys: frozenset[Hashable] = frozenset()  # of the host's id, and of the ends of its lists now
    # the two keys of each end of its lists, of now and of earlier calls, oldest first: the points at which a list may fork
    ends: dict[tuple[Hashable, Hashable], None] = attrs.field(factory=dict[tuple[Hashable, Hashable], None])

    @property
    def has_begun(self) -> bool:
        """Whether it has had a call."""
        return self.known.saved is not None

    def has_now(self, key: Hashable) -> bool:
        """Whether one of its lists ends with this key now, and not only at an earlier call."""
        return key in self.keys

    def note(self) -> None:
        """Update the record of the session. The caller holds the session's lock."""
        self.known = self.known.followed(self.session.index)

    def knows(self, saved: Mapping[str, Any] | None) -> bool:
        """Whether it includes every edit of a saved state; if not, another process has compacted the conversation since."""
        return saved is None or self.session.has_had(saved.get("revision"))

    def forked(self, given: Sequence[Any]) -> Forked | None:
        """Return the state that a list takes over if it forks from this session; ``None`` if no edit remains."""
        if self.known.saved is None:
            return None
        overlap = self.known.overlap(given)
        source = self.known.source if overlap.is_with_view else given
        saved = self.known.saved.beginning(overlap.sources, source[: overlap.sources])
        return Forked(saved, self.session.id) if saved.journal else None

    def saved_keys(self) -> tuple[str, list[str]]:
        """Return the scope and the keys under which it is saved. The store calls this while it saves."""
        self.note()
        keys = [whole_key(self.space, self.id, each.end.whole) for each in self.known.specific_lists]
        return self.space, [*keys, *id_keys(self.space, self.id)]


def session_name(pool_scope: str, scope: str, id: str) -> str:
    """Return the name of the first session with a host's id: the scope of the pool, that of the call, and the id.

    No two of them have the same name: an empty scope is left out only if the pool has none. Later sessions with the id have a
    colon and a suffix, which no quoted name contains.

    >>> session_name("", "", "chat/1"), session_name("", "tenant", "7"), session_name("tenant", "", "7")
    ('chat%2F1', 'tenant/7', 'tenant//7')
    >>> _id_in_name("tenant/chat%2F1:5f1c")
    'chat/1'
    """
    scopes = [pool_scope, scope] if pool_scope else [scope] if scope else []
    return "/".join([quote(each, safe="", errors="surrogatepass") for each in (*scopes, id)])


def _id_in_name(name: str) -> str:
    """Return the host's id in the name of a session; any text if the session has none."""
    return unquote(name.partition(":")[0].rpartition("/")[2], errors="surrogatepass")


def keys_of_saved(space: str, name: str, fingerprints: Iterable[str], before: Collection[str]) -> list[str]:
    """Return the keys of a saved session with the remaining messages; ``before`` are its keys before some were removed."""
    whole, id = HostList().followed_by(fingerprints).end.whole, _id_in_name(name)
    named = [whole_key(space, id, whole), *id_keys(space, id)]
    return named if named[-1] in before else [whole_key(space, None, whole)]


def whole_key(space: str, id: str | None, whole: str) -> str:
    """Return the key under which a list is saved."""
    kind = "whole of an id" if id == "None" else "whole"  # the key of no id has the text "None" in its place
    return lookup_key(kind, space, id, whole)


def id_keys(space: str, id: str | None) -> list[str]:
    """Return the key of a host's id, if there is one."""
    return [] if id is None else [lookup_key("id", space, id)]


@attrs.define(eq=False, kw_only=True)
class ListRequest:
    """A list whose session is looked for. Holds state: its digests, and comparisons with conversations."""

    given: list[Any]
    format: MessageFormat  # its format
    space: str  # its scope and format, as one key
    id: str | None
    name: str | None  # the name of the first session with that id; ``None`` without an id
    overhead_tokens: int  # as for `CompactionSession.follow`
    saved: Mapping[str, Any] | None = None  # the state that the host keeps, if any
    is_trial: bool = False  # then no event is reported
    _overlaps: dict[KnownConversation, Overlap] = attrs.field(factory=dict[KnownConversation, Overlap])
    _digests: dict[int, str] = attrs.field(factory=dict[int, str])  # of single messages, as far as they were needed
    _wholes: list[str] = attrs.field(factory=lambda: [""])  # of the first messages together

    def digest(self, place: int) -> str:
        """Return the digest of the message at a place; O(content) the first time."""
        known = self._digests.get(place)
        if known is None:
            known = self._digests[place] = known_key(self.given[place], self.format)
        return known

    def newest(self, count: int) -> tuple[str, ...]:
        """Return the digests of the newest among the first ``count`` messages."""
        return tuple([self.digest(place) for place in range(max(0, count - NEWEST), count)])

    def whole(self, count: int) -> str:
        """Return one digest of the first ``count`` messages together; O(contents) the first time."""
        while len(self._wholes) <= count:
            self._wholes.append(lookup_key(self._wholes[-1], self.digest(len(self._wholes) - 1)))
        return self._wholes[count]

    def overlap(self, known: KnownConversation) -> Overlap:
        """Return what the list has in common with a conversation; compared once for each state of it."""
        if known not in self._overlaps:
            self._overlaps[known] = known.overlap(self.given)
        return self._overlaps[known]

    def continues(self, pooled: PooledSession) -> bool:
        """Whether the list contains the whole source unchanged, or a complete earlier view and everything after it."""
        known = pooled.known  # which a running call may replace
        return self.overlap(known).sources == known.count

    def accounts_for(self, pooled: PooledSession) -> bool:
        """Whether a list in which the host changed messages still belongs to a session. The caller holds the session's lock."""
        try:
            return pooled.has_begun and pooled.session.index.accounts_for(self.given, by_id=self.id is not None)
        except InputError:
            return False


@attrs.frozen(eq=False)
class PoolSearch:
    """The result of a search of the sessions in memory."""

    found: PooledSession | None  # the session that the list belongs to
    # the sessions that it may belong to if the host changed messages; for each, whether its newest messages are in the list
    perhaps: Mapping[PooledSession, bool]
    parent: PooledSession | None = None  # the session that shares the most messages with the list, which may fork from it


class SessionDirectory:
    """The sessions of a pool. Holds state; callers hold the pool's lock.

    Args:
        limit: The largest number of sessions, >= 1.
        max_bytes: The largest size of all their messages, in bytes, >= 1.

    Attributes:
        sessions: The sessions by their names, the least recently used first.
        bytes: The size of all their messages, in bytes.

    Raises:
        ConfigurationError: If a limit is below 1.
    """

    def __init__(self, *, limit: int, max_bytes: int) -> None:
        self._limit = checked_count("limit", limit, 1)
        self._max_bytes = checked_count("max_bytes", max_bytes, 1)
        self.bytes = 0
        self.sessions: OrderedDict[str, PooledSession] = OrderedDict()
        # of each key, the sessions that have it in their ``keys``, or had it at an earlier call, by their first call with it
        self._by_key: dict[Hashable, dict[PooledSession, None]] = {}

    def add(self, pooled: PooledSession) -> bool:
        """Add a session and return true; return false if there is another of that name."""
        if pooled.session.id in self.sessions:
            return False
        try:
            self.sessions[pooled.session.id] = pooled
            self.register(pooled)
        except BaseException:  # interrupted, so perhaps no key leads to it
            self.remove(pooled)
            raise
        return True

    # ---------------------------------------------------------------- finding

    def find(self, request: ListRequest) -> PoolSearch:
        """Return the session that a list belongs to, or may belong to, or forks from.

        The longest beginning of the list that is the end of a list of some session, now or at an earlier call, decides.
        """
        perhaps: dict[PooledSession, bool] = {}
        for named in id_keys(request.space, request.id):
            perhaps.update(dict.fromkeys([*self._by_key.get(named, {})][-1:], False))
        for count in range(len(request.given), 0, -1):
            newest: Hashable = (request.space, request.newest(count))
            ending_alike = self._by_key.get(newest)
            if ending_alike is None:
                continue
            for each in itertools.islice(self._ending(newest, request.id), _MOST_ALIGNED):
                if each in perhaps or len(perhaps) < _MOST_ALIGNED:
                    perhaps[each] = True
            has_many = len(ending_alike) > _MOST_COMPARED  # then a digest of all messages selects among them
            key = (request.space, request.whole(count)) if has_many else newest
            if (found := self._continued(key, request)) is not None:
                return PoolSearch(found, perhaps)
            if (parent := self._parent(key, request, count)) is not None:
                if parent.id == request.id:  # not a fork if the host altered the messages after these
                    perhaps.setdefault(parent, False)
                return PoolSearch(None, perhaps, parent)
        return PoolSearch(None, perhaps)

    def _continued(self, key: Hashable, request: ListRequest) -> PooledSession | None:
        """Return the session of which a list ends with these messages now, if the whole request continues it."""
        likely = itertools.islice(self._ending(key, request.id), _MOST_COMPARED)
        return next((each for each in likely if each.knows(request.saved) and request.continues(each)), None)

    def _parent(self, key: Hashable, request: ListRequest, count: int) -> PooledSession | None:
        """Return the session of which a list once ended with these messages, the first ``count`` of the request."""
        once = [*self._by_key.get(key, {})][-_MOST_COMPARED:]
        parent = max(once, key=lambda each: request.overlap(each.known).given, default=None)
        return parent if parent is not None and request.overlap(parent.known).given >= count else None

    def _ending(self, key: Hashable, id: str | None) -> Iterator[PooledSession]:
        """Yield the sessions with the host's id of which a list ends so now, the newest first."""
        return (each for each in reversed(self._by_key.get(key, {})) if each.id == id and each.has_now(key))

    # ---------------------------------------------------------------- keys

    def register(self, pooled: PooledSession) -> None:
        """Update the keys of a session, and make it the most recently used one, unless it was removed."""
        if pooled.is_gone:
            return
        lists, space = pooled.known.host_lists, pooled.space
        ends = [each.end.keys(space) for each in lists]
        before_newest = lists[0].before.keys(space)  # a list may also fork there, because agents alter the newest message
        before, pooled.keys = pooled.keys, frozenset(itertools.chain(*ends, id_keys(space, pooled.id)))
        pooled.ends.update(dict.fromkeys([before_newest, *ends]))
        for key in (*before_newest, *pooled.keys):
            self._by_key.setdefault(key, {})[pooled] = None
        for key in before.union(before_newest) - pooled.keys:  # no list ends so any more
            self._limit_parents(key)
        self._thin_out(pooled)
        size = pooled.session.index.total.bytes
        self.bytes, pooled.bytes = self.bytes + size - pooled.bytes, size
        self.sessions.move_to_end(pooled.session.id)

    def _limit_parents(self, key: Hashable) -> None:
        """Keep only the newest few of the sessions that once had a key: they are enough as parents."""
        earlier = [each for each in self._by_key.get(key, ()) if not each.has_now(key)]
        for each in earlier[:-_MOST_PARENTS]:
            self._leave(each, key)

    def _thin_out(self, pooled: PooledSession) -> None:
        """If a session has too many ends, forget every second one of the older half, so that some of each time stay."""
        if len(pooled.ends) > _MOST_ENDS:
            older = [*pooled.ends][: _MOST_ENDS // 2]
            gone = older[1::2]
            for end in gone:
                del pooled.ends[end]
            for key in frozenset(itertools.chain(*gone)).difference(pooled.keys, *pooled.ends):  # others may share a key
                self._leave(pooled, key)

    def _leave(self, pooled: PooledSession, key: Hashable) -> None:
        others = self._by_key.get(key, {})
        others.pop(pooled, None)
        if not others:
            self._by_key.pop(key, None)

    def _leave_all(self, pooled: PooledSession) -> None:
        for key in pooled.keys.union(*pooled.ends):
            self._leave(pooled, key)
        pooled.ends.clear()

    def renew(self, pooled: PooledSession) -> None:
        """Register a session again, without the keys of its earlier calls."""
        self._leave_all(pooled)
        self.register(pooled)

    # ---------------------------------------------------------------- sessions

    def in_space(self, space: str) -> list[PooledSession]:
        """Return the sessions of a scope and format."""
        return [each for each in self.sessions.values() if each.space == space]

    def evict(self) -> Iterator[tuple[PooledSession, str]]:
        """Remove sessions above the limits, least recently used first, except those with a running call; yield each."""
        while (too_many := len(self.sessions) > self._limit) or self.bytes > self._max_bytes:
            removed = next(filter(self.remove_if_free, self.sessions.values()), None)
            if removed is None:
                return
            yield removed, "count" if too_many else "bytes"

    def remove_if_free(self, pooled: PooledSession) -> bool:
        """Remove a session unless it has a running call; return whether it was removed."""
        with pooled.session.lock.if_free() as free:
            if free:
                self.remove(pooled)
        return free

    def remove(self, pooled: PooledSession) -> None:
        """Remove a session, unless it was removed before."""
        if pooled.is_gone:
            return
        pooled.is_gone = True
        self._leave_all(pooled)
        self.bytes -= pooled.bytes
        self.sessions.pop(pooled.session.id, None)
