"""How large a message is, in tokens and bytes: the one place where messages are measured, and the hottest.

Figures are comparable and additive, not exact: the texts are counted by a counter that may be exact, what a provider puts
around them is not known (`ChatCosts`), so a meter has no ``exact``. Anchor totals to reported usage with `UsageAnchor`.
"""

from __future__ import annotations

import attrs

from ..messages import Media, Message, Part, Text, ToolCall, ToolResult
from .base import TokenCounter
from .chat import ChatCosts
from .resolve import counter as resolve_counter
from .size import utf8_bytes

__all__ = ["MessageMeter"]


@attrs.frozen
class MessageMeter:
    """Measures messages with one counter and one table of costs.

    Args:
        counter: Counts the texts; whatever `counter` accepts.
        costs: What is added around them.

    >>> from compaction.formats import openai_chat
    >>> MessageMeter("chars/4").measure(openai_chat.read({"role": "user", "content": "hello there"}))
    (7, 11)
    """

    counter: TokenCounter = attrs.field(factory=resolve_counter, converter=resolve_counter)
    costs: ChatCosts = attrs.field(default=ChatCosts(), kw_only=True)

    def measure(self, message: Message) -> tuple[int, int]:
        """Tokens and bytes of one message.

        Args:
            message: As read by a wire format.

        Returns:
            Tokens: the texts, names and arguments as the counter counts them, media by table, and the costs of the message, its
            name, calls and results; the reply, which comes once a request, is left out. Bytes: the same strings in
            UTF-8, and the media's data as sent.

        Cost: 0.2 us for one ASCII text, 0.5 us for a tool call, besides counting a text that is not yet remembered.
        """
        costs = self.costs
        tokens = costs.per_message + costs.per_role
        size = 0
        for part in message.parts:
            if isinstance(part, Text):
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

    def _measure_part(self, part: Part) -> tuple[int, int]:
        count = self.counter.count_text
        if isinstance(part, ToolCall):
            tokens = self.costs.per_call + count(part.name) + count(part.arguments)
            return tokens, utf8_bytes(part.name) + utf8_bytes(part.arguments)
        if isinstance(part, Media):
            return self.costs.media(part), part.size_bytes
        if isinstance(part, ToolResult):
            tokens, size = self.costs.per_result + count(part.text), utf8_bytes(part.text)
            for media in part.media:
                tokens += self.costs.media(media)
                size += media.size_bytes
            return tokens, size
        return count(part.text), utf8_bytes(part.text)
