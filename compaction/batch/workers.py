"""Who does the slices: this process, other processes, or tasks that await a summarizer. Ray's are in `ray.py`.

All of them take a slice and give a future, so that the engine knows nothing of them.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from typing import Any, Protocol, Self, TypeAlias

import anyio
import anyio.from_thread

from ..errors import ConfigurationError
from .limits import Gate
from .slices import Slice
from .sources import Kind
from .working import Done, Order, work, work_async

__all__ = ["Awaiting", "Here", "MakeWorkers", "Processes", "Workers"]


class Workers(Protocol):
    """Does slices."""

    @property
    def most(self) -> int:
        """How many slices it is given at a time."""
        ...

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def submit(self, slice: Slice, kind: Kind, ended: bool) -> Future[Done]:
        """Begin a slice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *raised: object) -> None: ...


MakeWorkers: TypeAlias = Callable[[Order], Workers]
"""Makes workers, given what is to be done."""


class Here(contextlib.AbstractContextManager["Here"]):
    """Does a slice when it is given, in this process."""

    most = 1
    count = 1

    def __init__(self, order: Order) -> None:
        self._order = order

    def submit(self, slice: Slice, kind: Kind, ended: bool) -> Future[Done]:
        """Begin a slice."""
        future: Future[Done] = Future()
        try:
            future.set_result(work(self._order, slice, kind, ended))
        except Exception as error:
            future.set_exception(error)
        return future

    def __exit__(self, *raised: object) -> None:
        """There is nothing to end."""


class Processes(contextlib.AbstractContextManager["Processes"]):
    """Holds state: a pool of fresh processes. The job is sent once to each, and nothing of a transcript comes back.

    Args:
        order: What is to be done.
        count: How many processes.

    Raises:
        ConfigurationError: If the job cannot be sent to another process.
    """

    def __init__(self, order: Order, count: int) -> None:
        try:
            pickle.dumps(order)
        except Exception as error:
            raise ConfigurationError(
                f"the strategy or the counter cannot be sent to another process ({error}); define it in a"
                " module, or take one worker"
            ) from error
        self.most = count + 2
        self.count = count
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(order,))

    def submit(self, slice: Slice, kind: Kind, ended: bool) -> Future[Done]:
        """Begin a slice."""
        return self._pool.submit(_work, slice, kind, ended)

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


_orders: list[Order] = []  # of a worker process: what it was told


def _begin(order: Order) -> None:
    """Make a process ready. Ctrl-C is for its parent to deal with, and what there is to warn of was said there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    _orders[:] = [order]
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is gone: it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _work(slice: Slice, kind: Kind, ended: bool) -> Done:
    with _rarely_collecting():
        return work(_orders[0], slice, kind, ended)


@contextlib.contextmanager
def _rarely_collecting() -> Generator[None]:
    """No garbage collection within a slice: a conversation makes no cycles to speak of, and is walked by each collection."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


class Awaiting(contextlib.AbstractContextManager["Awaiting"]):
    """Holds state: an event loop in a thread, in which conversations wait for their summaries together.

    Args:
        order: What is to be done.
        gate: How many at a time, and how fast.
        stop: Asked before each conversation whether to begin it.
    """

    most = 2

    def __init__(self, order: Order, gate: Gate, stop: Callable[[], bool]) -> None:
        self.count = gate.limits.concurrency
        self._order = order
        self._gate = gate
        self._stop = stop
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._portal = self._opened.enter_context(anyio.from_thread.start_blocking_portal())
        self._limiter = self._portal.call(anyio.CapacityLimiter, self._gate.limits.concurrency)
        return self

    def submit(self, slice: Slice, kind: Kind, ended: bool) -> Future[Done]:
        """Begin a slice."""
        task: Callable[..., Any] = partial(work_async, stop=self._stop)
        return self._portal.start_task_soon(task, self._order, slice, kind, ended, self._limiter)

    def __exit__(self, *raised: object) -> None:
        self._opened.close()
