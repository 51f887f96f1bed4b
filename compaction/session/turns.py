"""The lock that admits one turn of a session at a time, wherever it comes from: tasks of any event loops, and threads."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel
import attrs

from ..errors import SyncDriverError
from ..run import unawaited

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class _Turn:
    """A turn that holds the lock or waits for it.

    Args:
        wake: Tells the one who waits that the lock is its own now; a ``RuntimeError`` if its event loop is closed.
        task: The id of its task; ``None`` for a turn that is not awaited.
        thread: The thread it runs in.
    """

    wake: Callable[[], object]
    task: int | None = None
    thread: int = attrs.field(factory=threading.get_ident)


class TurnLock:
    """Admits one turn at a time: ``async with lock.task`` or ``with lock.thread``. Holds state: who has it and who waits.

    Tasks of any event loops, on asyncio and trio, and threads may share one; it starts no thread. Turns are admitted in the
    order they came, those that block their thread before those that are awaited. A turn that would wait for itself raises
    `SyncDriverError` at once: one that begins inside another of the same task, or one that blocks the thread whose event loop
    runs the other.

    >>> lock = TurnLock()
    >>> with lock.thread, lock.if_free() as free:
    ...     print(free)
    False
    """

    def __init__(self) -> None:
        self._guard = threading.RLock()  # held only while the two below are read or changed
        self._holder: _Turn | None = None
        self._waiting: list[_Turn] = []

    @property
    def task(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the lock in a task; the other tasks of its event loop run while it waits."""
        return _AwaitedTurn(self._enter, self._leave)

    @property
    @contextlib.contextmanager
    def thread(self) -> Generator[None]:
        """Hold the lock in a thread, which waits for it."""
        admitted = threading.Event()
        turn = _Turn(admitted.set)
        try:
            if not self._enter(turn):
                admitted.wait()
            yield
        finally:
            self._leave(turn)

    def held(self, *, sync: bool) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the lock in a task, or, if ``sync``, in a thread."""
        return Blocking(self.thread) if sync else self.task

    @contextlib.contextmanager
    def if_free(self) -> Generator[bool]:
        """Hold the lock if nobody does, and return whether it is held; never waits."""
        turn = _Turn(_nothing)
        with self._guard:
            free = self._holder is None
            if free:
                self._holder = turn
        try:
            yield free
        finally:
            self._leave(turn)

    def _enter(self, turn: _Turn) -> bool:
        """Take the lock or wait for it; says which.

        Raises:
            SyncDriverError: If the turn would wait for itself.
        """
        with self._guard:
            holder = self._holder
            if holder is None:
                self._holder = turn
                return True
            if holder.thread == turn.thread and (turn.task is None or holder.task in (None, turn.task)):
                raise SyncDriverError(
                    "this turn would wait for itself: the turn under way runs in the same task or thread; "
                    "await the session's methods inside an event loop, and begin no turn inside another"
                )
            self._waiting.append(turn)
            return False

    def _leave(self, turn: _Turn) -> None:
        """Pass the lock on, or stop waiting for it."""
        with self._guard:
            if turn in self._waiting:
                self._waiting.remove(turn)
            if self._holder is not turn:
                return
            self._holder = None
            while self._waiting and self._holder is None:
                following = min(self._waiting, key=_blocks_no_thread)
                self._waiting.remove(following)
                with contextlib.suppress(RuntimeError):  # its event loop is closed: nobody waits any more
                    following.wake()
                    self._holder = following


class _AwaitedTurn(contextlib.AbstractAsyncContextManager[None]):
    """A turn of a task. Not an async generator: an event loop that ends would have to finish it."""

    def __init__(self, enter: Callable[[_Turn], bool], leave: Callable[[_Turn], None]) -> None:
        self._enter = enter
        self._leave = leave

    async def __aenter__(self) -> None:
        await anyio.lowlevel.checkpoint()
        admitted = anyio.Event()
        self._turn = _Turn(_waker(admitted), task=anyio.get_current_task().id)
        try:
            if not self._enter(self._turn):
                await admitted.wait()
        except BaseException:
            self._leave(self._turn)
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._leave(self._turn)


class Blocking(contextlib.AbstractAsyncContextManager[_T]):
    """A context manager that is not awaited, for ``async with`` in the sync form of an async function."""

    def __init__(self, manager: contextlib.AbstractContextManager[_T]) -> None:
        self._manager = manager

    async def __aenter__(self) -> _T:
        return self._manager.__enter__()

    async def __aexit__(self, *exception: object) -> bool | None:
        return self._manager.__exit__(*cast("Any", exception))


class Unawaited(contextlib.AbstractContextManager[_T]):
    """A context manager of ``async with`` that awaits nothing, for ``with``."""

    def __init__(self, manager: contextlib.AbstractAsyncContextManager[_T]) -> None:
        self._manager = manager

    def __enter__(self) -> _T:
        return unawaited(_awaiting(self._manager.__aenter__()))

    def __exit__(self, *exception: object) -> bool | None:
        return unawaited(_awaiting(self._manager.__aexit__(*cast("Any", exception))))


async def _awaiting(awaitable: Awaitable[_T]) -> _T:
    return await awaitable


def _blocks_no_thread(turn: _Turn) -> bool:
    return turn.task is not None


def _nothing() -> None:
    pass


def _waker(event: anyio.Event) -> Callable[[], object]:
    """Return a function that sets an event of the running loop from any thread, and does not wait."""
    schedule = loop_scheduler()
    return lambda: schedule(event.set)


def loop_scheduler() -> Callable[..., object]:
    """Return a function that has the running loop call another one, with arguments, from any thread, and does not wait.

    What is called runs in the context variables of this task, not of that thread: an event loop knows itself by them. It raises
    a ``RuntimeError`` once the loop has ended.
    """
    context = contextvars.copy_context()
    loop: Any = anyio.lowlevel.current_token().native_token
    soon: Callable[..., object] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe  # trio, asyncio

    def schedule(call: Callable[..., object], *arguments: object) -> object:
        return soon(context.copy().run, call, *arguments)

    return schedule
