"""Rehearsals of a strategy: they find the summary that it will request, for `ahead`, or show what a turn would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from .. import summarizers
from ..errors import StrategyError
from ..index import PASS_ON, MessageIndex, PreparedSummaries, PreparedSummary, Request, RunHistory, dry_run, relay
from ..stores import StoreRequest
from ..strategies import Steps, Strategy, prepared_for, replaced_by, token_limits
from ..summarizers import SummaryRequest

_WORD: Final = "word "


def _answered(request: Request) -> Any:
    if isinstance(request, StoreRequest):
        return None
    if not isinstance(request, SummaryRequest):
        raise StrategyError(f"{type(request).__name__} cannot be rehearsed")
    if not _asks_model(request):
        return request.call()
    text = _WORD * request.budget
    return text[: len(text) * request.budget // max(request.budget, request.counter.count_text(text))]


@attrs.frozen
class Rehearsed(Strategy):
    """Runs a strategy without calling a model or writing to a store.

    Args:
        strategy: The strategy.
        answer: Returns the answer to a request; by default a model's summary is assumed to use its whole budget.
    """

    strategy: Strategy
    answer: Callable[[Request], Any] = _answered

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
        yield from relay(self.strategy(index), self._answered)

    def _answered(self, item: object) -> Any:
        return self.answer(item) if isinstance(item, Request) else PASS_ON


def _asks_model(request: Request) -> bool:
    """Whether a request is to a model: neither to a store nor to an extractive summarizer."""
    extractive = summarizers.DigestSummarizer | summarizers.FactSummarizer
    return not (
        isinstance(request, StoreRequest)
        or (isinstance(request, SummaryRequest) and isinstance(request.summarizer, extractive))
    )


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
    pauses = RunHistory.from_dict(context.pauses.to_dict())
    limits = sorted({limit for limit in token_limits(strategy, index) if limit >= index.tokens})
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
            with dry_run(tried, index, until_request=_asks_model, answer=_answered) as dry:
                request = dry.request
                found = _standing(index, strategy, dry.step, request) if isinstance(request, SummaryRequest) else None
        finally:
            index.context = context
        if isinstance(request, SummaryRequest) and found is not None:
            return request, found
    return None


def _standing(index: MessageIndex, strategy: Strategy, running: object, request: SummaryRequest) -> PreparedSummary | None:
    """Return the summary that the answer completes; ``None`` if the step cannot use it, or asks only in a forced run."""
    step = next((each for each in strategy.parts() if running in (each, each.forced())), None)
    if not index.context.prepared.is_due or step is None or index.context.pauses.is_paused(step, index.context.now):
        return None
    if sum(group.tokens for group in request.groups) < getattr(step, "least_share", 0.0) * index.included.tokens:
        return None
    return prepared_for(step, index, replaced_by(index, request))
