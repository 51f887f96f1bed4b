"""Forgetting messages in all sessions of a pool: those in memory, and those that are saved."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import StateError
from ..formats import as_list
from .directory import SessionDirectory
from .forgetting import none_awaited
from .list_keys import lookup_key
from .pooled import PooledSession, keys_of_saved
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore

__all__ = ["PoolForgetting"]


class PoolForgetting:
    """The part of a pool that forgets messages. Holds state: that of `SessionPool`."""

    _directory: SessionDirectory
    _lock: threading.Lock
    _store: SessionStore | None
    _scope: str
    _format_name: str

    def _resumed(self, state: dict[str, Any], **options: Any) -> CompactionSession:
        raise NotImplementedError

    async def forget(self, messages: Iterable[Any], scope: str = "") -> int:
        """Remove messages from every session of a scope, in memory and in the store; see `CompactionSession.forget`.

        It waits for turns under way. Of a saved session only fingerprints are known, so more of its edits may be undone than
        need to. A state that a host keeps itself, and other processes, are not reached: pass the messages there too.

        Args:
            messages: The messages, as the conversations have them.
            scope: A scope within the pool's, as for `turn`; others are not changed.

        Returns:
            How many messages of all sessions they were.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget; nothing changes then.
            InputError: If one of them cannot be read.
            StateError: If a store cannot be written, or a saved session not be read; the other sessions have forgotten them
                even so. Call it again.
        """
        given, space = as_list(messages), self._space(scope)
        done: set[PooledSession] = set()
        count = await self._forget_in_memory(given, space, done)
        failures: list[StateError] = []
        for name, keys in self._saved_in(space):
            try:
                session = self._loaded(name)
                for answer in () if session is None else session.forget_stored(given):
                    if inspect.isawaitable(answer):
                        await answer
                count += 0 if session is None else self._forget_saved(session, given, space, keys)
            except StateError as error:
                failures.append(error)
        count += await self._forget_in_memory(given, space, done)
        self._end(failures)
        return count

    async def _forget_in_memory(self, given: list[Any], space: str, done: set[PooledSession]) -> int:
        count = 0
        for each in self._in_memory(space, done):
            async with each.session.lock.task:
                if self._has_begun(each):
                    for answer in each.session.forget_stored(given):
                        if inspect.isawaitable(answer):
                            await answer
                    count += self._forget_in(each, given)
        return count

    def forget_sync(self, messages: Iterable[Any], scope: str = "") -> int:
        """`forget` for stores that are not awaited."""
        given, space = as_list(messages), self._space(scope)
        done: set[PooledSession] = set()
        count = self._forget_in_memory_sync(given, space, done)
        failures: list[StateError] = []
        for name, keys in self._saved_in(space):
            try:
                if (session := self._loaded(name)) is not None:
                    none_awaited(session.forget_stored(given))
                    count += self._forget_saved(session, given, space, keys)
            except StateError as error:
                failures.append(error)
        count += self._forget_in_memory_sync(given, space, done)
        self._end(failures)
        return count

    def _forget_in_memory_sync(self, given: list[Any], space: str, done: set[PooledSession]) -> int:
        count = 0
        for each in self._in_memory(space, done):
            with each.session.lock.thread:
                if self._has_begun(each):
                    none_awaited(each.session.forget_stored(given))
                    count += self._forget_in(each, given)
        return count

    # ---------------------------------------------------------------- in memory

    def _space(self, scope: str) -> str:
        return lookup_key(self._scope, scope, self._format_name)

    def _in_memory(self, space: str, done: set[PooledSession]) -> Iterator[PooledSession]:
        """Yield each session of a space that is not done, those too that are made meanwhile."""
        while True:
            with self._lock:
                waiting = [each for each in self._directory.in_space(space) if each not in done]
            if not waiting:
                return
            for each in waiting:
                done.add(each)
                yield each

    def _has_begun(self, found: PooledSession) -> bool:
        """Whether a session has followed a list; one that has not is given up, with what it was to take over."""
        if not found.has_begun:
            with self._lock:
                self._directory.remove(found)
        return found.has_begun

    def _forget_in(self, found: PooledSession, given: list[Any]) -> int:
        """Forget in a session of which the caller holds the lock, and in what the pool knows of it."""
        revision = found.session.revision
        try:
            return found.session.forget_known(given)
        finally:
            if found.session.revision != revision:
                found.note()
                with self._lock:
                    if not found.is_gone:
                        self._directory.renew(found)

    # ---------------------------------------------------------------- saved

    def _saved_in(self, space: str) -> list[tuple[str, list[str]]]:
        return [] if self._store is None else list(self._store.in_scope(space).items())

    def _loaded(self, name: str) -> CompactionSession | None:
        """Return a saved session that is not in memory; ``None`` if it is there, or was deleted."""
        assert self._store is not None
        if name in self._directory:
            return None
        state = self._store.load(name)
        return None if state is None else self._resumed(state, id=name)

    def _forget_saved(self, session: CompactionSession, given: list[Any], space: str, keys: list[str]) -> int:
        """Forget in a saved session, and save it under keys that know nothing of the messages."""
        assert self._store is not None
        revision = session.revision
        count = session.forget_known(given)
        if session.revision != revision:
            fingerprints = session.index.snapshot.fingerprints
            new = keys_of_saved(space, session.id, fingerprints, keys)
            self._store.keyed(lambda: (space, new)).save(session.id, session.to_dict())
        return count

    def _end(self, failures: list[StateError]) -> None:
        if self._store is not None:
            self._store.scrub()
        if failures:
            raise failures[0]
