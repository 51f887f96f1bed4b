"""Pools of workers that compact slices: in this process, in other processes, or concurrently in an event loop.

Each pool takes slices and returns futures, so that `BatchRun` is independent of the kind of pool. Ray's pool is in `ray.py`.
"""

from __future__ import annotations

import abc
import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

import anyio
import anyio.from_thread

from ..errors import ConfigurationError
from ..index import unawaited
from .parts import SliceResult
from .rate_limits import Limits, RateLimiter
from .slices import Slice
from .workers import WorkerConfig, compact_slice


class WorkerPool(contextlib.AbstractContextManager["WorkerPool"]):
    """Workers that compact slices. After an error, closing the pool ends the slices in progress at once."""

    max_pending: int  # slices that it takes at a time
    count: int  # workers
    limiter: RateLimiter | None = None  # of the summarizers, if they run in this process

    @abc.abstractmethod
    def submit(self, slice: Slice) -> Future[SliceResult]:
        """Start a slice."""

    def __exit__(self, *raised: object) -> None:
        """Close the pool; by default, do nothing."""


WorkerPoolFactory: TypeAlias = Callable[[WorkerConfig], WorkerPool]  # a function that makes a worker pool


class InlinePool(WorkerPool):
    """A pool that compacts each slice immediately, in this process; it leaves the slice when ``stop`` returns true."""

    max_pending = 1
    count = 1

    def __init__(self, config: WorkerConfig, stop: Callable[[], bool]) -> None:
        self._config = config
        self._stop = stop

    def submit(self, slice: Slice) -> Future[SliceResult]:
        future: Future[SliceResult] = Future()
        try:
            future.set_result(unawaited(compact_slice(self._config, slice, stop=self._stop)))
        except Exception as error:
            future.set_exception(error)
        return future


class ProcessPool(WorkerPool):
    """Holds state: a pool of processes. Each process gets the configuration once, and returns no messages.

    The processes are forked, so that they share the loaded modules, vocabularies and counts. A program with several threads
    cannot be forked safely; its workers are new processes, which load these themselves.
    """

    def __init__(self, config: WorkerConfig, count: int) -> None:
        try:
            pickle.dumps(config)
        except Exception as error:
            raise ConfigurationError(
                f"the strategy or the counter cannot be sent to another process ({error}); define it in a"
                " module, or use one worker"
            ) from error
        self.max_pending = count + 2
        self.count = count
        self._config = config

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("fork" if _has_one_thread() else "spawn")
        ended, self._end = context.Pipe(duplex=False)
        arguments = (self._config, ended)
        self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=_start_process, initargs=arguments)
        try:
            # This starts all processes when they are forked, before a library that reads the input starts threads.
            self._pool.submit(int)
        except BaseException:
            self._stop()  # an interruption; the processes that were started would wait, and this one for them
            raise
        return self

    def submit(self, slice: Slice) -> Future[SliceResult]:
        return self._pool.submit(_compact_in_process, slice)

    def __exit__(self, *raised: object) -> None:
        if any(raised):
            self._stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _stop(self) -> None:
        """Tell the processes to exit at once."""
        self._end.send_bytes(b".")


def _has_one_thread() -> bool:
    """Whether this process has a single thread, those of other languages included; false where this is unknown."""
    return len(list(Path("/proc/self/task").glob("*"))) == 1


_process_config: list[WorkerConfig] = []  # in a worker process: its only configuration


def _start_process(config: WorkerConfig, ended: multiprocessing.connection.Connection) -> None:
    """Prepare a worker process. Its parent handles the signals and has shown the warnings."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    warnings.simplefilter("ignore")
    _process_config[:] = [config]
    gc.freeze()  # later collections skip what is loaded now
    gc.disable()
    threading.Thread(target=_exit_with_parent, args=(ended,), daemon=True).start()


def _exit_with_parent(ended: multiprocessing.connection.Connection) -> None:
    """Exit when the parent process says so or has ended; otherwise a worker would finish its slice, or wait forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel, ended])
        os._exit(1)


def _compact_in_process(slice: Slice) -> SliceResult:
    """Compact a slice, then collect garbage: a conversation has few cycles, and each collection walks all of its objects."""
    result = unawaited(compact_slice(_process_config[0], slice))
    gc.collect()
    return result


class AsyncPool(WorkerPool):
    """Holds state: an event loop in a thread, in which many conversations await their summaries at a time.

    When ``stop`` returns true, no more conversations are started.
    """

    max_pending = 2

    def __init__(self, config: WorkerConfig, limits: Limits, stop: Callable[[], bool]) -> None:
        self.count = limits.concurrency
        self.limiter = self._limiter = RateLimiter(limits)
        self._config = config
        self._stop = stop
        self._exit_stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._portal = self._exit_stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._config = self._config.limited(self._limiter, "summaries.sqlite")
        return self

    def submit(self, slice: Slice) -> Future[SliceResult]:
        task = partial(compact_slice, limiter=self._limiter, stop=self._stop)
        return self._portal.start_task_soon(task, self._config, slice)

    def __exit__(self, *raised: object) -> None:
        exit_stack: Any = self._exit_stack
        exit_stack.__exit__(*raised)
