"""The whole flow: messages are read into an index, a strategy yields edits, a driver applies them, and the view is returned.

The logic is one generator, `_flow`, which two drivers advance, one sync and one async. It applies each edit before the
strategy's next line runs, passes requests (which must be called or awaited) to the driver, and reports each step to an
observer. If an exception is raised that no strategy handles, the index is rolled back: a failure changes nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Final, NoReturn, TypeVar, get_args

from .errors import ConfigurationError, StrategyError, SyncDriverError
from .formats import MessageFormat
from .index import PASS_ON, Edit, Marks, MessageIndex, Request, RunContext, relay
from .messages import Message
from .result import CompactionResult, Observer, RunRecorder
from .strategies import Report, StrategyLike, as_strategy
from .tokens import TokenCounter

__all__ = [
    "apply_compaction",
    "apply_compaction_sync",
    "compact",
    "compact_sync",
    "refuse",
    "run",
    "run_sync",
    "unawaited",
]

_T = TypeVar("_T")


def _flow(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None,
    hard: bool,
    on_step: Observer | None,
    clock: Callable[[], float],
) -> Generator[Request, Any, CompactionResult]:
    """Run a strategy, all or nothing; an error raised while the strategy is closed never hides the cause."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise ConfigurationError(f"budget={budget!r}: a whole number of tokens >= 1")
    lifted = as_strategy(strategy)
    if index.marks is None:
        index.believe(Marks.of(lifted.mark_ceilings, index.context))
    recorder = RunRecorder(index, on_step, clock)
    steps = lifted(index)

    def answered(item: Any) -> Any:
        if isinstance(item, _EDITS):
            return index.apply(item, by=recorder.running)
        if isinstance(item, Report):
            return recorder.note(item)
        if isinstance(item, Request):
            return PASS_ON
        raise StrategyError(f"{recorder.running or lifted.name} yielded {item!r}; a strategy yields edits and requests")

    try:
        yield from relay(steps, answered)
        return recorder.result(budget, hard=hard)
    except BaseException:
        index.rollback(recorder.mark)
        with contextlib.suppress(BaseException):
            steps.close()
        raise


_EDITS: Final = get_args(Edit)  # isinstance() is twice as fast with a tuple as with a union


def run_sync(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CompactionResult:
    """Run a strategy that awaits nothing on an existing index; on failure the index is as it was.

    Args:
        index: The conversation; its edits change.
        strategy: A strategy or a plain function.
        budget: Tokens that the view may have at the end.
        hard: Whether to raise if the outcome would be ``over_target``.
        on_step: Called with each step that fired, as it ends.
        clock: Returns seconds, for the durations of steps only.

    Raises:
        SyncDriverError: If the strategy awaits something; no failure policy of a strategy hides it.
        BudgetUnsatisfiable: If ``hard``, and the budget is exceeded or a step that fired missed its target.
        ConfigurationError: If the budget is not a whole number >= 1.
        Exception: Any exception of the strategy.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step, clock=clock)
    return unawaited(_driven(flow, sync=True))


async def run(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CompactionResult:
    """Run a strategy on an existing index; on failure or cancellation the index is as it was.

    The arguments are those of `run_sync`.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step, clock=clock)
    return await _driven(flow, sync=False)


async def _driven(flow: Generator[Request, Any, CompactionResult], *, sync: bool) -> CompactionResult:
    """Answer the requests of a run; if ``sync``, refuse those that have to be awaited."""
    try:
        request = next(flow)
        while True:
            try:
                answer = request.call()
                if inspect.isawaitable(answer):
                    if sync:
                        name = type(request).__name__
                        refuse(answer, f"{name} has to be awaited: use compact or apply_compaction, not their _sync forms")
                    answer = await request.wait(answer)
            except Exception as error:
                if sync and isinstance(error, SyncDriverError):
                    raise  # no policy of a strategy hides the caller's mistake
                request = flow.throw(error)
            else:
                request = flow.send(answer)
    except StopIteration as done:
        result: CompactionResult = done.value
        return result
    finally:
        flow.close()


def unawaited(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that awaits nothing, without an event loop: the sync form of an async function.

    Raises:
        SyncDriverError: If it awaits something.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    coroutine.close()
    raise SyncDriverError(f"{awaited!r} has to be awaited: use the method without _sync")


def refuse(answer: object, why: str) -> NoReturn:
    """Close what would have to be awaited, and raise a `SyncDriverError`."""
    getattr(answer, "close", lambda: None)()
    raise SyncDriverError(why)


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
    """Compact a list of messages, and return the result with all edits.

    Args:
        messages: The conversation, oldest first; neither the list nor its messages are changed.
        strategy: A strategy, a pipeline, or a plain function.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.
        context: The window, overhead tokens and the time, for triggers and strategies that need them.
        pin: Returns whether the group of a message must stay as it is.
        budget: Tokens a request may send; if it would send more, the outcome is ``over_target``.
        hard: Whether to raise instead of returning that outcome.
        on_step: Called with each `Step` as it ends.

    Raises:
        InputError: If ``messages`` is not a list of messages.
        BudgetUnsatisfiable: If ``hard``, and the outcome would be ``over_target``.
        ConfigurationError: If an argument is out of range.
        Exception: Any exception of the strategy; nothing is changed then.

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
    """Compact like `compact`, for strategies that await nothing; arguments and errors are the same.

    Raises:
        SyncDriverError: If the strategy awaits something.
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
    """Return the compacted list alone; arguments and errors are those of `compact`."""
    return (
        await compact(messages, strategy, counter=counter, format=format, context=context, pin=pin, budget=budget, hard=hard)
    ).messages


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
    """Return the compacted list alone; arguments and errors are those of `compact_sync`."""
    return compact_sync(
        messages, strategy, counter=counter, format=format, context=context, pin=pin, budget=budget, hard=hard
    ).messages
