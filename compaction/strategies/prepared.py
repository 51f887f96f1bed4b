"""Rehearsals, and the summaries that a session requests in the background before they are needed (its ``ahead=`` option).

`summary_ahead` rehearses which summary a strategy will need next, and records which groups it is for. `prepared_answer` returns
the finished summary when the strategy needs one, if its groups have not changed since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import attrs

from ..errors import StrategyError
from ..index import (
    PASS_ON,
    UNKNOWN_KEY,
    GroupKind,
    MessageGroup,
    MessageIndex,
    PreparedSummaries,
    PreparedSummary,
    Request,
    RunHistory,
    dry_run,
    known_key,
    relay,
)
from ..stores import StoreRequest
from ..summarizers import SummaryRequest, asks_model
from ..triggers import Trigger, always, tokens_exceed
from .base import Steps, Strategy, group_tokens
from .summaries import is_own, replaced_by
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
    index: MessageIndex, strategy: Strategy, *, is_urgent: bool = False
) -> tuple[SummaryRequest, PreparedSummary] | None:
    """Return the summary request that a strategy will make once it is due, and the summary that the answer will complete.

    The strategy runs as if the request had grown to the token limit of one of its triggers, for each limit in turn, and
    finally as if `CompactionSession.compact` had forced it. The rehearsal calls no model, writes to no store, and does not
    change the index. If ``is_urgent``, only the run that is due now is tried.

    It returns ``None`` if the strategy would not call a model, does not use prepared summaries, is paused after a failure, or
    has too little to summarize.

    Cost: O(groups) for each limit, and O(contents) of the groups to summarize.
    """
    context = index.context
    pauses = RunHistory.from_dict(context.pauses.to_dict())
    limits: set[int] = set()
    for part in () if is_urgent else strategy.parts():
        over = tokens_exceed(part.budget) if isinstance(part, TokenBudgetComposed) else getattr(part, "trigger", always)
        limit = over.token_limit(index) if isinstance(over, Trigger) else None
        if limit is not None and limit >= index.tokens:
            limits.add(limit)
    runs = [(strategy, limit + 1 - index.tokens) for limit in sorted(limits)]
    for tried, more in [*runs, (strategy if is_urgent else strategy.forced(), 0)]:
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
    """Return the summary that the answer completes, still without its text; O(contents).

    ``None`` if the step cannot use it, or asks only in a forced run.
    """
    # by value: each of two equal parts can use the summary
    step = next((each for each in strategy.parts() if running in (each, each.forced())), None)
    if not index.context.prepared.is_needed or step is None or index.context.pauses.is_paused(step, index.context.now):
        return None
    if group_tokens(request.groups) < getattr(step, "least_share", 0.0) * index.included.tokens:
        return None
    replaced = replaced_by(index, request)
    places = [place for group in replaced if not is_own(step, group) for place in index.ordinals(group)]
    return PreparedSummary(
        strategy=step,
        groups=frozenset([group.id for group in replaced]),
        sources={place: known_key(index.columns.source[place], index.format) for place in places},
        summaries=_summaries(step, index),
    )


def may_stand(index: MessageIndex, prepared: PreparedSummary) -> bool:
    """Return whether the groups of a prepared summary are still in the view, unchanged by the host; O(contents)."""
    source, format = index.columns.source, index.format
    return all(index.is_included(id) for id in prepared.groups if id >= 0) and all(
        place < len(source) and known_key(source[place], format) == known != UNKNOWN_KEY
        for place, known in prepared.sources.items()
    )


def prepared_answer(
    strategy: Strategy, index: MessageIndex, request: SummaryRequest, free: Sequence[MessageGroup]
) -> tuple[SummaryRequest, object] | None:
    """Return the prepared summary and the request that it answers; ``None`` if there is none that can be used. O(contents).

    It can be used if its groups may leave together, and the messages that it was made from are unchanged. A strategy may have
    shortened a group since: the summary was made from the source messages. The request that it answers is for fewer groups
    than the given one. ``free`` has the groups that may be removed, including the strategy's earlier summaries.
    """
    holder = index.context.prepared
    holder.is_needed = True
    ready = holder.summary
    if ready is not None and ready.strategy == strategy and may_stand(index, ready):
        groups = [group for group in free if group.id in ready.groups]
        can_leave = len(groups) == len(ready.groups) == len(index.replaceable(groups))
        if can_leave and ready.summaries == _summaries(strategy, index):
            new = [group for group in groups if not is_own(strategy, group)]
            kept = [group for group in index.included_groups if group.id not in ready.groups]
            return attrs.evolve(request, groups=tuple(new), kept=tuple(kept)), ready.text
    if holder.on_miss is not None:
        holder.on_miss()
    return None


def _summaries(strategy: Strategy, index: MessageIndex) -> tuple[str, ...]:
    """Return the fingerprints of the messages of the strategy's summaries in the view; O(groups)."""
    groups = [index.group(id) for id in index.included_ids if index.columns.kind(id) is GroupKind.SUMMARY]
    return tuple(
        [known_key(message.raw, index.format) for group in groups if is_own(strategy, group) for message in group.messages]
    )
