"""One call runs at a time, over threads and event loops; a call that would wait for itself raises at once."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from compaction.errors import SyncDriverError
from compaction.index import MessageIndex
from compaction.session import CompactionSession, unawaited_calls
from compaction.session.lock import CallLock
from tests.laws.test_interruptions import Interruption
from tests.support.limits import WAIT_SECONDS
from tests.support.scripted import Awaited
from tests.unit.session.test_session import chat, cut, session, summarizing

BACKENDS = ["asyncio", "trio"]


def in_threads(*actions: Callable[[], object]) -> list[BaseException]:
    """Run each action in its own thread and return the exceptions. A thread that hangs fails the test."""
    raised: list[BaseException] = []

    def run(action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=[action], daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a call hangs"
    return raised


class Room:
    """A lock and the calls inside it. Holds state: how many there are, and the maximum."""

    def __init__(self) -> None:
        self.lock = CallLock()
        self.inside = self.most = self.calls = 0

    def enter(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)

    def leave(self) -> None:
        self.inside -= 1
        self.calls += 1

    async def awaited(self, calls: int) -> None:
        """Make calls in a task that other tasks interrupt."""
        for _ in range(calls):
            async with self.lock.task:
                self.enter()
                await anyio.lowlevel.checkpoint()
                self.leave()

    async def many(self, tasks: int, calls: int) -> None:
        """The same in several tasks of a loop."""
        async with anyio.create_task_group() as group:
            for _ in range(tasks):
                group.start_soon(self.awaited, calls)

    def blocking(self, calls: int) -> None:
        """Make calls in a thread."""
        for _ in range(calls):
            with self.lock.thread:
                self.enter()
                self.leave()


def test_loops_and_threads_call_one_after_another() -> None:
    """Tasks of asyncio and trio in six threads, and two plain threads: never two calls at a time, and every call runs."""
    room, before = Room(), {*threading.enumerate()}
    loops = [lambda backend=backend: anyio.run(room.many, 4, 20, backend=backend) for backend in BACKENDS * 3]
    assert in_threads(*loops, *[lambda: room.blocking(80)] * 2) == []
    assert (room.most, room.inside, room.calls) == (1, 0, 6 * 4 * 20 + 2 * 80)
    assert {*threading.enumerate()} <= before
    with room.lock.if_free() as free:
        assert free


async def test_cancelled_while_waiting_the_lock_is_not_lost() -> None:
    room = Room()
    for cancelled in ("before", "while", "after"):
        async with anyio.create_task_group() as tasks:
            async with room.lock.task:
                tasks.start_soon(room.awaited, 1)
                await anyio.wait_all_tasks_blocked()
                if cancelled != "after":
                    tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=cancelled == "before"):
                    await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        with room.lock.if_free() as free:
            assert free
    with anyio.fail_after(5):
        await room.awaited(1)
    assert room.inside == 0


async def test_a_cancelled_call_does_not_begin() -> None:
    room = Room()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await room.awaited(1)
    assert (scope.cancelled_caught, room.calls) == (True, 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_cancelled_in_one_loop_another_continues(backend: str) -> None:
    room = Room()

    async def impatient() -> None:
        for number in range(60):
            with anyio.move_on_after(number % 5 / 2_000):
                async with room.lock.task:
                    await anyio.sleep(0.001)

    loops = [lambda: anyio.run(impatient, backend=backend)] * 3
    assert in_threads(*loops, lambda: anyio.run(room.many, 2, 20), lambda: room.blocking(20)) == []
    assert (room.calls, room.most) == (60, 1)
    with room.lock.if_free() as free:
        assert free


def test_a_loop_that_ended_is_passed_over() -> None:
    import asyncio

    room = Room()
    loop = asyncio.new_event_loop()
    with room.lock.thread:
        abandoned = threading.Thread(target=loop.run_until_complete, args=[_started(loop, room)])
        abandoned.start()
        abandoned.join()
        loop.close()
        other = threading.Thread(target=room.blocking, args=[1])
        other.start()
    other.join(WAIT_SECONDS)
    assert room.calls == 1


async def _started(loop: Any, room: Room) -> None:
    """Start a call that waits, and leave it."""
    task = loop.create_task(room.awaited(1))
    for _ in range(9):
        await anyio.lowlevel.checkpoint()
    task._log_destroy_pending = False
    _ABANDONED.append(task)


_ABANDONED: list[Any] = []


async def test_a_call_inside_a_call_is_refused() -> None:
    raised: list[Exception] = []

    def nested(index: MessageIndex) -> Iterator[Any]:
        with pytest.raises(SyncDriverError) as refused:
            watched.view_sync(chat(1))
        raised.append(refused.value)
        yield from cut()(index)

    watched = CompactionSession(nested, counter="chars/4")
    assert watched.view_sync(chat(9)) == session().view_sync(chat(9))
    await watched.view(chat(12))
    assert len(raised) == 2


async def test_a_task_inside_its_own_call_is_refused() -> None:
    lock = CallLock()
    async with lock.task:
        with pytest.raises(SyncDriverError):
            async with lock.task:
                pass
        with lock.if_free() as free:
            assert not free
    with lock.thread, pytest.raises(SyncDriverError):  # the thread of this task waits for nobody
        async with lock.task:
            pass
    kept = lock.task
    async with kept:
        pass
    with lock.if_free() as free:
        assert free


def test_an_interrupted_call_leaves_the_lock() -> None:
    """Ctrl-C between taking the lock and the code that releases it: the lock is free, but not if another call has it."""
    lock, entered = CallLock(), list[Any]()

    async def interrupted(*, takes: bool) -> None:
        if takes:
            entered.append(lock.held(sync=True))  # kept, because a generator that is deleted leaves the lock
            await entered[0].__aenter__()
        raise KeyboardInterrupt

    for takes in (True, False):
        with contextlib.nullcontext() if takes else lock.thread:
            with pytest.raises(KeyboardInterrupt):
                unawaited_calls(interrupted(takes=takes))
            with lock.if_free() as free:
                assert free is takes


async def hold(lock: CallLock) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(lock.held(sync=True))


def test_a_call_that_is_interrupted_anywhere_leaves_the_lock() -> None:
    """The lock is free after it, also as long as something keeps the interruption, with all its frames, alive."""
    kept: list[BaseException] = []

    def keeping(lock: CallLock) -> None:
        try:
            unawaited_calls(hold(lock))
        except KeyboardInterrupt as interruption:
            kept.append(interruption)
            raise

    for place in itertools.count(1):
        lock = CallLock()
        was_interrupted = Interruption(place, bytecodes=True).during(functools.partial(keeping, lock))
        with lock.if_free() as free:
            assert free, place
        if not was_interrupted:
            break
    assert len(kept) > 20


def test_an_interrupted_call_takes_no_other_from_the_queue() -> None:
    room = Room()

    async def interrupted() -> None:
        raise KeyboardInterrupt

    waiting = threading.Thread(target=room.blocking, args=[1], daemon=True)
    with room.lock.thread:
        waiting.start()
        while not room.lock._waiting:
            time.sleep(0.001)
        with pytest.raises(KeyboardInterrupt):
            unawaited_calls(interrupted())
    waiting.join(WAIT_SECONDS)
    assert room.calls == 1


def test_an_interrupted_call_wakes_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting thread gets the lock even if Ctrl-C interrupts the call that hands it over."""
    room, wake = Room(), threading.Condition.notify_all

    def interrupted(condition: threading.Condition) -> None:
        monkeypatch.setattr(threading.Condition, "notify_all", wake)
        raise KeyboardInterrupt

    waiting = threading.Thread(target=room.blocking, args=[1], daemon=True)
    with pytest.raises(KeyboardInterrupt), room.lock.thread:  # noqa: PT012
        waiting.start()
        while not room.lock._waiting:
            time.sleep(0.001)
        monkeypatch.setattr(threading.Condition, "notify_all", interrupted)
    waiting.join(WAIT_SECONDS)
    assert room.calls == 1


async def test_a_call_that_blocks_its_loop_goes_before_those_it_blocks() -> None:
    room, inside, leave = Room(), threading.Event(), threading.Event()

    def hold() -> None:
        with room.lock.thread:
            inside.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait(30)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(room.awaited, 1)
        await anyio.wait_all_tasks_blocked()
        threading.Timer(0.05, leave.set).start()
        room.blocking(1)
        assert room.calls == 1
    holder.join()
    assert room.calls == 2


async def test_a_call_that_blocks_its_own_loop_is_refused() -> None:
    watched = session(summarizing(Awaited("Round.", seconds=0.2)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watched.view, chat(9))
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(SyncDriverError, match="deadlock"):
            watched.view_sync(chat(9))
    assert watched.status().compactions == 1
