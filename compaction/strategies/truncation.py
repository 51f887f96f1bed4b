"""Truncation: drop the oldest groups until the target holds. The last resort of most pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ..edits import Drop
from ..groups import GroupKind
from ..index import MessageIndex
from ..selectors import Selector, as_selector, last
from .base import CompactionStrategy, Steps
from .seams import steps_to_seams

__all__ = ["Truncation"]


@attrs.frozen
class Truncation(CompactionStrategy):
    """Drops groups oldest first, whole, one step at a time, until ``target`` holds; summaries last, system groups never.

    Cost: O(groups), O(1) a dropped group.

    Args:
        trigger: When to run.
        target: When to stop; asked before each step.
        keep: What it must not drop; by default the last 32 groups, as in Agent Framework's documentation.
        drop_system: Whether system groups go too, once nothing else is left to drop.

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
        yield from self._conversation_edits(index)
        if self.drop_system:
            count = index.edit_count
            yield from self._system_edits(index)
            if index.edit_count > count:  # an instruction may have held the answer to it
                yield from self._conversation_edits(index)

    def _conversation_edits(self, index: MessageIndex) -> Steps:
        target = self.target
        for step in self._steps(index):
            if target(index):
                return
            yield Drop(step, "the oldest go first")

    def _steps(self, index: MessageIndex) -> Iterator[Sequence[int]]:
        """What to drop, in order: the conversation, then summaries of it, and what could not go without these."""
        groups = self.candidates(index)
        summaries = {group.id for group in groups if group.kind is GroupKind.SUMMARY and not group.is_collapsed}
        asked: set[int] = set()
        known = -1
        while len(asked) > known:  # once a summary is gone, more may go without the others
            known = len(asked)
            for kept in (summaries, set[int]()):
                free = [group for group in groups if group.id not in asked and group.id not in kept]
                for step in steps_to_seams(index, free):
                    asked.update(step)
                    yield step

    def _system_edits(self, index: MessageIndex) -> Steps:
        kept = self.keep(index)
        for group in index.included_groups:
            if self.target(index):
                return
            if group.kind is GroupKind.SYSTEM and group.id not in kept and not group.pinned:
                yield Drop(group, "system messages go when nothing else can", allow_system=True)
