"""The whole flow: a list of messages becomes an index, a strategy yields edits, a driver applies them, and the view comes out.

There is one piece of logic, the generator in `compaction.pump`; two drivers pump it. It applies each edit before the strategy's
next line runs, hands requests (what has to be called or awaited) to the driver, and tells an observer what happened. If
anything is raised that no strategy handles, the index is rolled back to where it was: a failure changes nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import attrs

from . import pump
from .context import RunContext
from .edits import Edit, Refusal, Request
from .errors import BudgetUnsatisfiable, ConfigurationError, SyncDriverError
from .formats import MessageFormat
from .holding import holding
from .index import MessageIndex
from .messages import Message
from .metrics import Metrics
from .strategies.base import Failed, Report, StepBegan, StepEnded, StrategyLike, as_strategy
from .tokens import TokenCounter
from .triggers import Trigger, never

__all__ = [
    "CompactionResult",
    "Observer",
    "Outcome",
    "Step",
    "apply_compaction",
    "apply_compaction_sync",
    "compact",
    "compact_sync",
    "run",
    "run_sync",
]

_logger = logging.getLogger("compaction")

Outcome: TypeAlias = Literal["unchanged", "compacted", "degraded", "over_target"]
"""How a run ended.

``degraded``: a part failed and its policy took over. ``over_target``: the budget is exceeded, or a step that fired
ended short of its target, the target is still false, and no later step reached its own."""


@attrs.frozen(kw_only=True)
class Step:
    """One strategy that fired, as an observer sees it.

    Args:
        strategy: The strategy's name.
        configured: The expression that builds it.
        why: Its trigger's explanation.
        before: Sizes of the view when it began.
        after: Sizes when it ended.
        edits: What it did, in order.
        seconds: How long it took, awaiting included.
        reached: Whether its target held at the end; ``None`` if it was closed before it could say.
    """

    strategy: str
    configured: str
    why: str
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    seconds: float
    reached: bool | None


@attrs.frozen(kw_only=True)
class CompactionResult:
    """What came of a run.

    Args:
        messages: The view: the caller's own objects where nothing changed.
        before: Sizes before.
        after: Sizes after.
        edits: What was done, in order, each with its reason.
        refused: What strategies asked for and the laws forbade.
        failures: What failed on the way, and what was done instead.
        outcome: How it ended.
    """

    messages: list[Any]
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    refused: tuple[Refusal, ...]
    failures: tuple[Failed, ...]
    outcome: Outcome


Observer: TypeAlias = Callable[[Step], object]


class _Watch:
    """What a run has seen so far. Holds state: the steps that run now, inside out, and the targets that were missed."""

    def __init__(self, index: MessageIndex, on_step: Observer | None, clock: Callable[[], float]) -> None:
        self.before = index.included
        self.mark = index.mark()
        self.refused = len(index.refused)
        self.failures: list[Failed] = []
        self.missed: list[Trigger] = []
        self._index = index
        self._on_step = on_step
        self._clock = clock
        self._open: list[tuple[StepBegan, Metrics, int, float]] = []

    @property
    def running(self) -> str:
        """The name of the strategy that runs now."""
        return self._open[-1][0].strategy.name if self._open else ""

    def note(self, report: Report) -> None:
        if isinstance(report, StepBegan):
            self._open.append((report, self._index.included, self._index.edit_count, self._clock()))
        elif isinstance(report, StepEnded):
            self._close(report)
        else:
            self.failures.append(report)
            _logger.warning("%s failed (%r): %s", report.strategy, report.error, report.policy)

    def _close(self, ended: StepEnded) -> None:
        """End a step, and before it those inside it that were closed and could not say so."""
        while self._open:
            began, before, mark, start = self._open.pop()
            mine = began.strategy is ended.strategy
            step = Step(
                strategy=began.strategy.name,
                configured=repr(began.strategy),
                why=began.why,
                before=before,
                after=self._index.included,
                edits=self._index.edits_since(mark),
                seconds=self._clock() - start,
                reached=ended.reached if mine else None,
            )
            self._tell(step)
            if mine:
                break
        if self._open:
            return
        if not ended.reached:
            self.missed.append(ended.target)
        elif ended.target != never:
            self.missed.clear()

    def _tell(self, step: Step) -> None:
        sizes = (step.before.tokens, step.after.tokens, step.before.messages, step.after.messages)
        _logger.info("%s: %d edits, tokens %d to %d, messages %d to %d (%s)", step.strategy, len(step.edits), *sizes, step.why)
        if self._on_step is not None:
            self._on_step(step)

    def result(self, budget: int | None, *, hard: bool) -> CompactionResult:
        index = self._index
        edits = index.edits_since(self.mark)
        missed = [repr(target) for target in self.missed if not target(index)]
        if budget is not None and index.tokens > budget:
            missed.append(f"budget={budget}")
        if missed and hard:
            raise BudgetUnsatisfiable(index.tokens, missed, holding(index))
        return CompactionResult(
            messages=index.messages(),
            before=self.before,
            after=index.included,
            edits=edits,
            refused=index.refused[self.refused :],
            failures=tuple(self.failures),
            outcome="over_target" if missed else "degraded" if self.failures else "compacted" if edits else "unchanged",
        )


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
    budget = _checked(budget)
    watch = _Watch(index, on_step, clock)
    flow = pump.flow(as_strategy(strategy), index, watch)
    try:
        with contextlib.suppress(StopIteration):
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
        return watch.result(budget, hard=hard)
    except BaseException:
        index.rollback(watch.mark)
        flow.close()
        raise


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
    budget = _checked(budget)
    watch = _Watch(index, on_step, clock)
    flow = pump.flow(as_strategy(strategy), index, watch)
    try:
        with contextlib.suppress(StopIteration):
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
        return watch.result(budget, hard=hard)
    except BaseException:
        index.rollback(watch.mark)
        flow.close()
        raise


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


def _checked(budget: int | None) -> int | None:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise ConfigurationError(f"budget={budget!r}: a whole number of tokens >= 1")
    return budget
