"""Relay: what a strategy yields, and how whoever runs one strategy within another answers it.

A strategy yields edits, `Drops`, `Request`s and `StepReport`s. `relay` runs it for a caller that answers some of these itself,
and passes the others on to its own caller: a wrapper around a strategy, a dry run, or the drivers in `compaction.run`.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from types import GeneratorType
from typing import Any, ClassVar, Final, TypeVar, cast

import attrs

from ..errors import StrategyError, SyncDriverError
from .edits import Drop

_T = TypeVar("_T")


@attrs.frozen(eq=False)
class Drops:
    """Drops made one after the other until a target holds. The index applies them in one loop, with a `Drop` for each set.

    Args:
        cuts: The sets of groups, oldest first, as `MessageIndex.steps` yields them.
        reason: The reason of each drop.
        reached: Called before each drop; returns whether to stop.
    """

    cuts: Iterable[Sequence[int]]
    reason: str
    reached: Callable[[], bool]

    def one_by_one(self) -> Generator[Drop, Any, None]:
        """Yield the drops; the caller applies each before the next."""
        reached, reason = self.reached, self.reason
        for cut in self.cuts:
            if reached():
                return
            yield Drop(cut, reason)


class Request(abc.ABC):
    """A request for something from outside, such as a model's answer. A strategy yields it like an edit.

    `compaction.run` calls it, awaits the result if it is awaitable, and sends the answer back to the strategy. If it fails, the
    exception is raised at the strategy's ``yield``.
    """

    __slots__ = ()

    @abc.abstractmethod
    def call(self) -> Any:
        """Return the answer, or an awaitable of it."""

    async def wait(self, answer: Awaitable[_T]) -> _T:
        """Await the answer; a subclass may limit the time."""
        return await answer


class RunReport:
    """The base of what a strategy reports, such as a failure."""


class StepReport(RunReport):
    """The base of the reports that a step of a run began or (``is_end``) ended; see `StepBegan` and `StepEnded`."""

    strategy: Any
    is_end: ClassVar[bool] = False


def steps_of(strategy: Callable[[Any], Iterable[Any]], index: object, name: str) -> Generator[Any, Any, Any]:
    """Return a strategy, or a plain function with this name, as a generator that runs on an index.

    Raises:
        StrategyError: If it returns something else than items.
    """
    steps = strategy(index)
    if not isinstance(steps, Iterable):
        raise StrategyError(f"{name} returned {steps!r}; a strategy must yield edits, or return a list of them")
    return cast("Generator[Any, Any, Any]", steps if isinstance(steps, Generator) else (step for step in steps))


def unknown(item: object, name: str) -> StrategyError:
    """Return the error for an item that the strategy with this name may not yield."""
    return StrategyError(f"{name} yielded {item!r}; a strategy must yield edits, requests or reports")


PASS_ON: Final = object()
"""The answer that makes `relay` yield an item to its own caller."""


def relay(
    strategy: Generator[Any, Any, Any],
    answered: Callable[[Any], Any],
    *,
    until: Callable[[Any], bool] | None = None,
    drop_all: Callable[[Drops], object] | None = None,
) -> Generator[Any, Any, bool]:
    """Run a strategy: call ``answered`` for each item that it yields, and send the answer to the strategy.

    The caller closes ``strategy``. What an item leads to:

    ================  ==================  =======================  ================================
    Item              ``answered`` gives  Answer to the strategy   Exceptions on the way to it
    ================  ==================  =======================  ================================
    `Drops`           (see ``drop_all``)  ``None``                 end the run
    any other         `PASS_ON`           the caller's             are thrown into the strategy
    `Request`         something else      that, or a generator's   are thrown into the strategy
    any other         something else      that, or a generator's   end the run
    ================  ==================  =======================  ================================

    Args:
        strategy: The running strategy.
        answered: Returns the answer to an item, or `PASS_ON`, or a generator that yields other items to the caller and returns
            the answer.
        until: Called after an item was answered; returns whether to stop.
        drop_all: Applies `Drops`; if ``None``, each of the drops is answered as an item.

    Returns:
        Whether ``until`` stopped it.
    """
    resume: Callable[[Any], Any] = strategy.send
    value: Any = None
    is_stopped = False
    while not is_stopped:
        try:  # only here: a ``StopIteration`` raised elsewhere does not end the run
            item: Any = resume(value)
        except StopIteration:
            return False
        resume, value = strategy.send, None
        if item.__class__ is Drops:
            if drop_all is not None:
                value = drop_all(item)
            elif (yield from relay(item.one_by_one(), answered, until=until)):
                return True
            continue
        is_with_caller = False
        try:
            value = answered(item)
            if value is PASS_ON:
                is_with_caller = True
                value = yield item
            elif value.__class__ is GeneratorType:
                value = yield from cast("Generator[Any, Any, Any]", value)
        except Exception as raised:
            if not (is_with_caller or isinstance(item, Request)):
                raise
            resume, value = strategy.throw, raised
            continue
        is_stopped = until is not None and until(item)
    return True


def unawaited(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that awaits nothing, without an event loop.

    Raises:
        SyncDriverError: If it awaits something.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    coroutine.close()
    raise SyncDriverError("this call has to be awaited: use the method without _sync")
