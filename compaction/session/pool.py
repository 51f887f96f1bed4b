"""A pool of the sessions of many conversations. It recognizes a conversation by its messages, so no id is needed."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, cast

import attrs

from ..errors import ConfigurationError, InputError, StateError
from ..formats import as_list, resolve
from ..index import lookup_key, same_beginning, written
from ..json_data import shown
from ..stores import ForgettingStore, StoredRecord, copied
from ..strategies import Failed, Rehearsed, Strategy, StrategyLike, as_strategy, forgetting_stores, storing_parts
from .ahead import BackgroundTasks
from .directory import (
    Forked,
    ListRequest,
    PooledSession,
    PoolSearch,
    SessionDirectory,
    id_keys,
    keys_of_saved,
    session_name,
    whole_key,
)
from .events import EventReporter, Evicted, OnEvent, SaveFailed
from .host_lists import HostList, KnownConversation
from .lock import Unawaited, unawaited_calls
from .saving import checked_store
from .session import CompactionSession, await_all

if TYPE_CHECKING:
    from ..stores import SessionStore

_logger = logging.getLogger("compaction")
_PAGE: Final = 1_000  # records of a store that are deleted at once
_MOST_NAMES: Final = 100  # that are drawn for one session


class SessionPool:
    """Finds the session that a list belongs to. Holds state: up to ``limit`` sessions.

    A list belongs to a session in two cases. (1) Every message of the session is in the list, possibly with parts removed or
    added, or is replaced by a summary in the list. (2) The list begins with a complete view that the session returned earlier.
    Any other list gets a new session. If it shares its first messages with an existing session, the new one is a fork: it
    starts with the edits that concern only the shared messages.

    Cost of a call, in addition to the session's own: hashing the new messages and one comparison of the list; O(contents) once
    for a new conversation or a fork. Each session has its own lock, so a slow summarizer delays only its own session.

    >>> from compaction.strategies import SlidingWindow
    >>> from compaction import last
    >>> pool = SessionPool(SlidingWindow(keep=last(turns=2)), counter="chars/4")
    >>> chat = [{"role": "user", "content": "Which tea?"}]
    >>> pool.view_sync(chat) == chat
    True
    >>> more = [*chat, {"role": "assistant", "content": "Green tea."}, {"role": "user", "content": "And how much?"}]
    >>> other = [*chat, {"role": "assistant", "content": "Black tea."}, {"role": "user", "content": "Why?"}]
    >>> with pool.call_sync(more) as first, pool.call_sync(other) as second:
    ...     first is second
    False
    >>> len(pool)
    2

    Args:
        strategy: The strategy of every session. `Offload` and `Lossless` store content under the session's id.
        store: Where to save sessions; ``None`` to keep them in memory only. Evicted sessions, and sessions of an earlier
            process, are loaded from there.
        scope: A name, for example of a tenant or a model family. Sessions of different scopes share nothing.
        limit: The largest number of sessions in memory, >= 1.
        max_bytes: The largest size of all their messages, in bytes, >= 1. If either limit is exceeded, the pool removes the
            least recently used session that has no running call.
        on_event: Called with the events of all sessions, and with `Evicted`.
        new_id: Returns a new, unique name for a session whose caller gave no ``id``; random by default.
        options: The other arguments of `CompactionSession`. With ``ahead=``, use ``async with pool:`` for the background tasks.

    Raises:
        ConfigurationError: If an option is out of range or is ``id``, or a part of the strategy has its own ``session=``. In a
            call, if ``new_id`` returns only names that are taken.
    """

    def __init__(
        self,
        strategy: StrategyLike,
        *,
        store: SessionStore | None = None,
        scope: str = "",
        limit: int = 1_000,
        max_bytes: int = 256_000_000,
        on_event: OnEvent | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        **options: Any,
    ) -> None:
        self._strategy = as_strategy(strategy)
        _refuse_named_stores(self._strategy)
        self._store = checked_store(store)
        if "id" in options:
            raise ConfigurationError(f"SessionPool(id={options['id']!r}): each session has its own id; pass id= to call")
        self._scope = scope
        self._on_event = on_event
        self._new_id = new_id
        self._options: dict[str, Any] = {**options, "on_event": on_event}
        self._tasks: contextlib.AbstractAsyncContextManager[object] = contextlib.nullcontext()
        if options.get("ahead") is not None and options.get("tasks") is None:
            self._tasks = self._options["tasks"] = BackgroundTasks()
        CompactionSession(self._strategy, **self._options)  # raises now if an option is wrong
        self._format = resolve(options.get("format"))
        self._format_name = "" if options.get("format") is None else self._format.name
        self._lock = threading.Lock()  # held only while the directory is read or changed
        self._directory = SessionDirectory(limit=limit, max_bytes=max_bytes)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._tasks.__aexit__(*cast("Any", exception))

    def __len__(self) -> int:
        """Return the number of sessions in memory."""
        return len(self._directory.sessions)

    def __contains__(self, id: object) -> bool:
        """Whether a session whose ``session.id`` is this is in memory; for a host's id ``chat/1``, that is ``chat%2F1``."""
        return id in self._directory.sessions

    @property
    def bytes(self) -> int:
        """Bytes of the messages of the sessions in memory."""
        return self._directory.bytes

    # ---------------------------------------------------------------- calls

    @contextlib.asynccontextmanager
    async def call(
        self,
        messages: Iterable[Any],
        id: str | None = None,
        scope: str = "",
        overhead_tokens: int = 0,
        saved: Mapping[str, Any] | None = None,
        *,
        sync: bool = False,
    ) -> AsyncGenerator[CompactionSession]:
        """Return a context manager that locks the session of a list for one call of the model.

        The session is up to date with the list but not yet compacted::

            async with pool.call(messages) as session:
                result = await session.compact_due()

        Args:
            messages: The conversation: all messages, or an earlier view followed by the messages since then.
            id: The id of the conversation, if you have one. Earlier messages may then be missing from the list or altered.
            scope: A scope, combined with that of the pool.
            overhead_tokens: Tokens of the next request outside the messages, as for `CompactionSession.follow`.
            saved: The session's state as ``to_dict`` returned it, if you keep it. It is used if no session in memory belongs to
                the list, or if another process has compacted the conversation since.
            sync: Whether nothing may be awaited, for a coroutine that is driven without an event loop.

        Raises:
            InputError: If ``messages`` is not a list, or contains a message that cannot be read; if ``id`` or ``scope`` is not
                a text, or contains NUL.
            StateError: If ``saved`` is not a mapping, or is needed but corrupt or from a newer version.
            SyncDriverError: If it is called inside another call of the same session; see `CallLock`.
        """
        request = self._request(messages, id, scope, overhead_tokens, saved)
        while True:
            found = self._found_or_added(request)
            async with found.session.lock.held(sync=sync):
                if found.is_gone or not (request.continues(found) or request.accounts_for(found)):
                    continue  # the pool removed it, or another call changed it, while this one waited: search again
                await self._take_over(found, sync=sync)
                self._follow(found, request)
                try:
                    yield found.session
                finally:
                    self._settle(found)
                    found.session.save_late_report()
                return

    def call_sync(
        self,
        messages: Iterable[Any],
        id: str | None = None,
        scope: str = "",
        overhead_tokens: int = 0,
        saved: Mapping[str, Any] | None = None,
    ) -> contextlib.AbstractContextManager[CompactionSession]:
        """`call` for strategies that do not await. Blocks the thread while another call of the session runs."""
        return Unawaited(self.call(messages, id, scope, overhead_tokens, saved, sync=True))

    async def view(self, messages: Iterable[Any], id: str | None = None, scope: str = "", *, sync: bool = False) -> list[Any]:
        """Return the messages to send for a list; see `call` and `CompactionSession.view`."""
        async with self.call(messages, id, scope, sync=sync) as session:
            return (await session.compact_due(sync=sync)).messages

    def view_sync(self, messages: Iterable[Any], id: str | None = None, scope: str = "") -> list[Any]:
        """`view` for strategies that do not await."""
        return unawaited_calls(self.view(messages, id, scope, sync=True))

    async def forget(self, messages: Iterable[Any], scope: str = "", *, sync: bool = False) -> int:
        """Remove messages from every session of a scope, in memory and in the store; see `CompactionSession.forget`.

        It waits for running calls. A saved session contains only fingerprints, so all edits are undone that were decided after
        the first of these messages was read. Call this method in other processes, and change states that you keep, as well.

        Args:
            messages: The messages, as they are in the conversations.
            scope: The scope, combined with that of the pool.
            sync: As for `call`.

        Returns:
            The number of messages removed, over all sessions.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget. Nothing changes then.
            InputError: If a message cannot be read.
            StateError: If a store cannot be written or a saved session cannot be read. Call it again for the rest.
        """
        given, space = as_list(messages), self._space(scope)
        done: set[PooledSession] = set()
        count = await self._forget_in_memory(given, space, done, sync=sync)
        if self._store is None:
            return count
        failures: list[StateError] = []
        for name, keys in self._store.in_scope(space).items():
            try:
                count += await self._forget_saved(given, space, name, keys, sync=sync)
            except StateError as error:
                failures.append(error)
        count += await self._forget_in_memory(given, space, done, sync=sync)  # those that were loaded meanwhile
        self._store.scrub()
        if failures:
            raise failures[0]
        return count

    def forget_sync(self, messages: Iterable[Any], scope: str = "") -> int:
        """`forget` for stores whose methods are not async."""
        return unawaited_calls(self.forget(messages, scope, sync=True))

    async def delete(self, id: str | None, scope: str = "", *, sync: bool = False) -> int:
        """Delete conversations: from memory, from the session store, and from the stores of the strategy.

        It waits for running calls. Sessions in other processes and states that you keep are not changed. If a deleted
        conversation is passed to `call` again, it counts as new.

        Args:
            id: The host's id of the conversation, as for `call`; ``None`` for every conversation of the scope.
            scope: The scope, combined with that of the pool.
            sync: As for `call`.

        Returns:
            The number of sessions deleted.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget. Nothing is deleted then.
            InputError: If ``id`` or ``scope`` is not a text, or contains NUL. Nothing is deleted then.
            StateError: If a store cannot be written. Call it again for the rest.
        """
        space, id = self._space(scope), None if id is None else _plain("id", id)
        stores = [store for store, _ in forgetting_stores(self._strategy)]
        names: set[str] = set()
        for each in self._in_memory(space, set()):
            if id is None or each.id == id:
                async with each.session.lock.held(sync=sync):
                    with self._lock:
                        self._directory.remove(each)
                    each.session.save_to(None)  # a late report of usage saves nothing
                each.session.close()
                names.add(each.session.id)
        if self._store is not None:
            wanted = set(id_keys(space, id))
            names.update(name for name, keys in self._store.in_scope(space).items() if wanted.issubset(keys))
        for name, store in itertools.product(sorted(names), stores):
            await await_all(_emptied(store, name), sync=sync)
        if self._store is not None:
            for name in sorted(names):
                self._store.delete(name)
            self._store.scrub()
        return len(names)

    def delete_sync(self, id: str | None, scope: str = "") -> int:
        """`delete` for stores whose methods are not async."""
        return unawaited_calls(self.delete(id, scope, sync=True))

    def discard(self, id: str) -> bool:
        """Remove a session from memory unless it has a running call; return whether it was removed.

        Args:
            id: The ``session.id``; for a host's id ``chat/1``, that is ``chat%2F1``.
        """
        with self._lock:
            found = self._directory.sessions.get(id)
            if found is None or not self._directory.remove_if_free(found):
                return False
        found.session.close()
        return True

    def trial(
        self, messages: Iterable[Any], id: str | None = None, scope: str = "", overhead_tokens: int = 0
    ) -> CompactionSession:
        """Return a copy of the session that `call` would find or create, up to date with the list.

        Use it to see what a call would do; the arguments are those of `call` without ``saved``. The copy is not in the pool, is
        not saved, and reports no events. It calls no model: each summary is assumed to fill its budget. It writes to no store.
        Blocks the thread while a call of the session runs.
        """
        request = self._request(messages, id, scope, overhead_tokens, None)
        request.is_trial = True
        search = self._search(request)
        found = search.found or self._made(request, search.parent)
        alone = {**self._options, "on_event": None, "ahead": None, "tasks": None}
        with found.session.lock.thread:
            session, fork = found.session.copied(Rehearsed(self._strategy), **alone), found.fork
        if fork is not None:
            session.begin_with(fork.saved)
        session.follow(request.given, overhead_tokens=overhead_tokens)
        return session

    def _space(self, scope: str) -> str:
        return lookup_key(self._scope, _plain("scope", scope), self._format_name)

    def _request(
        self, messages: Iterable[Any], id: str | None, scope: str, overhead_tokens: int, saved: Mapping[str, Any] | None
    ) -> ListRequest:
        given = as_list(messages)
        space, format = self._space(scope), self._format
        name = None if id is None else session_name(self._scope, scope, _plain("id", id))
        if not isinstance(saved, Mapping | None):
            raise StateError(f"saved={shown(saved)}: must be data that to_dict returned, or None for a new session")
        return ListRequest(
            given=given, format=format, space=space, id=id, name=name, overhead_tokens=overhead_tokens, saved=saved
        )

    # ---------------------------------------------------------------- finding

    def _found_or_added(self, request: ListRequest) -> PooledSession:
        """Return the session of a list, which is added if there is none."""
        while True:
            search = self._search(request)
            if search.found is not None:
                return search.found
            made = self._made(request, search.parent)
            with self._lock:
                found = self._directory.find(request).found  # another call may have added it meanwhile
                if found is None and self._directory.add(made):
                    return made
            if found is not None:
                return found
            # another call has just added a session of that name: the next search sees it

    def _search(self, request: ListRequest) -> PoolSearch:
        """Return the session in memory that a list belongs to, or the one that it forks from."""
        with self._lock:
            search = self._directory.find(request)
        if search.found is None:
            likely = (each for each, has_newest in search.perhaps.items() if self._accounts(each, request, has_newest))
            search = attrs.evolve(search, found=next(likely, None))
        return search

    @staticmethod
    def _accounts(session: PooledSession, request: ListRequest, has_newest: bool) -> bool:
        """Whether a list in which the host changed messages still belongs to a session.

        A session with a running call is not examined. If it was found by the request's id and its newest messages are in the
        list (``has_newest``), the answer is yes, and the call then waits for it.
        """
        if not session.has_begun or not session.knows(request.saved):
            return False
        with session.session.lock.if_free() as free:
            return request.accounts_for(session) if free else request.id is not None and has_newest

    def _made(self, request: ListRequest, parent: PooledSession | None) -> PooledSession:
        """Return a new session for a list: loaded from the store, forked from another session, or empty."""
        origin = self._in_store(request)
        if origin.is_new and request.saved is not None:
            origin = self._in_state(request, request.saved, is_taken=origin.is_taken)
        if origin.is_new and parent is not None:
            origin = attrs.evolve(origin, fork=parent.forked(request.given))
        session = origin.session
        if session is None:
            name = self._new_name(request, is_taken=origin.is_taken)
            session = CompactionSession(self._strategy, **self._options, id=name)
        given, is_named = request.given, request.id is not None
        source = HostList().followed_by(map(request.digest, range(len(given))))
        known = KnownConversation(source=given, count=len(given), format=self._format, is_named=is_named, host_lists=(source,))
        pooled = PooledSession(session=session, space=request.space, id=request.id, known=known, fork=origin.fork)
        if self._store is not None:
            pooled.store = self._store.keyed(pooled.saved_keys, has_saved=origin.is_stored)
            session.save_to(pooled.store)
        return pooled

    def _new_name(self, request: ListRequest, *, is_taken: bool) -> str:
        """Return a name for a new session; ``is_taken`` tells whether the host's id is the name of another one."""
        if request.name is not None and not is_taken and request.name not in self._directory.sessions:
            return request.name
        for _ in range(_MOST_NAMES):
            if (name := f"{request.name or 'auto'}:{self._new_id()}") not in self._directory.sessions:
                return name
        raise ConfigurationError(f"new_id={self._new_id!r} returned a name that is taken, {_MOST_NAMES} times in a row")

    # ---------------------------------------------------------------- saved sessions

    def _in_store(self, request: ListRequest) -> _Origin:
        """Return the saved session that a list continues, or what it takes over from one.

        If the store fails, the conversation counts as new.
        """
        if self._store is None:
            return _Origin()
        space, id, count = request.space, request.id, len(request.given)
        forks: list[Forked] = []
        try:
            exact = self._store.find(space, [whole_key(space, id, request.whole(place)) for place in range(count, 0, -1)])
            for name in exact:
                if (session := self._readable(name, request)) is not None:
                    return _Origin(session, is_stored=True)
            named = self._store.find(space, id_keys(space, id))
            is_taken = bool(named) or (request.name is not None and self._store.load(request.name) is not None)
            for name in named:
                if name not in exact and (session := self._readable(name, request)) is not None:
                    fork = _fork_of(session, name, request.given)
                    if fork is None:
                        return _Origin(session, is_stored=True)
                    if fork.saved.journal:
                        forks.append(fork)
        except StateError as error:
            self._could_not_read(request, request.name or "auto", error, "the conversation counts as new")
            return _Origin(is_taken=True)
        return _Origin(fork=max(forks, key=lambda fork: len(fork.saved.journal), default=None), is_taken=is_taken)

    def _in_state(self, request: ListRequest, saved: Mapping[str, Any], *, is_taken: bool) -> _Origin:
        """Return the session of a state that the host keeps, or the state that a list takes over from it."""
        kept = saved.get("id")
        parent = kept if isinstance(kept, str) else ""
        is_free = parent and parent not in self._directory.sessions
        session = self._resumed(saved, parent if is_free else self._new_name(request, is_taken=is_taken))
        fork = _fork_of(session, parent, request.given)
        return _Origin(session if fork is None else None, fork, is_taken=is_taken)

    def _readable(self, name: str, request: ListRequest) -> CompactionSession | None:
        """Return a saved session; ``None`` if it is in memory, was deleted, or is invalid, which is reported."""
        state = self._state(name)
        try:
            return None if state is None else self._resumed(state, name)
        except StateError as error:
            self._could_not_read(request, name, error, "the saved session is not used and not changed")
            return None

    def _state(self, name: str) -> dict[str, Any] | None:
        """Return the saved state of a session; ``None`` if the session is in memory, was deleted, or is not saved."""
        return None if self._store is None or name in self._directory.sessions else self._store.load(name)

    def _resumed(self, state: Mapping[str, Any], name: str) -> CompactionSession:
        return CompactionSession.from_dict(state, self._strategy, **self._options, id=name)

    def _could_not_read(self, request: ListRequest, name: str, error: StateError, policy: str) -> None:
        failure = Failed(type(self._store).__name__, error, policy).logged()
        if not request.is_trial:
            EventReporter(name, self._on_event).tell(SaveFailed(session=name, failure=failure))

    # ---------------------------------------------------------------- a call, under the lock of its session

    async def _take_over(self, found: PooledSession, *, sync: bool) -> None:
        """Start a fork from the state that it takes over and the stored content; if that fails, warn, and start it empty."""
        if found.fork is None:
            return
        try:
            if found.fork.parent:
                await await_all(_copies(self._strategy, found.fork, found.session.id), sync=sync)
            found.session.begin_with(found.fork.saved)
        except Exception as error:
            _logger.warning("a fork could not take over the edits of its parent (%r)", error)
        found.fork = None

    def _follow(self, found: PooledSession, request: ListRequest) -> None:
        """Update a session and its entry in the directory from the list."""
        try:
            found.session.follow(request.given, overhead_tokens=request.overhead_tokens)
        except BaseException:
            if not found.has_begun:
                with self._lock:
                    self._directory.remove(found)
            raise
        self._settle(found)

    def _settle(self, found: PooledSession) -> None:
        """Register a session as it is now, and evict others if the pool is too large."""
        found.note()
        with self._lock:
            self._directory.register(found)
            evicted = list(self._directory.evict())
        for each, why in evicted:
            each.session.close()
            saved = each.store is not None and each.store.has_saved
            EventReporter(each.session.id, self._on_event).tell(Evicted(session=each.session.id, why=why, is_saved=saved))

    # ---------------------------------------------------------------- forgetting

    async def _forget_in_memory(self, given: list[Any], space: str, done: set[PooledSession], *, sync: bool) -> int:
        count = 0
        for each in self._in_memory(space, done):
            async with each.session.lock.held(sync=sync):
                if not each.has_begun:  # with the state that it would have taken over
                    with self._lock:
                        self._directory.remove(each)
                    continue
                await await_all(each.session.forget_stored(given), sync=sync)
                revision = each.session.revision
                try:
                    count += each.session.forget_known(given)
                finally:
                    if each.session.revision != revision:
                        each.note()
                        with self._lock:
                            self._directory.renew(each)
        return count

    def _in_memory(self, space: str, done: set[PooledSession]) -> Iterator[PooledSession]:
        """Yield each session of a space that is not done, including sessions created meanwhile."""
        while True:
            with self._lock:
                waiting = [each for each in self._directory.in_space(space) if each not in done]
            if not waiting:
                return
            for each in waiting:
                done.add(each)
                yield each

    async def _forget_saved(self, given: list[Any], space: str, name: str, keys: list[str], *, sync: bool) -> int:
        """Forget in a saved session, and save it under keys that do not depend on the messages."""
        state = self._state(name)
        if self._store is None or state is None:
            return 0
        session = self._resumed(state, name)
        await await_all(session.forget_stored(given), sync=sync)
        revision, count = session.revision, session.forget_known(given)
        if session.revision != revision:
            new = keys_of_saved(space, name, session.index.snapshot.fingerprints, keys)
            self._store.keyed(lambda: (space, new)).save(name, session.to_dict())
        return count


def _plain(name: str, value: object) -> str:
    """Return the id or scope of a call if it is a text without NUL, which separates the parts of a key."""
    if not isinstance(value, str) or "\0" in value:
        raise InputError(f"{name}={value!r}: must be a text without NUL")
    return value


@attrs.frozen(eq=False)
class _Origin:
    """Where the conversation of a list comes from: a session that it continues, or a state that it takes over, or neither."""

    session: CompactionSession | None = None
    fork: Forked | None = None
    is_stored: bool = attrs.field(default=False, kw_only=True)  # whether the session is from the pool's store
    is_taken: bool = attrs.field(default=False, kw_only=True)  # whether the store has another session with the host's id

    @property
    def is_new(self) -> bool:
        return self.session is None and self.fork is None


def _fork_of(session: CompactionSession, name: str, given: Sequence[Any]) -> Forked | None:
    """Return the state that a list takes over from a saved session of this name; ``None`` if it continues the session."""
    if session.index.accounts_for(given, by_id=True):
        return None
    saved = session.index.snapshot
    count = same_beginning(saved.fingerprints, given, saved.format)
    return Forked(saved.beginning(count, given[:count]), name)


# -------------------------------------------------------------------- the stores of the strategy


def _refuse_named_stores(strategy: Strategy) -> None:
    """Raise `ConfigurationError` if the strategy stores every conversation under the same name."""
    for each in storing_parts(strategy):
        if each.session is not None:
            raise ConfigurationError(
                f"{type(each).__name__}(session={each.session!r}): each session of a pool stores under its own id; "
                "leave session= out"
            )


def _emptied(store: ForgettingStore, session: str) -> Iterator[Any]:
    """Delete what a store has of a session, page by page; yield what each `ForgettingStore.forget` returns."""
    while page := store.range(session, 1, _PAGE):
        yield store.forget(session, page)


def _copies(strategy: Strategy, fork: Forked, child: str) -> Iterator[Any]:
    """Copy the records that a fork's edits name, in each store of a strategy; yield what each `Store.put` returns."""
    messages = [message for applied in fork.saved.journal for message in written(applied.edit)]
    wires = [(fork.saved.format.to_wire(message.raw), message.role) for message in messages]
    ids = [
        [StoredRecord.of_message(wire, role=role, text="", salt=name).id for name in (fork.parent, child)]
        for wire, role in wires
    ]
    for each in storing_parts(strategy):
        yield copied(each.store, fork.parent, child, dict(ids))
