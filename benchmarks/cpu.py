"""CPU time, taken so that two sides can be compared: one clock, one collector setting, the smallest of several rounds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any


@contextmanager
def collector(*, on: bool) -> Iterator[None]:
    """Python's garbage collector on or off; on again afterwards."""
    gc.collect()
    if not on:
        gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds(action: Callable[..., Any], *given: Any, on: bool = False) -> tuple[float, Any]:
    """CPU seconds that one call takes, and what it returns; ``on`` says whether the garbage collector is."""
    with collector(on=on):
        start = process_time()
        answer = action(*given)
        return process_time() - start, answer


def fastest(action: Callable[..., Any], *given: Any, rounds: int, on: bool = False) -> float:
    """CPU seconds of the fastest of several calls: what is added to it by other programs on the machine is least there."""
    return min(seconds(action, *given, on=on)[0] for _ in range(rounds))
