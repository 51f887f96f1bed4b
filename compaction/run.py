"""The whole flow: a list of messages becomes an index, a strategy yields edits, a driver applies them, and the view comes out.

There is one piece of logic, `_flow`, a generator; two drivers pump it. It applies each edit before the strategy's next line
runs, hands requests (what has to be called or awaited) to the driver, and tells an observer what happened. If anything is
raised that no strategy handles, the index is rolled back to where it was: a failure changes nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from .context import RunContext
from .edits import Edit, Request
from .errors import ConfigurationError, StrategyError, SyncDriverError
from .formats import MessageFormat
from .index import MessageIndex
from .messages import Message
from .outcome import CompactionResult, Observer, Watch
from .strategies.base import Report, Steps, Strategy, StrategyLike, as_strategy
from .tokens import TokenCounter

__all__ = [
    "apply_compaction",
    "apply_compaction_sync",
    "compact",
    "compact_sync",
    "run",
    "run_sync",
]


def _flow(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None,
    hard: bool,
    on_step: Observer | None,
    clock: Callable[[], float],
) -> Generator[Request, Any, CompactionResult]:
    """A run: all or nothing. If it fails or is closed, what a strategy says to being ended does not hide why."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise ConfigurationError(f"budget={budget!r}: a whole number of tokens >= 1")
    strategy = as_strategy(strategy)
    watch = Watch(index, on_step, clock)
    steps = strategy(index)
    try:
        yield from _pumped(steps, strategy, index, watch)
        return watch.result(budget, hard=hard)
    except BaseException:
        index.rollback(watch.mark)
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


def run_sync(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CompactionResult:
    """Run a strategy that awaits nothing on an index that stands; on failure the index is as it was.

    Args:
        index: The conversation; its edits change.
        strategy: A strategy or a plain function.
        budget: Tokens the view is judged by at the end.
        hard: Whether to raise where the outcome would be ``over_target``.
        on_step: Called with each step that fired, as it ends.
        clock: Seconds, for the steps' durations only.

    Raises:
        SyncDriverError: If the strategy needs something awaited; no strategy's failure policy hides it.
        BudgetUnsatisfiable: If ``hard``, and the budget is exceeded or a step that fired missed its target.
        ConfigurationError: If the budget is no whole number >= 1.
        Exception: Whatever the strategy raises.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step, clock=clock)
    try:
        request = next(flow)
        while True:
            try:
                answer = _called(request)
            except SyncDriverError:
                raise
            except Exception as error:
                request = flow.throw(error)
            else:
                request = flow.send(answer)
    except StopIteration as done:
        result: CompactionResult = done.value
        return result
    finally:
        flow.close()


def _called(request: Request) -> Any:
    """The answer to a request that needs no awaiting."""
    answer = request.call()
    if not inspect.isawaitable(answer):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
    raise SyncDriverError(f"{type(request).__name__} has to be awaited: use compact or apply_compaction, not their _sync forms")


async def run(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CompactionResult:
    """Run a strategy on an index that stands; on failure or cancellation the index is as it was.

    Arguments as for `run_sync`.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step, clock=clock)
    try:
        request = next(flow)
        while True:
            try:
                answer = request.call()
                if inspect.isawaitable(answer):
                    answer = await answer
            except Exception as error:
                request = flow.throw(error)
            else:
                request = flow.send(answer)
    except StopIteration as done:
        result: CompactionResult = done.value
        return result
    finally:
        flow.close()


async def compact(
    messages: Iterable[Any],
    strategy: StrategyLike,
    *,
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
) -> CompactionResult:
    """Compact a list of messages and say what was done.

    Args:
        messages: The conversation, oldest first; neither the list nor its messages are changed.
        strategy: A strategy, a pipeline, or a plain function.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to look, see `compaction.formats.resolve`.
        context: What the strategy may know besides: the window, overhead tokens, the time.
        pin: Says of a message whether its group must be kept as it is.
        budget: Tokens the result is judged by: if a request would send more, the outcome is ``over_target``.
        hard: Whether to raise instead of returning that outcome.
        on_step: Called with each `Step` as it ends.

    Raises:
        InputError: If ``messages`` is no list of messages.
        BudgetUnsatisfiable: If ``hard``, and the outcome would be ``over_target``.
        ConfigurationError: If an argument is out of range.
        Exception: Whatever the strategy raises; nothing is half done then.

    >>> import anyio
    >>> from compaction.strategies import SlidingWindow
    >>> messages = [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]
    >>> async def main():
    ...     return await compact(messages, SlidingWindow(), counter="chars/4")
    >>> anyio.run(main).messages
    [{'role': 'user', 'content': 'two'}]
    """
    index = MessageIndex(messages, counter=counter, format=format, context=context, pin=pin)
    return await run(index, strategy, budget=budget, hard=hard, on_step=on_step)


def compact_sync(
    messages: Iterable[Any],
    strategy: StrategyLike,
    *,
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
) -> CompactionResult:
    """`compact` without awaiting, for strategies that await nothing; arguments and errors are the same.

    Raises:
        SyncDriverError: If the strategy needs something awaited.
    """
    index = MessageIndex(messages, counter=counter, format=format, context=context, pin=pin)
    return run_sync(index, strategy, budget=budget, hard=hard, on_step=on_step)


async def apply_compaction(
    messages: Iterable[Any],
    strategy: StrategyLike,
    *,
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    budget: int | None = None,
    hard: bool = False,
) -> list[Any]:
    """The compacted list alone; arguments and errors as for `compact`."""
    index = MessageIndex(messages, counter=counter, format=format, context=context, pin=pin)
    return (await run(index, strategy, budget=budget, hard=hard)).messages


def apply_compaction_sync(
    messages: Iterable[Any],
    strategy: StrategyLike,
    *,
    counter: TokenCounter | str = "auto",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    budget: int | None = None,
    hard: bool = False,
) -> list[Any]:
    """The compacted list alone, without awaiting; arguments and errors as for `compact_sync`."""
    index = MessageIndex(messages, counter=counter, format=format, context=context, pin=pin)
    return run_sync(index, strategy, budget=budget, hard=hard).messages
