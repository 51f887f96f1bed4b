"""The `SelectiveToolCall` strategy, which drops old tool calls together with their results."""

from __future__ import annotations

from itertools import chain

import attrs

from ..index import Drop, GroupKind, MessageIndex
from ..selectors import Selector, as_selector, kinds, last
from .base import CompactionStrategy, Steps


@attrs.frozen
class SelectiveToolCall(CompactionStrategy):
    """Drops tool calls with their results, oldest first, until ``target`` holds; other messages stay.

    A call whose removal would leave messages that the provider refuses stays, and the result's ``refused`` names the rule.
    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; evaluated before each group.
        keep: The groups that stay; by default the newest tool-call group.

    >>> SelectiveToolCall(keep=last(groups=3, of=kinds(GroupKind.TOOL_CALL))).keep
    last(groups=3, of=kinds(GroupKind.TOOL_CALL))
    """

    keep: Selector = attrs.field(default=last(groups=1, of=kinds(GroupKind.TOOL_CALL)), converter=as_selector, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        calls = [id for id in self.free(index) if index.columns.kind(id) is GroupKind.TOOL_CALL]
        steps = list(index.steps(calls))
        yield from self.dropped(index, steps, "an old tool call")
        can_leave = set(chain.from_iterable(steps))
        # the others are refused, so that the result names the rule that keeps each of them
        yield from self.until_reached(index, (Drop(id, "an old tool call") for id in calls if id not in can_leave))
