"""CPU time for comparisons: one clock, one collector setting, the fastest of several rounds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any


@contextmanager
def collector(*, on: bool) -> Iterator[None]:
    """Turn Python's garbage collector on or off, and on again afterwards."""
    gc.collect()
    if not on:
        gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(action: Callable[..., Any], *given: Any, on: bool = False) -> tuple[float, Any]:
    """Return the CPU seconds of one call, and its result; ``on`` is the state of the garbage collector."""
    with collector(on=on):
        start = process_time()
        answer = action(*given)
        return process_time() - start, answer


def fastest(action: Callable[..., Any], *given: Any, rounds: int, on: bool = False) -> float:
    """Return the CPU seconds of the fastest of several calls, which other programs on the machine disturb least."""
    return min(seconds(action, *given, on=on)[0] for _ in range(rounds))
