"""Removing the reasoning of earlier turns, which models rarely need again and some providers drop anyway."""

from __future__ import annotations

import attrs

from ..index import Drop, Edit, MessageGroup, MessageIndex, Rewrite, only_reasoning
from ..messages import Message, ReasoningPart
from ..selectors import Selector, as_selector, last
from .base import CompactionStrategy, Steps


@attrs.frozen
class ClearReasoning(CompactionStrategy):
    """Removes the reasoning from messages, oldest first, until ``target`` holds; texts and calls stay.

    Cost: O(messages outside ``keep``).

    Args:
        trigger: When to run.
        target: When to stop; asked before each group.
        keep: Groups that stay as they are; by default the last turn, whose tool loop may need its reasoning.

    >>> from compaction import compact_sync
    >>> messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4", "reasoning": "two and two"},
    ...             {"role": "user", "content": "thanks"}]
    >>> compact_sync(messages, ClearReasoning(), counter="chars/4").messages[1]
    {'role': 'assistant', 'content': '4'}
    """

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        yield from self.rewritten(index, lambda group: _cleared(group, index))


def _cleared(group: MessageGroup, index: MessageIndex) -> Edit | None:
    if not any(isinstance(part, ReasoningPart) for message in group.messages for part in message.parts):
        return None
    messages = [_without_reasoning(message) for message in group.messages]
    if any(message is not None for message in messages):
        return Rewrite(group, messages, "old reasoning")
    return Drop(group, "nothing but old reasoning") if index.is_removable(group) else None


def _without_reasoning(message: Message) -> Message | None:
    """Return the message without its reasoning; the same one if it has none, ``None`` if it has nothing else."""
    if only_reasoning(message):
        return None
    parts = [part for part in message.parts if not isinstance(part, ReasoningPart)]
    return message if len(parts) == len(message.parts) else message.evolve(parts=parts)
