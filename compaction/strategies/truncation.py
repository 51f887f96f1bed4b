"""The `Truncation` strategy, which drops the oldest groups until a target holds: the last resort of most pipelines."""

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
    """Drops whole groups, oldest first, until ``target`` holds; summaries go last, system groups never.

    The user message that begins the view stays until the next user message can begin it: a strict chat template refuses a list
    that begins with an answer. If no other user message can, it is dropped last, and only if the target requires it.

    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; evaluated before each set of groups is dropped.
        keep: The groups that stay; by default the last 32, as in Agent Framework's documentation.
        drop_system: Whether system groups are dropped too, once nothing else can be.

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
        yield from self.dropped(index, self.in_order(index), _REASON)
        if self.drop_system and (yield from self.drop_system_groups(index)):  # the answer to a system message may go now
            yield from self.dropped(index, self.in_order(index), _REASON)

    def in_order(self, index: MessageIndex) -> Iterator[Sequence[int]]:
        """Yield the groups to drop, by id: the conversation, then summaries, then groups that can only be dropped with them."""
        groups = self.free(index)
        all_it_can = self.target == never  # then no target justifies a beginning that the format does not prefer
        collapsed = index.columns.is_collapsed
        summaries = {id for id in index.columns.summaries().intersection(groups) if not collapsed(id)}
        if not summaries:
            yield from index.steps(groups, preferred_only=all_it_can)
            return
        asked: set[int] = set()
        known = -1
        while len(asked) > known:  # when a summary is dropped, more groups may be dropped alone
            known = len(asked)
            for kept in (summaries, set[int]()):
                free = [id for id in groups if id not in asked and id not in kept]
                for step in index.steps(free, preferred_only=all_it_can):
                    asked.update(step)
                    yield step
