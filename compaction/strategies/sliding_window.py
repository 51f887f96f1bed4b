"""The `SlidingWindow` strategy, which keeps the latest turns or groups and drops the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

import attrs

from ..index import GroupKind, MessageIndex
from ..selectors import Selector, as_selector, last
from ..triggers import never
from .truncation import DroppingStrategy


@attrs.frozen
class SlidingWindow(DroppingStrategy):
    """Drops the groups outside ``keep``, turn by turn, oldest first, until ``target`` holds.

    Summaries stay, as do system groups unless ``drop_system`` is set. If only the end of a turn is kept, the user message of
    that turn stays too where it begins the view: a strict chat template refuses a list that begins with an answer.

    The window has no last resort: a turn is kept or dropped whole, and an agent's whole run is one turn. With a trigger by
    tokens, add a `Truncation`, which drops the oldest groups inside the turn, and a `Clip` for a group that is too large:
    ``SlidingWindow(trigger=full) >> Truncation(trigger=full, keep=last(groups=1)) >> Clip(tokens=900, trigger=full)``.

    ``SlidingWindow(trigger=turns_exceed(4))`` drops the oldest turns until four are left. Without a trigger, all groups outside
    ``keep`` are dropped: ``SlidingWindow(keep=last(groups=20))``.

    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; evaluated before each turn.
        keep: The groups that stay; by default the last turn.
        drop_system: Whether system groups outside ``keep`` are dropped too, after everything else.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import turns_exceed
    >>> window = SlidingWindow(trigger=turns_exceed(2))
    >>> result = compact_sync([{"role": "user", "content": str(n)} for n in range(9)], window, counter="chars/4")
    >>> [message["content"] for message in result.messages]
    ['7', '8']
    """

    reason: ClassVar[str] = "outside the window"

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)

    def in_order(self, index: MessageIndex) -> Iterable[Sequence[int]]:
        groups = [
            id for id in self.free(index) if index.columns.kind(id) is not GroupKind.SUMMARY or index.columns.is_collapsed(id)
        ]
        all_it_can = self.target == never  # without a target, nothing forces a view with an unusual first message
        return index.steps(groups, partial(_same_turn, index), preferred_only=all_it_can)


def _same_turn(index: MessageIndex, one: int, other: int) -> bool:
    """Return whether two successive groups belong to one turn; a collapsed tool call or a reminder is in the turn around it."""
    columns = index.columns
    if columns.turn(one) == columns.turn(other):
        return True
    return None in (columns.turn(one), columns.turn(other)) and columns.kind(other) is not GroupKind.USER
