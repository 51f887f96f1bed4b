"""The `Truncation` strategy, which drops the oldest groups until a target holds, and what it shares with `SlidingWindow`."""

from __future__ import annotations

import abc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import attrs

from ..index import Drop, GroupKind, MessageIndex, Rewrite
from ..selectors import Selector, as_selector, last
from ..triggers import never
from .base import CompactionStrategy, Steps
from .questions import cut_to, questions_of
from .tool_result import denials_of


@attrs.frozen
class DroppingStrategy(CompactionStrategy):
    """The base of `Truncation` and `SlidingWindow`, which drop whole groups, and with ``drop_system`` at last system groups."""

    reason: ClassVar[str]
    """The reason of its edits."""

    drop_system: bool = attrs.field(default=False, kw_only=True)

    @abc.abstractmethod
    def in_order(self, index: MessageIndex) -> Iterable[Sequence[int]]:
        """Return the groups to drop, by id: in order, together those that leave together."""

    def oldest(self, index: MessageIndex) -> Steps:
        """Drop the groups in order until the target holds."""
        yield from self.dropped(index, self.in_order(index), self.reason)

    def edits(self, index: MessageIndex) -> Steps:
        yield from self.oldest(index)
        count = index.edit_count
        if self.drop_system:
            yield from self.until_reached(index, self._system_drops(index))
        if index.edit_count > count:  # the answer to a system message may go now
            yield from self.oldest(index)

    def can_reach(self, index: MessageIndex, tokens: int) -> bool:
        """Return whether a request has at most so many tokens once all that may be dropped is; O(groups)."""
        system = [edit.groups[0] for edit in self._system_drops(index)] if self.drop_system else []
        return index.tokens - sum(map(index.columns.tokens, {*self.free(index), *system})) <= tokens

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
        keep_questions: Whether an assistant's message is cut to what it asks if ``keep`` has a short answer to it, such as
            "yes, but skip 2", which says nothing without it; and the result of a call to the reason why the user denied it.
            If the target still does not hold once all other groups are dropped, these are dropped, too.

    >>> from compaction import compact_sync
    >>> from compaction.triggers import messages_exceed
    >>> truncation = Truncation(trigger=messages_exceed(4), keep=last(groups=2))
    >>> result = compact_sync([{"role": "user", "content": str(n)} for n in range(9)], truncation, counter="chars/4")
    >>> [message["content"] for message in result.messages]
    ['5', '6', '7', '8']
    """

    reason: ClassVar[str] = "the oldest go first"

    keep: Selector = attrs.field(default=last(groups=32), converter=as_selector, kw_only=True)
    keep_questions: bool = attrs.field(default=False, kw_only=True)

    def oldest(self, index: MessageIndex) -> Steps:
        lasting = self._dropped_last(index) if self.keep_questions else {}
        if lasting:
            yield from self.until_reached(index, self._beside(index, lasting))
            if self.target != never:
                free = [id for id in self.free(index) if id in lasting]
                yield from self.dropped(index, index.steps(free), self.reason)
        else:
            yield from super().oldest(index)

    def _dropped_last(self, index: MessageIndex) -> dict[int, Rewrite | None]:
        """Return the groups that are dropped last, by id, with the edit that cuts each to what is needed of it; in order."""
        kept = self.keep(index)
        cuts = {id: cut_to(index, id, text) for id, text in questions_of(index, kept).items()} | denials_of(index)
        return {id: cuts[id] for id in sorted(cuts) if id not in kept}

    def _beside(self, index: MessageIndex, lasting: Mapping[int, Rewrite | None]) -> Iterator[Drop | Rewrite]:
        """Yield a drop of each other group, and in their order the edits that cut these."""
        cuts = deque(filter(None, lasting.values()))
        for step in self._in_order(index, [id for id in self.free(index) if id not in lasting]):
            while cuts and cuts[0].group < step[0]:
                yield cuts.popleft()
            yield Drop(step, self.reason)
        yield from cuts

    def in_order(self, index: MessageIndex) -> Iterable[Sequence[int]]:
        return self._in_order(index, self.free(index))

    def _in_order(self, index: MessageIndex, groups: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield these groups in order: the conversation, then summaries, then groups that can only be dropped with them."""
        all_it_can = self.target == never  # without a target, nothing forces a view with an unusual first message
        collapsed = index.columns.is_collapsed
        summaries = {id for id in index.columns.summaries().intersection(groups) if not collapsed(id)}
        if not summaries:
            yield from index.steps(groups, preferred_only=all_it_can)
            return
        gone: set[int] = set()
        before = -1
        while len(gone) > before:  # again: when a summary is dropped, more groups may be dropped alone
            before = len(gone)
            for staying in (summaries, set[int]()):  # first the conversation, then summaries, too
                free = [id for id in groups if id not in gone and id not in staying]
                for step in index.steps(free, preferred_only=all_it_can):
                    gone.update(step)
                    yield step
