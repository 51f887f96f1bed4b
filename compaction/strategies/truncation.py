"""The `Truncation` strategy, which drops the oldest groups until a target holds, and what it shares with `SlidingWindow`."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import attrs

from ..index import Drop, GroupKind, MessageIndex
from ..selectors import Selector, as_selector, last
from ..triggers import never
from .base import CompactionStrategy, Steps


@attrs.frozen
class DroppingStrategy(CompactionStrategy):
    """The base of `Truncation` and `SlidingWindow`, which drop whole groups, and with ``drop_system`` at last system groups."""

    reason: ClassVar[str]
    """The reason of its edits."""

    drop_system: bool = attrs.field(default=False, kw_only=True)

    @abc.abstractmethod
    def in_order(self, index: MessageIndex) -> Iterable[Sequence[int]]:
        """Return the groups to drop, by id: in order, together those that leave together."""

    def edits(self, index: MessageIndex) -> Steps:
        yield from self.dropped(index, self.in_order(index), self.reason)
        count = index.edit_count
        if self.drop_system:
            yield from self.until_reached(index, self._system_drops(index))
        if index.edit_count > count:  # the answer to a system message may go now
            yield from self.dropped(index, self.in_order(index), self.reason)

    def _system_drops(self, index: MessageIndex) -> Iterator[Drop]:
        """Return a drop of each system group that is not in ``keep``, oldest first; O(groups).

        After a kept reminder that a later one replaced, none is dropped: without the later one, it would be the current one.
        """
        kept = self.keep(index) | index.columns.pinned
        replaced = min(kept & index.columns.grouping.instructions.outdated, default=len(index.source))
        system = [id for id in index.included_ids if index.columns.kind(id) is GroupKind.SYSTEM and id not in kept]
        return (Drop(id, "system messages are dropped last", allow_system=True) for id in system if id < replaced)


@attrs.frozen
class Truncation(DroppingStrategy):
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

    reason: ClassVar[str] = "the oldest go first"

    keep: Selector = attrs.field(default=last(groups=32), converter=as_selector, kw_only=True)

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
