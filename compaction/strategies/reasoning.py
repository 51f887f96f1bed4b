"""The `ClearReasoning` strategy, which removes the reasoning of earlier turns: models rarely need it again."""

from __future__ import annotations

import operator

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
        target: When to stop; evaluated before each group.
        keep: The groups that do not change; by default the last turn, whose reasoning a running tool loop may need.

    >>> from compaction import compact_sync
    >>> messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4", "reasoning": "two and two"},
    ...             {"role": "user", "content": "thanks"}]
    >>> compact_sync(messages, ClearReasoning(), counter="chars/4").messages[1]
    {'role': 'assistant', 'content': '4'}
    """

    keep: Selector = attrs.field(default=last(turns=1), converter=as_selector, kw_only=True)

    def edits(self, index: MessageIndex) -> Steps:
        def change(group: MessageGroup) -> Edit | None:
            messages = [_without_reasoning(message) for message in group.messages]
            if all(map(operator.is_, messages, group.messages)):
                return None
            if any(message is not None for message in messages):
                return Rewrite(group, messages, "old reasoning")
            return Drop(group, "nothing but old reasoning") if index.is_removable(group) else None

        yield from self.rewritten(index, change)


def _without_reasoning(message: Message) -> Message | None:
    """Return the message without its reasoning, the message itself if it has none, or ``None`` if nothing else is in it."""
    if only_reasoning(message):
        return None
    parts = [part for part in message.parts if not isinstance(part, ReasoningPart)]
    return message if len(parts) == len(message.parts) else message.evolve(parts=parts)
