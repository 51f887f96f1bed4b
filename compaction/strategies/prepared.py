"""Prepared summaries, which a session requests in the background before they are needed (its ``ahead=`` option).

`prepared_for` records which groups a summary is requested for. `prepared_answer` returns the finished summary when a strategy
needs one, if its groups have not changed since.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..index import UNKNOWN_KEY, GroupKind, MessageGroup, MessageIndex, PreparedSummary, known_key
from ..summarizers import SummaryRequest
from .base import Strategy
from .summaries import is_own


def prepared_for(strategy: Strategy, index: MessageIndex, groups: Sequence[MessageGroup]) -> PreparedSummary:
    """Return a prepared summary that will replace these groups for a strategy, still without its text; O(contents)."""
    places = [place for group in groups if not is_own(strategy, group) for place in index.ordinals(group)]
    return PreparedSummary(
        strategy=strategy,
        groups=frozenset([group.id for group in groups]),
        sources={place: known_key(index.columns.source[place], index.format) for place in places},
        summaries=_summaries(strategy, index),
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
    holder.is_due = True
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
