"""Background tasks of sessions: who owns them, how they are started from any thread, and how they end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Self

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from ..errors import ConfigurationError
from .turns import loop_scheduler

__all__ = ["BackgroundTask", "BackgroundTasks"]


class BackgroundTask:
    """Work that an owner runs. Holds state: where it runs, once it does, and whether it was cancelled.

    Args:
        work: The work; it raises nothing.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._guard = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._cancelled = False

    async def run(self) -> None:
        """Do the work, unless it was cancelled before it began."""
        with anyio.CancelScope() as scope:
            schedule = loop_scheduler()
            with self._guard:
                self._cancel = lambda: schedule(scope.cancel)
                if self._cancelled:
                    return
            try:
                await self._work()
            finally:
                with self._guard:
                    self._cancel = None

    def cancel(self) -> None:
        """Cancel the work from any thread, and do not wait for its end."""
        with self._guard:
            self._cancelled, cancel = True, self._cancel
        if cancel is not None:
            with contextlib.suppress(RuntimeError):  # its event loop is closed: the task is gone
                cancel()


class BackgroundTasks:
    """The owner of background tasks: ``async with BackgroundTasks()``, or a portal. Holds state: whether it is open.

    Tasks are started from any thread, and run in the event loop in which it was entered. On leaving, all are cancelled and
    waited for. One owner serves any number of sessions: pass it as their ``portal=``.

    Args:
        portal: An event loop that runs already, for hosts that are not awaited. Then nothing has to be entered, and whoever
            made it ends its tasks.

    >>> async def main():
    ...     async with BackgroundTasks() as tasks:
    ...         done = anyio.Event()
    ...         async def work():
    ...             done.set()
    ...         tasks.start(work)
    ...         await done.wait()
    >>> anyio.run(main)
    """

    def __init__(self, portal: BlockingPortal | None = None) -> None:
        self._portal = portal
        self._group: TaskGroup | None = None
        self._schedule: Callable[..., object] | None = None
        self._was_opened = False

    def require(self) -> None:
        """Raise a `ConfigurationError` if it was never entered and has no portal; one that was closed raises nothing."""
        if self._portal is None and not self._was_opened:
            raise ConfigurationError(
                "ahead= asks in the background, which needs an owner: begin turns inside `async with session:`, or pass portal="
            )

    @property
    def is_open(self) -> bool:
        """Whether it runs tasks; taken to be so for a portal."""
        return self._portal is not None or self._group is not None

    def start(self, work: Callable[[], Awaitable[object]]) -> BackgroundTask | None:
        """Start work that raises nothing, and do not wait for its beginning.

        Returns:
            The task; ``None`` if the owner is closed.
        """
        task = BackgroundTask(work)
        try:
            if self._portal is not None:
                self._portal.start_task_soon(task.run)
            elif self._schedule is None:
                return None
            else:
                self._schedule(self._begin, task)
        except RuntimeError:  # the event loop has ended, or its own thread uses the portal
            return None
        return task

    def _begin(self, task: BackgroundTask) -> None:
        if self._group is not None:
            self._group.start_soon(task.run)

    async def __aenter__(self) -> Self:
        if self._portal is not None:
            return self
        if self._group is not None:
            raise ConfigurationError("these background tasks are open already: enter them once at a time")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group, self._schedule, self._was_opened = group, loop_scheduler(), True
        return self

    async def __aexit__(self, *exception: object) -> None:
        group, self._group, self._schedule = self._group, None, None
        if group is not None:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
