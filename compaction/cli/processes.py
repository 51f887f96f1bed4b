"""Processes that do the same work until a signal ends them; one that ends by itself is started again."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

_LEAST_SECONDS: Final = 2.0  # a process that ends by itself earlier would end again, so it is not started again
_MOST_KILLED: Final = 5  # processes in a row that a signal may end so early
_STOP_SECONDS: Final = 10.0


def run_processes(count: int, work: Callable[[int], None]) -> None:
    """Run this many processes until a signal ends this one."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("--workers needs a system that can fork; leave it out")
    running: dict[int, tuple[BaseProcess, float]] = {}
    killed = 0
    with _ended_by_signals(running):
        for number in range(count):
            running[number] = _started(work, number)
        while True:
            wait([process.sentinel for process, _ in running.values()])
            for number, (process, since) in list(running.items()):
                if process.is_alive():
                    continue
                is_early = time.monotonic() - since < _LEAST_SECONDS
                killed = killed + 1 if is_early else 0
                if is_early and ((process.exitcode or 0) >= 0 or killed > _MOST_KILLED):
                    raise ConfigurationError(
                        f"worker {number} ended with code {process.exitcode} right after its start; its messages above say why"
                    )
                running[number] = _started(work, number)


@contextlib.contextmanager
def _ended_by_signals(running: dict[int, tuple[BaseProcess, float]]) -> Generator[None]:
    """Turn signals into an exit, and end the processes in any case."""
    before = {each: signal.signal(each, _exit) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join(_STOP_SECONDS)
        for each, handler in before.items():
            signal.signal(each, handler)


def _exit(number: int, frame: object) -> None:
    sys.exit(0)


def _started(work: Callable[[int], None], number: int) -> tuple[BaseProcess, float]:
    process = multiprocessing.get_context("fork").Process(target=_process, args=(work, number), daemon=True)
    process.start()
    return process, time.monotonic()


def _process(work: Callable[[int], None], number: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(number)


def _end_with_parent() -> None:
    """End this process after the one that started it, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
