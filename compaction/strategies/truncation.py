"""Dropping the oldest groups until a target holds: the last resort of most pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..index import MessageIndex
from ..selectors import Selector, as_selector, last
from ..triggers import never
from .base import CompactionStrategy, Steps

_REASON: Final = "the oldest go first"


@attrs.frozen
class Truncation(CompactionStrategy):
    """Drops groups oldest first, whole, one step at a time, until ``target`` holds; summaries last, system groups never.

    The user message that opens the view stays while what follows it goes, until another user message can open it: a strict
    chat template refuses a list that begins with an answer. Without one it goes last, and only to reach the target.

    Cost: O(groups), O(1) a dropped group.

    Args:
        trigger: When to run.
        target: When to stop; asked before each step.
        keep: Groups that stay; by default the last 32 groups, as in Agent Framework's documentation.
        drop_system: Whether system groups are dropped too, once nothing else is left.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import messages_exceed
    >>> truncation = Truncation(trigger=messages_exceed(4), keep=last(groups=2))
    >>> result = compact_sync([{"role": "user", "content": str(n)} for n in range(9)], truncation, counter="chars/4")
    >>> [message["content"] for message in result.messages]
    ['5', '6', '7', '8']
    """

    keep: Selector = attrs.field(default=last(groups=32), converter=as_selector, kw_only=True)
    drop_system: bool = attrs.field(default=False, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        yield from self.dropped(index, self._steps(index), _REASON)
        if self.drop_system and (yield from self.drop_system_groups(index)):  # one may have held back the answer to it
            yield from self.dropped(index, self._steps(index), _REASON)

    def _steps(self, index: MessageIndex) -> Iterator[Sequence[int]]:
        """Yield the groups to drop, in order: the conversation, then summaries, then groups that only leave with them."""
        groups = self.free(index)
        all_it_can = self.target == never  # a worse beginning would then gain nothing
        collapsed = index.columns.is_collapsed
        summaries = {id for id in index.columns.summaries().intersection(groups) if not collapsed(id)}
        if not summaries:
            yield from index.steps(groups, preferred_only=all_it_can)
            return
        asked: set[int] = set()
        known = -1
        while len(asked) > known:  # once a summary is dropped, more groups may leave without the others
            known = len(asked)
            for kept in (summaries, set[int]()):
                free = [id for id in groups if id not in asked and id not in kept]
                for step in index.steps(free, preferred_only=all_it_can):
                    asked.update(step)
                    yield step
