"""`MessageMeter` measures messages in tokens and bytes; every size in this package comes from it.

The sizes can be compared and added, but they are not exact: the counter of the texts may be, but what a provider adds around
them (`ChatCosts`) is unknown. `UsageAnchor` corrects a total by reported usage.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..messages import MediaPart, Message, Outline, Part, TextPart, ToolCallPart, ToolResultPart
from .base import TokenCounter, utf8_bytes
from .chat import ChatCosts
from .resolve import counter as resolve_counter


@attrs.frozen
class MessageMeter:
    """Measures messages with one counter and one table of costs.

    Args:
        counter: The counter of the texts, or its name (see `counter`).
        costs: The tokens added around the texts.

    >>> from compaction.formats import openai_chat
    >>> MessageMeter("chars/4").measure(openai_chat.read({"role": "user", "content": "hello there"}))
    (7, 11)
    """

    counter: TokenCounter = attrs.field(factory=resolve_counter, converter=resolve_counter)
    costs: ChatCosts = attrs.field(default=ChatCosts(), kw_only=True)

    def measure(self, message: Message) -> tuple[int, int]:
        """Return the tokens and bytes of one message.

        Args:
            message: A message read by a wire format.

        Returns:
            Tokens: those of texts, names and arguments, and the `ChatCosts` of the message, its name, calls, results and media,
            but not of the reply, which comes once a request. Bytes: the same strings in UTF-8, and the media data as sent.

        Cost: 0.2 us for one ASCII text, 0.5 us for a tool call, and the counting of texts that are not cached yet.
        """
        costs = self.costs
        tokens = costs.per_message + costs.per_role
        size = 0
        for part in message.parts:
            if isinstance(part, TextPart):
                text = part.text
                tokens += self.counter.count_text(text)
                size += len(text) if text.isascii() else utf8_bytes(text)
            else:
                part_tokens, part_size = self._measure_part(part)
                tokens += part_tokens
                size += part_size
        if message.name:
            tokens += costs.per_name + self.counter.count_text(message.name)
            size += utf8_bytes(message.name)
        return tokens, size

    def measure_outlines(self, outlines: Iterable[Outline]) -> tuple[list[int], list[int]]:
        """Return the tokens of messages, and their bytes, as `measure` would return them for messages of these outlines."""
        costs, count = self.costs, self.counter.count_text
        fixed, per_call = costs.per_message + costs.per_role, costs.per_call
        tokens: list[int] = []
        sizes: list[int] = []
        for _, text, calls, answers, name in outlines:
            total, size = fixed, 0
            if text is not None:
                total += count(text)
                size = len(text) if text.isascii() else utf8_bytes(text)
            if answers is not None:
                total += costs.per_result
            for _, called, arguments in calls:
                total += per_call + count(called) + count(arguments)
                size += len(called) if called.isascii() else utf8_bytes(called)
                size += len(arguments) if arguments.isascii() else utf8_bytes(arguments)
            if name:
                total += costs.per_name + count(name)
                size += utf8_bytes(name)
            tokens.append(total)
            sizes.append(size)
        return tokens, sizes

    def _measure_part(self, part: Part) -> tuple[int, int]:
        count = self.counter.count_text
        if isinstance(part, ToolCallPart):
            tokens = self.costs.per_call + count(part.name) + count(part.arguments)
            return tokens, utf8_bytes(part.name) + utf8_bytes(part.arguments)
        if isinstance(part, MediaPart):
            return self.costs.media(part), part.size_bytes
        if isinstance(part, ToolResultPart):
            tokens, size = self.costs.per_result + count(part.text), utf8_bytes(part.text)
            for media in part.media:
                tokens += self.costs.media(media)
                size += media.size_bytes
            return tokens, size
        return count(part.text), utf8_bytes(part.text)
