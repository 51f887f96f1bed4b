"""The `Clip` strategy, which cuts the middle out of messages that are too large for the window."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs

from .. import summarizers
from ..checks import count
from ..index import GroupKind, MessageIndex, Rewrite
from ..messages import Message, Part, TextPart, ToolResultPart
from .base import CompactionStrategy, Steps
from .cut_middle import cut_middle

_MIN_CHARS: Final = 120


@attrs.frozen
class Clip(CompactionStrategy):
    """Cuts texts and tool results in groups of too many tokens; calls, reasoning and media stay.

    The middle of a text is cut out. In a message of the user, lines that look pasted go first, and then those in the middle.

    A cut before a group is first sent does not break the prompt cache; a later one breaks it for everything after the group. So
    run this strategy on every turn, without a trigger.

    Cost: O(groups in the view), and O(characters) for a group that is cut.

    Args:
        tokens: The tokens to which a group is cut, > 0; a group of calls with large arguments may keep more.
        trigger: When to run.
        target: When to stop; asked before each group.
        keep: Groups that stay as they are.

    Raises:
        ConfigurationError: If ``tokens`` is out of range.

    >>> from compaction import compact_sync
    >>> said = [{"role": "user", "content": "abc" * 999}]
    >>> compact_sync(said, Clip(tokens=60), counter="chars/4").messages[0]["content"].count("abc")
    67
    """

    tokens: int = attrs.field(kw_only=True, validator=count(1))

    def edits(self, index: MessageIndex) -> Steps:
        kept: frozenset[int] | None = None  # evaluated at most once, and only if a group is too large
        for id in index.included_ids:
            if index.columns.tokens(id) <= self.tokens or (group := index.group(id)).kind is GroupKind.SYSTEM:
                continue
            if self.target(index):
                return
            if kept is None:
                kept = self.keep(index)
            if group.id in kept or not index.is_rewritable(group):
                continue
            sizes = [index.measure(message)[0] for message in group.messages]
            most = _level(sizes, self.tokens)  # the largest are cut, so that together they have the tokens of one group
            messages = [
                message if tokens <= most else _cut(index, message, tokens, most)
                for message, tokens in zip(group.messages, sizes, strict=True)
            ]
            if not all(map(operator.is_, messages, group.messages)):
                yield Rewrite(group, messages, "too large for the window; both ends stay")


def _level(sizes: Sequence[int], total: int) -> float:
    """Return the size to which the larger of these sizes must be cut for their sum to be the total."""
    left, count = float(total), len(sizes)
    for size in sorted(sizes):
        if size * count > left:
            return left / count
        left -= size
        count -= 1
    return float(total)


def _cut(index: MessageIndex, message: Message, tokens: int, most: float) -> Message:
    """Return the message with its texts cut until it has at most so many tokens, or until they cannot be cut further."""
    share = most / tokens
    count = index.counter.count_text if message.said else None
    while True:
        cut = message.with_parts(partial(_cut_part, share=share, count=count))
        texts = [part.text for part in message.parts if isinstance(part, TextPart | ToolResultPart)]
        if index.measure(cut)[0] <= most or all(len(text) * share <= _MIN_CHARS for text in texts):
            return cut if index.measure(cut)[0] < tokens else message
        share *= 0.9


def _cut_part(part: Part, share: float, count: Callable[[str], int] | None) -> Part:
    """Return a part with about this share of its text.

    Of the user's words, lines that look pasted are left out first, and no sentence of usual length is cut.
    """
    if not isinstance(part, TextPart | ToolResultPart):
        return part
    cut = ""
    if count is not None and isinstance(part, TextPart) and len(part.text) > _MIN_CHARS:
        cut = summarizers.extractive.shortened(part.text, int(count(part.text) * share), count)
        if not cut and len(part.text) <= summarizers.extractive.LONGEST_SENTENCE:
            return part  # without its middle, a sentence may say the opposite
    is_result = isinstance(part, ToolResultPart)
    cut = cut or cut_middle(part.text, max(_MIN_CHARS, int(len(part.text) * share)), errors=is_result)
    return part if cut is part.text else attrs.evolve(part, text=cut)
