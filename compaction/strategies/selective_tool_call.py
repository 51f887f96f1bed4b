"""Selective tool calls: drop old tool-call groups whole, leave what was said."""

from __future__ import annotations

import attrs

from ..edits import Drop
from ..groups import GroupKind
from ..index import MessageIndex
from ..selectors import Selector, as_selector, kinds, last
from .base import CompactionStrategy, Steps
from .seams import steps_to_seams

__all__ = ["SelectiveToolCall"]


@attrs.frozen
class SelectiveToolCall(CompactionStrategy):
    """Drops tool-call groups, call and results, oldest first, until ``target`` holds; what was said stays.

    Cost: O(groups).

    Args:
        trigger: When to run.
        target: When to stop; asked before each group.
        keep: What it must not drop; by default the newest tool-call group.

    >>> SelectiveToolCall(keep=last(groups=3, of=kinds(GroupKind.TOOL_CALL))).keep
    last(groups=3, of=kinds(GroupKind.TOOL_CALL))
    """

    keep: Selector = attrs.field(default=last(groups=1, of=kinds(GroupKind.TOOL_CALL)), converter=as_selector, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        groups = [group for group in self.candidates(index) if group.kind is GroupKind.TOOL_CALL]
        for step in steps_to_seams(index, groups):
            if self.target(index):
                return
            yield Drop(step, "an old tool call")
