"""The one piece of logic behind both drivers: a generator that applies a strategy's edits and hands on its requests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol

from .edits import Edit, Request
from .errors import StrategyError
from .index import MessageIndex
from .strategies.base import Report, Steps, Strategy

__all__ = ["Watch", "flow"]


class Watch(Protocol):
    """What looks on while a strategy runs."""

    @property
    def running(self) -> str:
        """The name of the strategy that runs now."""
        ...

    def note(self, report: Report) -> None:
        """Take a strategy's report."""
        ...


def flow(strategy: Strategy, index: MessageIndex, watch: Watch) -> Generator[Request, Any, None]:
    """Pump a strategy and end it; what it says to being ended does not hide why.

    Args:
        strategy: What runs.
        index: What it runs on; each edit is applied before the strategy's next line.
        watch: Told what the strategy reports.

    Yields:
        What has to be called or awaited; send the answer, or throw the failure.
    """
    steps = strategy(index)
    try:
        yield from _pumped(steps, strategy, index, watch)
    except BaseException:
        with contextlib.suppress(BaseException):
            steps.close()
        raise


def _pumped(steps: Steps, strategy: Strategy, index: MessageIndex, watch: Watch) -> Generator[Request, Any, None]:
    """Apply a strategy's edits, note its reports, yield its requests and send it the answers."""
    running, answer = watch.running, None
    item = _next(steps.send, None)
    while item is not _END:
        if isinstance(item, Edit):
            answer = index.apply(item, by=running)
        elif isinstance(item, Report):
            watch.note(item)
            running, answer = watch.running, None
        elif isinstance(item, Request):
            try:
                answer = yield item
            except Exception as error:
                item = _next(steps.throw, error)
                continue
        else:
            raise StrategyError(f"{watch.running or strategy.name} yielded {item!r}; a strategy yields edits and requests")
        item = _next(steps.send, answer)


_END: Final = object()


def _next(resume: Callable[[Any], Any], value: Any) -> Any:
    """What a strategy yields next, or `_END`; no other ``StopIteration`` passes for its end."""
    try:
        return resume(value)
    except StopIteration:
        return _END
