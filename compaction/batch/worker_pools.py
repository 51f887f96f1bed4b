"""Pools of workers that compact slices: in this process, in other processes, or concurrently in an event loop.

Each pool takes slices and returns futures, so `BatchRun` does not depend on the kind of pool. Ray's pool is in `ray.py`.
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
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from typing import Any, Self, TypeAlias

import anyio
import anyio.from_thread

from ..errors import ConfigurationError
from .input_files import FileKind
from .rate_limits import RateLimiter
from .slice_worker import SliceResult, WorkerConfig, compact_slice, compact_slice_async
from .slices import Slice


class WorkerPool(contextlib.AbstractContextManager["WorkerPool"]):
    """Workers that compact slices.

    Attributes:
        max_pending: The number of slices it takes at a time.
        count: The number of workers.
    """

    max_pending: int
    count: int

    @abc.abstractmethod
    def submit(self, slice: Slice, kind: FileKind, ended: bool) -> Future[SliceResult]:
        """Start a slice; the arguments are those of `compact_slice`."""

    def __exit__(self, *raised: object) -> None:
        """Do nothing: there is nothing to close."""


WorkerPoolFactory: TypeAlias = Callable[[WorkerConfig], WorkerPool]
"""A function that makes a worker pool."""


class InlinePool(WorkerPool):
    """A pool that compacts each slice at once, in this process."""

    max_pending = 1
    count = 1

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config

    def submit(self, slice: Slice, kind: FileKind, ended: bool) -> Future[SliceResult]:
        """Compact a slice."""
        future: Future[SliceResult] = Future()
        try:
            future.set_result(compact_slice(self._config, slice, kind, ended))
        except Exception as error:
            future.set_exception(error)
        return future


class ProcessPool(WorkerPool):
    """Holds state: a pool of fresh processes. The configuration is sent to each once, and no messages are sent back.

    Args:
        config: What the workers do.
        count: The number of processes.

    Raises:
        ConfigurationError: If the configuration cannot be sent to another process.
    """

    def __init__(self, config: WorkerConfig, count: int) -> None:
        try:
            pickle.dumps(config)
        except Exception as error:
            raise ConfigurationError(
                f"the strategy or the counter cannot be sent to another process ({error}); define it in a"
                " module, or take one worker"
            ) from error
        self.max_pending = count + 2
        self.count = count
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(count, mp_context=context, initializer=_start_process, initargs=(config,))

    def submit(self, slice: Slice, kind: FileKind, ended: bool) -> Future[SliceResult]:
        """Start a slice in one of the processes."""
        return self._pool.submit(_compact_in_process, slice, kind, ended)

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


_process_config: list[WorkerConfig] = []  # in a worker process: the one configuration it was started with


def _start_process(config: WorkerConfig) -> None:
    """Prepare a worker process: Ctrl-C is handled by its parent, and warnings were shown there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    _process_config[:] = [config]
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exit when the parent process is gone; a worker would otherwise wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _compact_in_process(slice: Slice, kind: FileKind, ended: bool) -> SliceResult:
    with _garbage_collection_paused():
        return compact_slice(_process_config[0], slice, kind, ended)


@contextlib.contextmanager
def _garbage_collection_paused() -> Generator[None]:
    """Collect garbage after a slice only: a conversation has hardly any cycles, and every collection walks all of it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


class AsyncPool(WorkerPool):
    """Holds state: an event loop in a thread, in which many conversations wait for their summaries at a time.

    Args:
        config: What the workers do.
        rate_limiter: How many conversations at a time, and how fast requests are sent.
        stop: Called before each conversation; when it returns true, no further one is started.
    """

    max_pending = 2

    def __init__(self, config: WorkerConfig, rate_limiter: RateLimiter, stop: Callable[[], bool]) -> None:
        self.count = rate_limiter.limits.concurrency
        self._config = config
        self._stop = stop
        self._exit_stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._portal = self._exit_stack.enter_context(anyio.from_thread.start_blocking_portal())
        self._capacity = self._portal.call(anyio.CapacityLimiter, self.count)
        return self

    def submit(self, slice: Slice, kind: FileKind, ended: bool) -> Future[SliceResult]:
        """Start a slice in the event loop."""
        task: Callable[..., Any] = partial(compact_slice_async, stop=self._stop)
        return self._portal.start_task_soon(task, self._config, slice, kind, ended, self._capacity)

    def __exit__(self, *raised: object) -> None:
        self._exit_stack.close()
