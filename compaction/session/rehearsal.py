"""Rehearsals of a strategy: they find the summary that it will request, for `ahead`, or show what a turn would do."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from .. import summarizers
from ..errors import StrategyError
from ..index import PASS_ON, Edit, FailurePauses, MessageIndex, PreparedSummaries, PreparedSummary, Request, relay
from ..stores import StoreRequest
from ..strategies import StepBegan, StepEnded, Steps, Strategy, TokenBudgetComposed, replaced_by, standing_for
from ..summarizers import SummaryRequest
from ..triggers import Trigger

_WORD: Final = "word "


@attrs.frozen
class Rehearsed(Strategy):
    """Runs a strategy without calling a model or writing to a store. A model's summary is assumed to use its whole budget.

    Args:
        strategy: The strategy.
    """

    strategy: Strategy

    @property
    def name(self) -> str:
        return self.strategy.name

    @property
    def children(self) -> tuple[Strategy, ...]:
        return (self.strategy,)

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        [strategy] = children
        return attrs.evolve(self, strategy=strategy)

    def __call__(self, index: MessageIndex) -> Steps:
        yield from relay(self.strategy(index), _answered)


def _answered(item: object) -> Any:
    if isinstance(item, StoreRequest):
        return None
    if isinstance(item, SummaryRequest) and not _is_extractive(item):
        text = _WORD * item.budget
        return text[: len(text) * item.budget // max(item.budget, item.counter.count_text(text))]
    if isinstance(item, Request) and not isinstance(item, SummaryRequest):
        raise StrategyError(f"{type(item).__name__} cannot be rehearsed")
    return PASS_ON


def _is_extractive(request: SummaryRequest) -> bool:
    """Whether the summarizer calls no model."""
    return isinstance(request.summarizer, summarizers.DigestSummarizer | summarizers.FactSummarizer)


def rehearsed(
    index: MessageIndex, strategy: Strategy, *, is_due: bool = False
) -> tuple[SummaryRequest, PreparedSummary] | None:
    """Return the summary request that a strategy will make once it is due, and the summary that the answer will complete.

    The strategy runs as if the request had grown to the token limit of one of its triggers, for each limit in turn, and
    finally as if `CompactionSession.compact` had forced it. The rehearsal calls no model, writes to no store, and does not
    change the index. Cost: O(groups) for each limit, and O(contents) of the groups to summarize.

    Args:
        index: The conversation.
        strategy: The strategy.
        is_due: Whether to try only the run that is due now.

    Returns:
        ``None`` if the strategy would not call a model, does not use prepared summaries, is paused after a failure, or has too
        little to summarize.
    """
    context = index.context
    pauses = FailurePauses.from_dict(context.pauses.to_dict())
    limits = sorted({limit for limit in _limits(strategy, index) if limit >= index.tokens})
    runs = [(strategy, limit + 1 - index.tokens) for limit in limits]
    for tried, more in [(strategy, 0)] if is_due else [*runs, (strategy.forced(), 0)]:
        index.context = attrs.evolve(
            context,
            overhead_tokens=context.overhead_tokens + more,
            expected_tokens=more,
            pauses=pauses,
            prepared=PreparedSummaries(),
        )
        try:
            with index.trial():
                asked = _first_request(index, tried)
                found = None if asked is None else _standing(index, strategy, *asked)
        finally:
            index.context = context
        if asked is not None and found is not None:
            return asked[1], found
    return None


def _limits(strategy: Strategy, index: MessageIndex) -> Iterator[int]:
    """Yield the token limits above which parts of a strategy run."""
    for part in strategy.parts():
        trigger: object = getattr(part, "trigger", None)
        limit = trigger.token_limit(index) if isinstance(trigger, Trigger) else None
        if isinstance(part, TokenBudgetComposed):
            limit = part.budget
        if limit is not None:
            yield limit


def _standing(index: MessageIndex, strategy: Strategy, running: Strategy, request: SummaryRequest) -> PreparedSummary | None:
    """Return the summary that the answer completes; ``None`` if the step would make the request only in a forced run."""
    step = next((each for each in strategy.parts() if running in (each, each.forced())), None)
    if step is None or index.context.pauses.is_paused(step, index.context.now):
        return None
    if sum(group.tokens for group in request.groups) < getattr(step, "least_share", 0.0) * index.included.tokens:
        return None
    return standing_for(step, index, replaced_by(index, request))


def _first_request(index: MessageIndex, strategy: Strategy) -> tuple[Strategy, SummaryRequest] | None:
    """Run a strategy until its first request to a model; return that request and the step that makes it."""
    running: list[Strategy] = []
    asked: list[Request] = []

    def answered(item: object) -> Any:
        if isinstance(item, StepBegan):
            index.begin_step()
            running.append(item.strategy)
        elif isinstance(item, StepEnded):
            index.end_step()
            while running and running.pop() is not item.strategy:
                pass
        elif isinstance(item, Edit):
            return index.apply(item, by=running[-1].name if running else "")
        elif isinstance(item, SummaryRequest) and _is_extractive(item):
            return item.call()
        elif isinstance(item, Request) and not isinstance(item, StoreRequest):
            asked.append(item)
        return None

    with contextlib.closing(strategy(index)) as steps:
        deque(relay(steps, answered, until=lambda _: bool(asked)), maxlen=0)
    is_due = asked and running and index.context.prepared.is_due
    return (running[-1], asked[0]) if is_due and isinstance(asked[0], SummaryRequest) else None
