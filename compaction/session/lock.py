"""The lock of a session: one call runs at a time, whether it comes from a thread or a task of any event loop.

A ``KeyboardInterrupt`` may interrupt ``session.view_sync(messages)`` in a plain thread at any moment. Its call must then leave
the lock, or the queue of those that wait:

1. `unawaited_calls` notes the calls of this thread so far. They may hold the locks of other sessions, and keep them.
2. `CallLock.leaving` adds this call to the calls of the thread. Within its ``try``, the call waits for the lock and holds it.
3. The ``finally`` of `leaving` makes it leave. If the interruption comes inside `CallLock.leave`, `leaving` calls that again.
4. If it comes before or after that ``try``, `unawaited_calls` makes every call leave that the thread did not have in step 1.

In ``tests/unit/session/test_lock.py``, `test_an_interrupted_call_leaves_the_lock` fails without step 1, 2 or 4, and
`test_an_interrupted_call_wakes_the_next_one` without step 3.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Collection, Coroutine, Generator
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.lowlevel
import attrs

from ..errors import SyncDriverError
from ..index import unawaited

_T = TypeVar("_T")


class _OfThread(threading.local):
    """This thread's calls outside an event loop that hold a lock or wait for one, each with its lock."""

    def __init__(self) -> None:
        self.calls: dict[_Call, CallLock] = {}


_of_thread: Final = _OfThread()


def unawaited_calls(coroutine: Coroutine[Any, Any, _T], before: Collection[_Call] | None = None) -> _T:
    """Return the result of a coroutine that calls sessions, without an event loop; see `index.unawaited`.

    If it is interrupted, all calls of this thread leave their locks, except those of ``before``, by default the present ones.
    """
    before = set(_of_thread.calls) if before is None else before  # step 1
    try:
        return unawaited(coroutine)
    except BaseException:
        for call, lock in [*_of_thread.calls.items()]:
            if call not in before:  # step 4
                lock.leave(call)
        raise


@attrs.frozen(eq=False)
class _Call:
    """A call that holds the lock or waits for it."""

    # wakes the waiting call, which then holds the lock. Raises ``RuntimeError`` if that call's event loop is closed
    wake: Callable[[], object]
    task: int | None = None  # the id of its task; ``None`` for a call in a plain thread
    thread: int = attrs.field(factory=threading.get_ident)  # the id of its thread


class CallLock:
    """A lock for tasks and threads: ``async with lock.task`` or ``with lock.thread``. Holds state: the holder and the queue.

    Threads and tasks of any event loop, on asyncio and trio, may share one lock. It starts no thread. Blocked threads get the
    lock before waiting tasks; within each kind, first come, first served. A call that could never get the lock raises
    `SyncDriverError` at once: one that starts inside another call of the same task, or one that blocks the thread whose event
    loop runs the other call.

    >>> lock = CallLock()
    >>> with lock.thread, lock.if_free() as free:
    ...     print(free)
    False
    """

    def __init__(self) -> None:
        self._guard = threading.RLock()  # held only while the two below are read or changed
        self._holder: _Call | None = None
        self._waiting: dict[_Call, None] = {}  # in the order of their arrival

    @property
    def task(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the lock in a task. Other tasks of its event loop run while it waits."""
        return self.held(sync=False)

    @property
    @contextlib.contextmanager
    def thread(self) -> Generator[None]:
        """Hold the lock in a thread. The thread blocks while it waits."""
        admitted = threading.Event()
        call = _Call(admitted.set)
        with self.leaving(call):
            if not self.enter(call):
                admitted.wait()
            yield

    def held(self, *, sync: bool) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold the lock in a task, or in a thread if ``sync`` is true."""
        return _Holding(self, sync=sync)

    @contextlib.contextmanager
    def if_free(self) -> Generator[bool]:
        """Hold the lock if it is free, and return whether it was. Never waits."""
        call = _Call(bool)  # nobody wakes it: it never waits
        with self.leaving(call):
            with self._guard:
                self._holder = self._holder or call
                free = self._holder is call
            yield free

    def enter(self, call: _Call) -> bool:
        """Give the lock to a call or put the call into the queue; return whether it has the lock."""
        with self._guard:
            holder = self._holder
            if holder is None:
                self._holder = call
                return True
            if holder.thread == call.thread and (call.task is None or holder.task in (None, call.task)):
                raise SyncDriverError(
                    "deadlock: another call of this session is running in the same task or thread; "
                    "inside an event loop, await the session's async methods, and do not call a session inside its own call"
                )
            self._waiting[call] = None
            return False

    @contextlib.contextmanager
    def leaving(self, call: _Call) -> Generator[None]:
        """Run the block, then `leave`."""
        if call.task is None:
            _of_thread.calls[call] = self  # step 2, before it can get the lock
        try:
            yield
        finally:
            try:
                self.leave(call)
            except BaseException:  # step 3: interrupted inside `leave`, which the second call finishes
                self.leave(call)
                raise

    def leave(self, call: _Call) -> None:
        """Give the lock to the next call, or leave the queue. Does nothing if the call has left."""
        with self._guard:
            self._waiting.pop(call, None)
            while self._holder is call:
                following = min(self._waiting, key=lambda each: each.task is not None, default=None)  # a blocked thread first
                if following is None:
                    self._holder = None
                    break
                with contextlib.suppress(RuntimeError):  # its event loop is closed, so it must not become the holder
                    following.wake()
                    self._holder = following
                del self._waiting[following]
        _of_thread.calls.pop(call, None)


class _Holding(contextlib.AbstractAsyncContextManager[None]):
    """A call that holds the lock, in a task or, if ``sync`` is true, in a thread.

    It is a class because ``asynccontextmanager`` could leave an unfinished async generator to an event loop that is closing.
    """

    def __init__(self, lock: CallLock, *, sync: bool) -> None:
        self._lock = lock
        self._sync = sync

    async def __aenter__(self) -> None:
        with contextlib.ExitStack() as stack:
            if self._sync:
                stack.enter_context(self._lock.thread)
            else:
                await anyio.lowlevel.checkpoint()
                admitted = anyio.Event()
                schedule = loop_scheduler()
                call = _Call(lambda: schedule(admitted.set), task=anyio.get_current_task().id)
                stack.enter_context(self._lock.leaving(call))
                if not self._lock.enter(call):
                    await admitted.wait()
            self._stack = stack.pop_all()

    async def __aexit__(self, *exception: object) -> None:
        self._stack.close()


class Unawaited(contextlib.AbstractContextManager[_T]):
    """Makes an async context manager that calls sessions, and never waits, usable with ``with``."""

    def __init__(self, manager: contextlib.AbstractAsyncContextManager[_T]) -> None:
        self._manager = manager
        self._before: frozenset[_Call] = frozenset()

    def __enter__(self) -> _T:
        self._before = frozenset(_of_thread.calls)
        return unawaited_calls(self._manager.__aenter__(), self._before)

    def __exit__(self, *exception: object) -> bool | None:
        return unawaited_calls(self._manager.__aexit__(*cast("Any", exception)), self._before)


def loop_scheduler() -> Callable[..., object]:
    """Return a function that any thread may call to have the running loop call another function, without waiting.

    The call runs with the context variables of the current task, because anyio finds its event loop there. After the loop has
    ended, scheduling raises ``RuntimeError``.
    """
    context = contextvars.copy_context()
    loop: Any = anyio.lowlevel.current_token().native_token
    soon: Callable[..., object] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe  # trio, asyncio

    def schedule(call: Callable[..., object], *arguments: object) -> object:
        return soon(context.copy().run, call, *arguments)

    return schedule
