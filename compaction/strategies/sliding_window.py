"""A sliding window over the latest turns or groups."""

from __future__ import annotations

import attrs

from ..index import GroupKind, MessageIndex
from ..selectors import Selector, as_selector, last
from ..triggers import never
from .base import CompactionStrategy, Steps


@attrs.frozen
class SlidingWindow(CompactionStrategy):
    """Drops the groups outside ``keep``, oldest turn first and each turn at once, until ``target`` holds.

    Summaries stay, and so do system groups, unless ``drop_system`` is set. The user message of a turn of which only the end is
    kept stays too, if it opens the view: a strict chat template refuses a list that begins with an answer.

    With a trigger it is a window over turns: ``SlidingWindow(trigger=turns_exceed(4))`` drops the oldest turns until four are
    left. Without one only ``keep`` decides: ``SlidingWindow(keep=last(groups=20))``.

    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; asked before each turn.
        keep: The window; by default the last turn.
        drop_system: Whether system groups outside ``keep`` are dropped too, after everything else.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import turns_exceed
    >>> window = SlidingWindow(trigger=turns_exceed(2))
    >>> result = compact_sync([{"role": "user", "content": str(n)} for n in range(9)], window, counter="chars/4")
    >>> [message["content"] for message in result.messages]
    ['7', '8']
    """

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)
    drop_system: bool = attrs.field(default=False, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        yield from self._window_edits(index)
        if self.drop_system and (yield from self.drop_system_groups(index)):  # one may have held back the answer to it
            yield from self._window_edits(index)

    def _window_edits(self, index: MessageIndex) -> Steps:
        groups = [
            id for id in self.free(index) if index.columns.kind(id) is not GroupKind.SUMMARY or index.columns.is_collapsed(id)
        ]
        all_it_can = self.target == never  # a worse beginning would then gain nothing
        steps = index.steps(groups, lambda one, other: _same_turn(index, one, other), preferred_only=all_it_can)
        yield from self.dropped(index, steps, "outside the window")


def _same_turn(index: MessageIndex, one: int, other: int) -> bool:
    """Whether two groups in a row belong to one turn; a collapsed tool call belongs to the turn around it."""
    columns = index.columns
    if columns.turn(one) == columns.turn(other):
        return True
    return (columns.is_collapsed(one) or columns.is_collapsed(other)) and columns.kind(other) is not GroupKind.USER
