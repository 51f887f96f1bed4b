"""One turn of a conversation at a time, whether threads or tasks take them."""

from __future__ import annotations

import threading

import anyio

__all__ = ["TurnLock"]


class TurnLock:
    """What is held while a turn is taken: ``async with lock.task`` or ``with lock.thread``. Holds state: the locks.

    Tasks wait for tasks and threads for threads; a conversation is used by one or the other.
    """

    def __init__(self) -> None:
        self.thread = threading.RLock()
        self._tasks: dict[type[BaseException], anyio.Lock] = {}

    @property
    def task(self) -> anyio.Lock:
        """The lock of the running backend: a lock belongs to the one it was made on, a conversation to none."""
        return self._tasks.setdefault(anyio.get_cancelled_exc_class(), anyio.Lock())
