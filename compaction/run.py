"""The functions that compact a conversation: `compact` and `apply_compaction`, with their ``_sync`` forms, and `run`.

A run has four parts:

1. A `MessageIndex` reads the messages into groups.
2. A strategy is called with the index. It yields edits (drop these groups, replace those with a summary) and requests (ask a
   model for a summary, store a message).
3. The generator `_flow` applies each edit to the index before the strategy continues. The index refuses an edit that would
   break a rule, such as one that separates a tool call from its result.
4. The coroutine `_driven` calls or awaits each request, and sends the answer to the strategy.

The result's ``messages`` is the shortened list. The messages passed in are never changed. If a strategy raises an exception, or
the run is cancelled, all edits are undone.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any, NoReturn, TypedDict, Unpack

from .checks import checked_count
from .errors import SyncDriverError
from .formats import MessageFormat
from .index import EDITS, PASS_ON, Marks, MessageIndex, Request, RunContext, relay, unawaited, unknown
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
]


def _flow(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None,
    hard: bool,
    on_step: Observer | None,
) -> Generator[Request, Any, CompactionResult]:
    """Apply the edits of a strategy, and yield its requests; undo all edits if an exception is raised.

    If closing the strategy's generator raises another exception, the first one is raised.
    """
    if budget is not None:
        checked_count("budget", budget, 1)
    lifted, marks = as_strategy(strategy), index.marks
    if marks is None:  # decide which marked messages are read as summaries
        index.believe(Marks.of(lifted.mark_ceilings, index.context))
    recorder = RunRecorder(index, on_step)
    steps = lifted(index)

    def answered(item: Any) -> Any:
        """Apply an edit, record a report, and pass a request on to the caller."""
        if isinstance(item, EDITS):
            return index.apply(item)
        if isinstance(item, Report):
            return recorder.note(item)
        if isinstance(item, Request):
            return PASS_ON
        raise unknown(item, index.running_name or lifted.name)

    try:
        yield from relay(steps, answered, drop_all=index.apply_all)
        return recorder.result(budget, hard=hard)
    except BaseException:
        index.rollback(recorder.checkpoint)
        with contextlib.suppress(BaseException):
            steps.close()
        if marks is None:  # the next run decides, by its own strategy
            with contextlib.suppress(Exception):
                index.believe(None)
        raise


def run_sync(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
) -> CompactionResult:
    """Run a strategy on an index, for code without an event loop; an exception leaves the index unchanged.

    Args:
        index: The conversation, to which the edits are applied.
        strategy: A strategy or a plain function.
        budget: The most tokens of the request after the run, including the context's ``overhead_tokens``.
        hard: Whether to raise an error if the outcome would be ``over_target``.
        on_step: Called after each strategy that ran, with its `Step`.

    Raises:
        SyncDriverError: If the strategy has to be awaited. Its ``on_failure`` does not handle this error.
        BudgetUnsatisfiable: If ``hard`` is true, and the budget is exceeded or a strategy that ran missed its target.
        ConfigurationError: If the budget is not a whole number >= 1.
        Exception: Any exception that the strategy raises.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step)
    return unawaited(_driven(flow, sync=True))


async def run(
    index: MessageIndex,
    strategy: StrategyLike,
    *,
    budget: int | None = None,
    hard: bool = False,
    on_step: Observer | None = None,
) -> CompactionResult:
    """Run a strategy on an existing index; an exception or a cancellation leaves the index unchanged.

    The arguments are those of `run_sync`.
    """
    flow = _flow(index, strategy, budget=budget, hard=hard, on_step=on_step)
    return await _driven(flow, sync=False)


async def _driven(flow: Generator[Request, Any, CompactionResult], *, sync: bool) -> CompactionResult:
    """Call each request of a run, await its answer if it is awaitable, and send it to the strategy.

    If ``sync``, a request that has to be awaited is an error.
    """
    try:
        request = next(flow)
        while True:
            try:
                answer = request.call()
                if inspect.isawaitable(answer):
                    if sync:
                        name = type(request).__name__
                        refuse(answer, f"{name} has to be awaited: use the form without _sync, such as compact")
                    answer = await request.wait(answer)
            except Exception as error:
                if sync and isinstance(error, SyncDriverError):
                    raise  # the caller's mistake: the strategy must not handle it as a failed request
                request = flow.throw(error)
            else:
                request = flow.send(answer)
    except StopIteration as done:
        result: CompactionResult = done.value
        return result
    finally:
        flow.close()


def refuse(answer: object, why: str) -> NoReturn:
    """Close an awaitable, so that Python does not warn that it was never awaited, and raise a `SyncDriverError`."""
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
    """Run a strategy on a list of messages, and return the compacted list together with the edits that led to it.

    Args:
        messages: The conversation, oldest first; neither the list nor its messages are changed.
        strategy: A strategy, a pipeline, or a plain function.
        counter: A token counter, or its name (see `compaction.tokens.counter`).
        format: The wire format, or its name; ``None`` to detect it.
        context: The model's window, the tokens sent outside the messages, and the time.
        pin: A function that returns true for a message that must stay; its whole group is then neither removed nor changed.
        budget: The most tokens of the request after the run; if it has more, the outcome is ``over_target``.
        hard: Whether to raise an error instead of returning the outcome ``over_target``.
        on_step: Called after each strategy that ran, with its `Step`.

    Returns:
        The compacted list as ``messages``, the outcome, the sizes, the edits and the failures.

    Cost: O(messages) to read, plus the counting of their tokens and the cost of the strategy.

    Raises:
        InputError: If ``messages`` is not a list of messages in a known format.
        BudgetUnsatisfiable: If ``hard`` is true, and the outcome would be ``over_target``.
        ConfigurationError: If an argument is out of range.
        Exception: Any exception that the strategy raises.

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
    """Like `compact`, for code without an event loop and strategies that await nothing.

    Raises:
        SyncDriverError: If the strategy has to be awaited.
    """
    index = MessageIndex(messages, counter=counter, format=format, context=context, pin=pin)
    return run_sync(index, strategy, budget=budget, hard=hard, on_step=on_step)


class _Options(TypedDict, total=False):
    """The options of `compact`."""

    counter: TokenCounter | str
    format: MessageFormat | str | None
    context: RunContext | None
    pin: Callable[[Message], bool] | None
    budget: int | None
    hard: bool
    on_step: Observer | None


async def apply_compaction(messages: Iterable[Any], strategy: StrategyLike, **options: Unpack[_Options]) -> list[Any]:
    """Return only the messages of `compact`'s result; the arguments and errors are the same."""
    return (await compact(messages, strategy, **options)).messages


def apply_compaction_sync(messages: Iterable[Any], strategy: StrategyLike, **options: Unpack[_Options]) -> list[Any]:
    """Return only the messages of `compact_sync`'s result; the arguments and errors are the same."""
    return compact_sync(messages, strategy, **options).messages
