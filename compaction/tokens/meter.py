"""`MessageMeter` measures messages in tokens and bytes; every size in this package comes from it.

The sizes can be compared and added, but they are not exact: the counter of the texts may be, but what a provider adds around
them is unknown. Providers publish little; the figures here are gpt-4o's, measured or quoted. For 32 of 33 recorded gpt-4o
requests without tools, three tokens a message, one for its role and three for the reply add up to exactly the reported prompt.
Tools cost more than their texts (gpt-5-mini reports 80 tokens that are in no message), so a session corrects its totals by
reported usage. ``docs/counting.md`` has a table of the figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ..messages import MediaPart, Message, Outline, Part, ToolCallPart, ToolResultPart
from .base import TokenCounter, utf8_bytes
from .resolve import counter as resolve_counter

_PER_MESSAGE: Final = 4  # 3 around it, and 1 for its role, whichever it is
_PER_NAME: Final = 1  # around a participant's name; OpenAI's published counting recipe
_PER_CALL: Final = 4  # its id is not counted: nothing shows that it reaches the model
_PER_RESULT: Final = 3  # call and result: 7, as in four recorded gpt-4o exchanges; the division is our choice
_IMAGE: Final = 765  # 1024 x 1024 on gpt-4o: four tiles of 170 and a base of 85 (secondary sources)
_IMAGE_LOW: Final = 85  # sent with ``detail: "low"``: the base alone
_FILE: Final = 2_333  # one page at about 7,000 tokens for three (Anthropic, "PDF support")
_MEDIA: Final = {
    "audio": 600,  # one minute at a token every 100 ms (OpenAI, "Managing costs" of the Realtime API)
    "video": 15_780,  # one minute at 263 tokens a second, Gemini's rate; OpenAI and Anthropic accept none
}


def media_tokens(part: MediaPart) -> int:
    """Return the tokens of an image, a sound, a video or a file, by its kind and detail; its data is not tokenized.

    >>> media_tokens(MediaPart("image", detail="low")), media_tokens(MediaPart("image"))
    (85, 765)
    """
    if part.kind == "image":
        return _IMAGE_LOW if part.detail == "low" else _IMAGE
    return _MEDIA.get(part.kind, _FILE)


@attrs.frozen
class MessageMeter:
    """Measures messages with one counter.

    Args:
        counter: The counter of the texts, or its name (see `counter`).

    >>> from compaction.formats import openai_chat
    >>> MessageMeter("chars/4").measure(openai_chat.read({"role": "user", "content": "hello there"}))
    (7, 11)
    """

    counter: TokenCounter = attrs.field(factory=resolve_counter, converter=resolve_counter)

    def measure(self, message: Message) -> tuple[int, int]:
        """Return the tokens and bytes of one message.

        Args:
            message: A message read by a wire format.

        Returns:
            Tokens: those of texts, names and arguments, those around them, and those of media. Bytes: the same strings in
            UTF-8, and the media data as sent.

        Cost: 0.2 us for one ASCII text, 0.5 us for a tool call, and the counting of texts that are not cached yet.
        """
        tokens, size = _PER_MESSAGE, 0
        for part in message.parts:
            part_tokens, part_size = self._measure_part(part)
            tokens += part_tokens
            size += part_size
        if message.name:
            tokens += _PER_NAME + self.counter.count_text(message.name)
            size += utf8_bytes(message.name)
        return tokens, size

    def measure_outlines(self, outlines: Iterable[Outline]) -> tuple[list[int], list[int]]:
        """Return the tokens of messages, and their bytes, as `measure` would return them for messages of these outlines.

        The formula of `measure` is written again, because reading the messages would take most of the time;
        ``tests/unit/tokens/test_meter.py`` compares the two.
        """
        count = self.counter.count_text
        tokens: list[int] = []
        sizes: list[int] = []
        for _, text, calls, answers, name in outlines:
            total, size = _PER_MESSAGE, 0
            if text is not None:
                total += count(text)
                size = len(text) if text.isascii() else utf8_bytes(text)
            if answers is not None:
                total += _PER_RESULT
            for _, called, arguments in calls:
                total += _PER_CALL + count(called) + count(arguments)
                size += len(called) if called.isascii() else utf8_bytes(called)
                size += len(arguments) if arguments.isascii() else utf8_bytes(arguments)
            if name:
                total += _PER_NAME + count(name)
                size += utf8_bytes(name)
            tokens.append(total)
            sizes.append(size)
        return tokens, sizes

    def _measure_part(self, part: Part) -> tuple[int, int]:
        count = self.counter.count_text
        if isinstance(part, ToolCallPart):
            tokens = _PER_CALL + count(part.name) + count(part.arguments)
            return tokens, utf8_bytes(part.name) + utf8_bytes(part.arguments)
        if isinstance(part, MediaPart):
            return media_tokens(part), part.size_bytes
        if isinstance(part, ToolResultPart):
            tokens, size = _PER_RESULT + count(part.text), utf8_bytes(part.text)
            for media in part.media:
                tokens += media_tokens(media)
                size += media.size_bytes
            return tokens, size
        return count(part.text), utf8_bytes(part.text)
