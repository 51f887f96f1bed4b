"""Ctrl-C and SIGTERM while a batch runs: the first asks it to end, the second ends it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from typing import Any, Final

from .exit_codes import print_error

_GRACE_SECONDS: Final = 1.0


@contextlib.contextmanager
def stop_on_signals() -> Generator[list[int]]:
    """Yield a list that gets the exit code of Ctrl-C or SIGTERM, so that a batch can end in its own time.

    One second later, or at the next of these signals, the batch ends by `KeyboardInterrupt`. A worker may need minutes for
    its slice; the next run does again what is unfinished then. Outside the main thread the list stays empty.
    """
    codes: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield codes
        return
    timed = hasattr(signal, "setitimer")

    def stop(number: int, _: object) -> None:
        codes.append(128 + number)
        for each, handler in before.items():
            signal.signal(each, handler)
        if timed:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, _GRACE_SECONDS)
        again = "Ctrl-C" if number == signal.SIGINT else "the signal"
        print_error(f"stopping: what is finished within {_GRACE_SECONDS:g} s is kept; {again} again stops at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    alarm: Any = signal.getsignal(signal.SIGALRM) if timed else None
    try:
        yield codes
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)
        for number, handler in before.items():
            signal.signal(number, handler)
