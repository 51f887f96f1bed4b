"""Removes messages from all sessions of a pool, in memory and in the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import StateError
from .directory import SessionDirectory
from .forgetting import settled
from .pooled import PooledSession, keys_of_saved
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore


@attrs.frozen(eq=False, kw_only=True)
class PoolForgetting:
    """Removes messages from the sessions of a pool.

    Args:
        directory: The sessions in memory.
        lock: The lock of the directory.
        store: The store of the sessions; ``None`` if they are only in memory.
        resumed: Returns the session of a saved state.
    """

    directory: SessionDirectory
    lock: threading.Lock
    store: SessionStore | None
    resumed: Callable[..., CompactionSession]

    async def forget(self, given: list[Any], space: str, *, sync: bool) -> int:
        """Remove messages from every session of a space, and return their number; see `SessionPool.forget`."""
        done: set[PooledSession] = set()
        count = await self._forget_in_memory(given, space, done, sync=sync)
        failures: list[StateError] = []
        for name, keys in self._saved_in(space):
            try:
                if (session := self._loaded(name)) is not None:
                    await settled(session.forget_stored(given), sync=sync)
                    count += self._forget_saved(session, given, space, keys)
            except StateError as error:
                failures.append(error)
        count += await self._forget_in_memory(given, space, done, sync=sync)
        if self.store is not None:
            self.store.scrub()
        if failures:
            raise failures[0]
        return count

    async def _forget_in_memory(self, given: list[Any], space: str, done: set[PooledSession], *, sync: bool) -> int:
        count = 0
        for each in self._in_memory(space, done):
            async with each.session.lock.held(sync=sync):
                if self._has_begun(each):
                    await settled(each.session.forget_stored(given), sync=sync)
                    count += self._forget_in(each, given)
        return count

    # ---------------------------------------------------------------- in memory

    def _in_memory(self, space: str, done: set[PooledSession]) -> Iterator[PooledSession]:
        """Yield each session of a space that is not done, including sessions created meanwhile."""
        while True:
            with self.lock:
                waiting = [each for each in self.directory.in_space(space) if each not in done]
            if not waiting:
                return
            for each in waiting:
                done.add(each)
                yield each

    def _has_begun(self, found: PooledSession) -> bool:
        """Whether a session has had a turn. A session without one is removed, with the state that it would have taken over."""
        if not found.has_begun:
            with self.lock:
                self.directory.remove(found)
        return found.has_begun

    def _forget_in(self, found: PooledSession, given: list[Any]) -> int:
        """Forget in a session whose lock the caller holds, and register it again."""
        revision = found.session.revision
        try:
            return found.session.forget_known(given)
        finally:
            if found.session.revision != revision:
                found.note()
                with self.lock:
                    if not found.is_gone:
                        self.directory.renew(found)

    # ---------------------------------------------------------------- saved

    def _saved_in(self, space: str) -> list[tuple[str, list[str]]]:
        return [] if self.store is None else list(self.store.in_scope(space).items())

    def _loaded(self, name: str) -> CompactionSession | None:
        """Return a saved session; ``None`` if it is in memory or was deleted."""
        assert self.store is not None
        if name in self.directory:
            return None
        state = self.store.load(name)
        return None if state is None else self.resumed(state, id=name)

    def _forget_saved(self, session: CompactionSession, given: list[Any], space: str, keys: list[str]) -> int:
        """Forget in a saved session, and save it under keys that do not depend on the messages."""
        assert self.store is not None
        revision = session.revision
        count = session.forget_known(given)
        if session.revision != revision:
            fingerprints = session.index.snapshot.fingerprints
            new = keys_of_saved(space, session.id, fingerprints, keys)
            self.store.keyed(lambda: (space, new)).save(session.id, session.to_dict())
        return count
