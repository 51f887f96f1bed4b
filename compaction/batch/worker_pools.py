"""Pools of workers that compact slices: in this process, in other processes, or concurrently in an event loop.

Each pool takes slices and returns futures, so that `BatchRun` is independent of the kind of pool. Ray's pool is in `ray.py`.
"""

from __future__ import annotations

import abc
import contextlib
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

import anyio
import anyio.from_thread

from ..errors import ConfigurationError
from .async_worker import compact_slice_async
from .input_files import FileKind
from .process_worker import compact_in_process, start_process
from .rate_limits import RateLimiter
from .slice_worker import SliceResult, WorkerConfig, compact_slice
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
        """Close the pool; by default, do nothing."""


WorkerPoolFactory: TypeAlias = Callable[[WorkerConfig], WorkerPool]
"""A function that makes a worker pool."""


class InlinePool(WorkerPool):
    """A pool that compacts each slice immediately, in this process."""

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
    """Holds state: a pool of processes. Each process gets the configuration once, and returns no messages.

    The processes are forked, so that they share the loaded modules, vocabularies and counts. A program with several threads
    cannot be forked safely; its workers are new processes, which load these themselves.

    Args:
        config: The configuration of the workers.
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
                " module, or use one worker"
            ) from error
        self.max_pending = count + 2
        self.count = count
        self._config = config

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("fork" if _has_one_thread() else "spawn")
        self._pool = ProcessPoolExecutor(self.count, mp_context=context, initializer=start_process, initargs=(self._config,))
        self._pool.submit(
            int
        )  # starts all processes when they are forked, before a library that reads the input starts threads
        return self

    def submit(self, slice: Slice, kind: FileKind, ended: bool) -> Future[SliceResult]:
        """Start a slice in one of the processes."""
        return self._pool.submit(compact_in_process, slice, kind, ended)

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def _has_one_thread() -> bool:
    """Whether this process has a single thread, those of other languages included; false where this is unknown."""
    return len(list(Path("/proc/self/task").glob("*"))) == 1


class AsyncPool(WorkerPool):
    """Holds state: an event loop in a thread, in which many conversations await their summaries at a time.

    Args:
        config: The configuration of the workers.
        rate_limiter: The rate limiter of the summarizers.
        stop: Called before each conversation; when it returns true, no more conversations are started.
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
