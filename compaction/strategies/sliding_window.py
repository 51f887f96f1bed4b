"""The sliding window: keep the latest turns or groups, drop what is older."""

from __future__ import annotations

import attrs

from ..edits import Drop
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..selectors import Selector, as_selector, last
from .base import CompactionStrategy, Steps
from .seams import steps_to_seams

__all__ = ["SlidingWindow"]


def _same_turn(one: MessageGroup, other: MessageGroup) -> bool:
    """Whether two neighbours belong to one turn; a collapsed tool call belongs to the turn it stands in."""
    return other.turn == one.turn or ((other.is_collapsed or one.is_collapsed) and other.kind is not GroupKind.USER)


@attrs.frozen
class SlidingWindow(CompactionStrategy):
    """Drops what is outside ``keep``, the oldest turn first, each turn at once, until ``target`` holds.

    Summaries and system groups stay.

    With a trigger it is a window over turns: ``SlidingWindow(trigger=turns_exceed(4))`` drops the oldest turns until four are
    left. Without one it keeps just what ``keep`` says: ``SlidingWindow(keep=last(groups=20))``.

    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; asked before each turn.
        keep: The window; by default the last turn, which a trigger over turns never reaches.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import turns_exceed
    >>> window = SlidingWindow(trigger=turns_exceed(2))
    >>> result = compact_sync([{"role": "user", "content": str(n)} for n in range(9)], window, counter="chars/4")
    >>> [message["content"] for message in result.messages]
    ['7', '8']
    """

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        groups = [group for group in self.candidates(index) if group.kind is not GroupKind.SUMMARY or group.is_collapsed]
        for step in steps_to_seams(index, groups, _same_turn):
            if self.target(index):
                return
            yield Drop(step, "outside the window")
