"""The directory of a pool: its sessions, the keys that lead to each, and the order in which they are evicted.

Nothing here waits for a session. While a turn of a session runs, the directory uses the pool's own record of that session.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import attrs

from ..errors import ConfigurationError, InputError
from ..index import ListKeys
from .pooled import PooledSession, end_key, fork_key, id_key, whole_key

_MOST_COMPARED: Final = 8  # sessions with the same key that are compared with a list one by one
_MOST_PARENTS: Final = 4  # sessions that are kept for one place where lists may fork
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
        """Whether the list continues a session. Compared once for each state of the session."""
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
        self._sessions: OrderedDict[PooledSession, int] = OrderedDict()  # the least recently used first; their bytes
        self._names: dict[str, PooledSession] = {}
        self._ends: dict[str, dict[PooledSession, None]] = {}
        self._forks: dict[str, dict[PooledSession, None]] = {}

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
            of_id = self._ends.get(id_key(space, id), {})
            if (found := self._continued(of_id, request)) is not None:
                return found
            request.perhaps.update(dict.fromkeys(itertools.islice(reversed(of_id), 1), False))
        for count in range(len(request.given), 0, -1):
            last = keys.last(count)
            ending = self._ends.get(end_key(space, id, count, last), {})
            if len(ending) > _MOST_COMPARED:
                ending = self._ends.get(whole_key(space, id, keys.whole(count)), {})
            if (found := self._continued(ending, request)) is not None:
                return found
            for each in itertools.islice(reversed(self._ends.get(end_key(space, id, -1, last), {})), _MOST_ALIGNED):
                if each in request.perhaps or len(request.perhaps) < _MOST_ALIGNED:
                    request.perhaps[each] = True
            if (parent := self._parent(count, request)) is not None:
                request.parent = parent
                if parent.id == id:
                    request.perhaps.setdefault(parent, False)
                break
        return None

    def _parent(self, count: int, request: ListRequest) -> PooledSession | None:
        """Return a session that had exactly these first messages at the end of a turn."""
        space, keys = request.space, request.keys
        parents = self._forks.get(fork_key(space, count, *keys.last(count)), {})
        if len(parents) >= _MOST_PARENTS:
            parents = self._forks.get(fork_key(space, count, keys.whole(count)), {})
        found = [(each.accounted_for(request.given), each) for each in parents]
        most, parent = max(found, key=lambda pair: pair[0], default=(0, None))
        return parent if most >= count else None

    @staticmethod
    def _continued(sessions: dict[PooledSession, None], request: ListRequest) -> PooledSession | None:
        some = itertools.islice(reversed(sessions), _MOST_COMPARED)
        known = (each for each in some if each not in request.refused and each.knows(request.saved))
        return next((each for each in known if request.continues(each)), None)

    def register(self, session: PooledSession) -> None:
        """Update the keys of a session, and make it the most recently used one."""
        keys = session.keys_now()
        for key in set(session.keys).difference(keys):
            _remove(self._ends, key, session)
        for key in keys:
            self._ends.setdefault(key, {})[session] = None
        session.keys = keys
        new, forgotten = session.add_ends()
        for key in new:
            parents = self._forks.setdefault(key, {})
            parents[session] = None
            if len(parents) > _MOST_PARENTS:
                del parents[next(iter(parents))]
        for key in forgotten:
            _remove(self._forks, key, session)
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
        """Register a session again, without the keys of its earlier turns."""
        for key in session.keys:
            _remove(self._ends, key, session)
        for key in session.ends:
            _remove(self._forks, key, session)
        session.keys, session.ends = (), []
        self.register(session)

    def evict(self) -> list[tuple[PooledSession, str]]:
        """Remove sessions above the limits, least recently used first, except those with a running turn."""
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
        session.is_gone = True
        for key in session.keys:
            _remove(self._ends, key, session)
        for key in session.ends:
            _remove(self._forks, key, session)
        self.bytes -= self._sessions.pop(session, 0)
        if self._names.get(session.session.id) is session:
            del self._names[session.session.id]


def _remove(index: dict[str, dict[PooledSession, None]], key: str, session: PooledSession) -> None:
    sessions = index.get(key)
    if sessions is not None:
        sessions.pop(session, None)
        if not sessions:
            del index[key]
