"""Pools: the sessions of many conversations, each found by its list of messages, for hosts that give no id, or not always.

pool = SessionPool(presets.context_window(32_000), store=SessionStore("sessions.db"))
reply = client.create(messages=await pool.view(messages))
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from ..formats import as_list, resolve
from ..run import unawaited
from ..strategies import StrategyLike, as_strategy
from .ahead import BackgroundTasks
from .directory import ListRequest, SessionDirectory
from .events import Evicted, OnEvent
from .forgetting import settled
from .grants import copies, refuse_named_stores
from .list_keys import ListKeys, lookup_key
from .pool_forgetting import PoolForgetting
from .pooled import KnownConversation, PooledSession
from .reporter import EventReporter
from .saved_sessions import SavedSessions
from .session import CompactionSession
from .turns import Unawaited

if TYPE_CHECKING:
    from ..stores import SessionStore

_logger = logging.getLogger("compaction")
_MOST_TRIES: Final = 8


class SessionPool:
    """The sessions of many conversations. Holds state: up to ``limit`` of them, found by the messages of a list.

    A list continues a session only if it accounts for all of its source: each message is there, altered in place, or replaced
    by a summary that is there; or the list begins with a whole view that was sent. Otherwise it forks: a new session shares the
    beginning, and takes over the edits that were decided when nothing after that had been read, and nothing else.

    Cost of a turn, besides the session's own: digests of the new messages and a comparison at C speed; O(contents) once for a
    new conversation or a fork. One lock is held while a session is looked up, and another for each session during its turn: a
    slow summarizer delays no other session.

    >>> from compaction.strategies import SlidingWindow
    >>> from compaction import last
    >>> pool = SessionPool(SlidingWindow(keep=last(turns=2)), counter="chars/4")
    >>> chat = [{"role": "user", "content": "Which tea?"}]
    >>> pool.view_sync(chat) == chat
    True
    >>> more = [*chat, {"role": "assistant", "content": "Green tea."}, {"role": "user", "content": "And how much?"}]
    >>> other = [*chat, {"role": "assistant", "content": "Black tea."}, {"role": "user", "content": "Why?"}]
    >>> with pool.turn_sync(more) as first, pool.turn_sync(other) as second:
    ...     first is second
    False
    >>> len(pool)
    2

    Args:
        strategy: The strategy of every session. What it stores, it stores under the id of the session.
        store: Where sessions are saved, if anywhere; evicted ones, and those of an earlier process, come back from there.
        scope: The name of what shares nothing with other scopes, such as a tenant or a family of models.
        limit: The number of sessions in memory, >= 1.
        max_bytes: Bytes of all their messages, >= 1. Past either bound the least recently used session goes, unless its turn is
            under way.
        on_event: Receives the events of all sessions, and `Evicted`.
        new_id: Returns a name that no session has, for those without a host's id; random by default.
        options: As for `CompactionSession`; with ``ahead=``, ``async with pool:`` owns the background tasks.

    Raises:
        ConfigurationError: If an option is out of range, or the strategy names a session of its own for its store.
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
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        **options: Any,
    ) -> None:
        self._strategy = as_strategy(strategy)
        refuse_named_stores(self._strategy)
        self._store = store
        self._scope = scope
        self._on_event = on_event
        self._new_id = new_id
        self._options: dict[str, Any] = {**options, "on_event": on_event}
        self._tasks: BackgroundTasks | None = None
        if options.get("ahead") is not None and not isinstance(options.get("portal"), BackgroundTasks):
            self._tasks = self._options["portal"] = BackgroundTasks(options.get("portal"))
        CompactionSession(self._strategy, **self._options)  # an option that is wrong is wrong now
        self._format = resolve(options.get("format"))
        self._format_name = "" if options.get("format") is None else self._format.name
        self._lock = threading.Lock()  # held only while the directory is read or changed
        self._directory = SessionDirectory(limit=limit, max_bytes=max_bytes)
        self._saved = SavedSessions(
            store=store, directory=self._directory, resumed=self._resumed, new_id=new_id, on_event=on_event
        )
        self._forgetting = PoolForgetting(directory=self._directory, lock=self._lock, store=store, resumed=self._resumed)

    async def __aenter__(self) -> Self:
        """Own the background tasks of the sessions, for ``ahead=``."""
        if self._tasks is not None:
            await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Cancel what is under way in the background."""
        if self._tasks is not None:
            await self._tasks.__aexit__(*exception)

    def __len__(self) -> int:
        """Return the number of sessions in memory."""
        return len(self._directory)

    @property
    def bytes(self) -> int:
        """Bytes of the messages of the sessions in memory."""
        return self._directory.bytes

    # ---------------------------------------------------------------- turns

    def turn(
        self,
        messages: Iterable[Any],
        id: str | None = None,
        scope: str = "",
        overhead_tokens: int = 0,
        saved: Mapping[str, Any] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[CompactionSession]:
        """Hold the session of a list for one turn; it has followed the list, and nothing is compacted yet.

        ::

            async with pool.turn(messages) as session:
                result = await session.compact_due()

        Args:
            messages: The whole conversation, or a view that was sent with what came since.
            id: The host's name for the conversation, if it has one. Its lists may then lack earlier messages.
            scope: A scope within the pool's.
            overhead_tokens: As for `CompactionSession.follow`.
            saved: What ``to_dict`` of its session returned earlier, if the host has it, with the session's ``"id"``; it is used
                if the list continues no session here, or another process has decided more since.

        Raises:
            InputError: If ``messages`` is not a list, or one of them cannot be read.
            StateError: If ``saved`` is corrupt or from a newer version, and it is needed.
            SyncDriverError: If the turn would wait for itself, see `TurnLock`.
        """
        return self._turn(self._request(messages, id, scope, overhead_tokens, saved), sync=False)

    def turn_sync(
        self,
        messages: Iterable[Any],
        id: str | None = None,
        scope: str = "",
        overhead_tokens: int = 0,
        saved: Mapping[str, Any] | None = None,
    ) -> contextlib.AbstractContextManager[CompactionSession]:
        """`turn` for strategies that await nothing; it blocks its thread while another turn of the session is under way."""
        return Unawaited(self._turn(self._request(messages, id, scope, overhead_tokens, saved), sync=True))

    @contextlib.asynccontextmanager
    async def _turn(self, request: ListRequest, *, sync: bool) -> AsyncGenerator[CompactionSession]:
        for place in itertools.count(1):
            found = self._find(request, is_last=place >= _MOST_TRIES)
            if found is None:
                continue
            async with found.session.lock.held(sync=sync):
                if not self._is_continued(found, request, is_last=place >= _MOST_TRIES):
                    continue
                with self._took_over(found):
                    await settled(self._granted(found), sync=sync)
                with self._followed(found, request):
                    yield found.session
                return

    async def view(self, messages: Iterable[Any], id: str | None = None, scope: str = "") -> list[Any]:
        """Return the messages to send for a list; see `turn` and `CompactionSession.view`."""
        async with self.turn(messages, id, scope) as session:
            return (await session.compact_due()).messages

    def view_sync(self, messages: Iterable[Any], id: str | None = None, scope: str = "") -> list[Any]:
        """`view` for strategies that await nothing."""
        with self.turn_sync(messages, id, scope) as session:
            return session.compact_due_sync().messages

    async def forget(self, messages: Iterable[Any], scope: str = "") -> int:
        """Remove messages from every session of a scope, in memory and in the store; see `CompactionSession.forget`.

        It waits for turns under way, and returns how many messages of all sessions they were. Of a saved session only
        fingerprints are known, so more of its edits may be undone than need to. A state that a host keeps itself, and other
        processes, are not reached: pass the messages there too.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget; nothing changes then.
            InputError: If one of them cannot be read.
            StateError: If a store cannot be written, or a saved session not be read; the other sessions have forgotten them
                even so. Call it again.
        """
        return await self._forgetting.forget(as_list(messages), self._space(scope), sync=False)

    def forget_sync(self, messages: Iterable[Any], scope: str = "") -> int:
        """`forget` for stores that are not awaited."""
        return unawaited(self._forgetting.forget(as_list(messages), self._space(scope), sync=True))

    def discard(self, id: str) -> bool:
        """Give up a session in memory, and return whether it was there; one whose turn is under way stays.

        Args:
            id: The session's own id.
        """
        with self._lock:
            found = self._directory.named(id)
            if found is None:
                return False
            with found.session.lock.if_free() as free:
                if free:
                    self._directory.remove(found)
        if free:
            found.session.close()
        return free

    def trial(
        self, messages: Iterable[Any], id: str | None = None, scope: str = "", overhead_tokens: int = 0
    ) -> CompactionSession:
        """Return a copy of the session that a list continues, or of a fork or a new one, which has followed the list.

        Neither the pool nor a store knows of the copy, and it tells no events. It waits for a turn of the session under way,
        in this thread.

        Args:
            messages: As for `turn`.
            id: As for `turn`.
            scope: As for `turn`.
            overhead_tokens: As for `turn`.
        """
        request = self._request(messages, id, scope, overhead_tokens, None)
        with self._lock:
            found = self._directory.find(request)
        found = found or next((each for each in request.perhaps if self._accounts(each, request)), None)
        if found is None:
            made = self._made(request)
            taken, name = made.inheritance, made.session.id
            state = None if taken is None else taken.state
        else:
            with found.session.lock.thread:
                taken, state, name = None, found.session.to_dict(), found.session.id
        alone: dict[str, Any] = {**self._options, "id": name, "on_event": None, "ahead": None, "portal": None}
        if state is None:
            session = CompactionSession(self._strategy, **alone)
        else:
            session = CompactionSession.from_dict(state, self._strategy, **alone)
        if taken is not None and taken.saved is not None:
            session.begin_with(taken.saved)
        session.follow(request.given, overhead_tokens=overhead_tokens)
        return session

    def _space(self, scope: str) -> str:
        return lookup_key(self._scope, scope, self._format_name)

    def _request(
        self, messages: Iterable[Any], id: str | None, scope: str, overhead_tokens: int, saved: Mapping[str, Any] | None
    ) -> ListRequest:
        given = as_list(messages)
        scopes, space = (self._scope, scope), self._space(scope)
        keys = ListKeys(given, self._format)
        return ListRequest(
            given=given, keys=keys, space=space, scopes=scopes, id=id, overhead_tokens=overhead_tokens, saved=saved
        )

    # ---------------------------------------------------------------- finding

    def _find(self, request: ListRequest, *, is_last: bool) -> PooledSession | None:
        """Return a session that the list seems to continue, or a new one; ``None`` to try again. Waits for no session."""
        if not is_last:
            with self._lock:
                found = self._directory.find(request)
            found = found or next((each for each in request.perhaps if self._accounts(each, request)), None)
            if found is not None:
                return found
        request.keys.whole(len(request.given))  # before the lock is taken again: O(contents)
        made = self._made(request)
        with self._lock:
            if not is_last and (found := self._directory.find(request)) is not None:
                return found
            return made if self._directory.add(made) else None

    @staticmethod
    def _accounts(session: PooledSession, request: ListRequest) -> bool:
        """Whether a list accounts for a session's source though it has changed. A busy one is not asked.

        Of a host's id, a busy session whose newest messages are in the list counts: the turn then waits for it.
        """
        if session in request.refused or not session.has_begun or not session.knows(request.saved):
            return False
        with session.session.lock.if_free() as free:
            if not free:
                return request.id is not None and request.perhaps[session]
            return request.accounts_for(session)

    def _made(self, request: ListRequest) -> PooledSession:
        """Return a new session for a list: one that was saved, a fork, or an empty one."""
        name, inheritance = self._saved.found(request)
        if inheritance is None and request.saved is not None:
            name, inheritance = self._saved.given(request.saved, request)
        if inheritance is None and request.parent is not None:
            inheritance = request.parent.part(request.given)
        if name is None:
            name = request.name
            if name is None or name in self._directory:
                name = f"{name or 'auto'}:{self._new_id()}"  # no quoted name has a colon
        state = None if inheritance is None else inheritance.state
        options: dict[str, Any] = {**self._options, "id": name}
        made = CompactionSession(self._strategy, **options) if state is None else self._resumed(state, id=name)
        given, line = request.given, request.keys.line()
        known = KnownConversation(source=given, count=len(given), format=self._format, lines=(line,))
        pooled = PooledSession(session=made, space=request.space, id=request.id, known=known, inheritance=inheritance)
        if self._store is not None:
            pooled.store = self._store.keyed(pooled.saved_keys)
            made.save_to(pooled.store)
        return pooled

    def _resumed(self, state: dict[str, Any], **options: Any) -> CompactionSession:
        return CompactionSession.from_dict(state, self._strategy, **self._options, **options)

    # ---------------------------------------------------------------- a turn, under the lock of its session

    @staticmethod
    def _is_continued(found: PooledSession, request: ListRequest, *, is_last: bool) -> bool:
        """Judge again: another turn may have extended the session, or the pool given it up."""
        if is_last:
            return True
        if found.has_begun:
            found.note()
        if not found.is_gone and (request.continues(found) or (found.has_begun and request.accounts_for(found))):
            return True
        request.refused.add(found)
        return False

    def _granted(self, found: PooledSession) -> Generator[Any]:
        """Let a fork read what the edits that it takes over have stored."""
        taken = found.inheritance
        if taken is not None and taken.saved is not None and taken.parent is not None:
            yield from copies(self._strategy, taken.saved, taken.parent, found.session.id)

    @staticmethod
    @contextlib.contextmanager
    def _took_over(found: PooledSession) -> Generator[None]:
        """Take over what a new session inherits once the block has run; nothing if that fails."""
        try:
            yield
            if found.inheritance is not None and found.inheritance.saved is not None:
                found.session.begin_with(found.inheritance.saved)
        except Exception as error:
            _logger.warning("a fork takes over nothing (%r)", error)
        found.inheritance = None

    @contextlib.contextmanager
    def _followed(self, found: PooledSession, request: ListRequest) -> Generator[None]:
        """Follow the list, run the block, and take note of what it did."""
        try:
            found.session.follow(request.given, overhead_tokens=request.overhead_tokens)
        except BaseException:
            if not found.has_begun:
                with self._lock:
                    self._directory.remove(found)
            raise
        self._settle(found)
        try:
            yield
        finally:
            self._settle(found)

    def _settle(self, found: PooledSession) -> None:
        """Register a session as it is now, and evict others past the bounds."""
        found.note()
        with self._lock:
            if not found.is_gone:
                self._directory.register(found)
            evicted = self._directory.evict()
        for each, why in evicted:
            each.session.close()
            saved = each.store is not None and each.store.has_saved
            EventReporter(each.session.id, self._on_event).tell(Evicted(session=each.session.id, why=why, is_saved=saved))
