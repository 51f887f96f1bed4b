"""Running a strategy without calling a model or writing to a store, and which summary it will need next."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, ClassVar, Final

import attrs

from ..errors import StrategyError
from ..index import PASS_ON, MessageIndex, PreparedSummaries, PreparedSummary, Request, RunHistory, dry_run, relay
from ..stores import StoreRequest
from ..summarizers import SummaryRequest, asks_model
from ..triggers import Trigger, always, tokens_exceed
from .base import Steps, Strategy, group_tokens
from .prepared import prepared_for
from .summaries import replaced_by
from .token_budget import TokenBudgetComposed

_WORD: Final = "word "


def _is_to_model(request: Request) -> bool:
    """Return whether a request is to a model: neither to a store nor to an extractive summarizer."""
    if isinstance(request, SummaryRequest):
        return asks_model(request.summarizer)
    return not isinstance(request, StoreRequest)


def _answer_without_model(request: Request) -> Any:
    """Return the answer to a request; a model's summary is assumed to use its whole budget, and nothing is stored."""
    if isinstance(request, StoreRequest):
        return None
    if not isinstance(request, SummaryRequest):
        raise StrategyError(f"{type(request).__name__} cannot be rehearsed")
    if not _is_to_model(request):
        from ..summarizers.extractive import answer_offline  # a session without a summarizer does not need it

        return answer_offline(request)
    text = _WORD * request.budget
    return text[: len(text) * request.budget // max(request.budget, request.counter.count_text(text))]


@attrs.frozen
class Rehearsed(Strategy):
    """Runs a strategy without calling a model or writing to a store; a run of it has a whole result, unlike a dry run."""

    runs: ClassVar[str] = "strategy"

    strategy: Strategy
    answer: Callable[[Request], Any] = _answer_without_model

    @property
    def name(self) -> str:
        return self.strategy.name

    def __call__(self, index: MessageIndex) -> Steps:
        answer = self.answer
        with contextlib.closing(self.strategy(index)) as running:
            yield from relay(running, lambda item: answer(item) if isinstance(item, Request) else PASS_ON)


def summary_ahead(
    index: MessageIndex, strategy: Strategy, *, is_due: bool = False
) -> tuple[SummaryRequest, PreparedSummary] | None:
    """Return the summary request that a strategy will make once it is due, and the summary that the answer will complete.

    The strategy runs as if the request had grown to the token limit of one of its triggers, for each limit in turn, and
    finally as if `CompactionSession.compact` had forced it. The rehearsal calls no model, writes to no store, and does not
    change the index. If ``is_due``, only the run that is due now is tried. It returns ``None`` if the strategy would not call a
    model, does not use prepared summaries, is paused after a failure, or has too little to summarize.

    Cost: O(groups) for each limit, and O(contents) of the groups to summarize.
    """
    context = index.context
    pauses = RunHistory.from_dict(context.pauses.to_dict())
    limits: set[int] = set()
    for part in () if is_due else strategy.parts():
        over = tokens_exceed(part.budget) if isinstance(part, TokenBudgetComposed) else getattr(part, "trigger", always)
        limit = over.token_limit(index) if isinstance(over, Trigger) else None
        if limit is not None and limit >= index.tokens:
            limits.add(limit)
    runs = [(strategy, limit + 1 - index.tokens) for limit in sorted(limits)]
    for tried, more in [*runs, (strategy if is_due else strategy.forced(), 0)]:
        index.context = attrs.evolve(
            context,
            overhead_tokens=context.overhead_tokens + more,
            expected_tokens=more,
            pauses=pauses,
            prepared=PreparedSummaries(),
        )
        try:
            with dry_run(tried, index, until_request=_is_to_model, answer=_answer_without_model) as dry:
                if isinstance(dry.request, SummaryRequest):
                    found = _standing(index, strategy, dry.index.running, dry.request)
                    if found is not None:
                        return dry.request, found
        finally:
            index.context = context
    return None


def _standing(index: MessageIndex, strategy: Strategy, running: object, request: SummaryRequest) -> PreparedSummary | None:
    """Return the summary that the answer completes; ``None`` if the step cannot use it, or asks only in a forced run."""
    step = next((each for each in strategy.parts() if running in (each, each.forced())), None)
    if not index.context.prepared.is_due or step is None or index.context.pauses.is_paused(step, index.context.now):
        return None
    if group_tokens(request.groups) < getattr(step, "least_share", 0.0) * index.included.tokens:
        return None
    return prepared_for(step, index, replaced_by(index, request))
