"""Instructions: the system and developer messages of a conversation, and which of them have become outdated."""

from __future__ import annotations

import re
from typing import Final

import attrs

from ..messages import Message, TextPart

_MOST_REMINDERS: Final = 4
"""Instructions after the leading ones that stay, if no two of them are alike."""

_ALIKE: Final = 0.6  # two instructions are alike if this share of their words is in both
_READ_CHARS: Final = 4_000  # of an instruction, to compare it
# Words; the combining marks of Hebrew, Arabic and the scripts of India are part of a word, but not letters for ``\w``. Scripts
# without blanks have overlapping pairs of characters instead, or, if they have few different characters, threes.
_WORD: Final = re.compile(
    r"((?:[^\W\d_\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
    r"|[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0980-\u09e3\u0a00-\u0a63\u0a80-\u0ae3\u0b00-\u0b63"
    r"\u0b80-\u0be3\u0c00-\u0c63\u0c80-\u0ce3\u0d00-\u0d63\u0d80-\u0ddf]+)+)"
    r"|(?=([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[\u0e00-\u109f\u1780-\u17ff]{3}))."
)


@attrs.define
class Instructions:
    """The instructions that were read so far. Holds state."""

    count: int = 0
    leading: int = 0  # the number of those at the start of the conversation. These are never outdated
    needed: set[int] = attrs.Factory(set[int])  # the ids of those that must stay
    # the ids of the others: a later one is alike, or it was the oldest when a fifth kind came
    outdated: set[int] = attrs.Factory(set[int])
    _reminders: list[tuple[frozenset[str], int]] = attrs.Factory(list[tuple[frozenset[str], int]])
    """The words and ids of those that are neither leading nor outdated, oldest first."""

    def add(self, id: int, text: str | None) -> None:
        """Add the instruction with this id. ``text`` is ``None`` for one that is never outdated."""
        self.count += 1
        self.needed.add(id)
        self.leading += self.leading == id
        if id < self.leading or text is None:
            return
        words = compared_words(text)
        outdated = next((each for each in self._reminders if _alike(each[0], words)), None)
        if outdated is None and len(self._reminders) == _MOST_REMINDERS:
            outdated = self._reminders[0]
        if outdated is not None:
            self._reminders.remove(outdated)
            self.needed.remove(outdated[1])
            self.outdated.add(outdated[1])
        self._reminders.append((words, id))


def compared_words(text: str) -> frozenset[str]:
    """Return the words by which instructions are compared; of a text without any, such as "404", the text."""
    found = _WORD.findall(text[:_READ_CHARS].lower())
    return frozenset(one or other for one, other in found) or frozenset([text.strip()])


def text_alone(message: Message) -> str | None:
    """Return the text of an instruction; ``None`` if it has other parts, such as a tool that it adds."""
    return message.text if all(isinstance(part, TextPart) for part in message.parts) else None


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have most of their words in common."""
    return 2 * len(one & other) >= _ALIKE * (len(one) + len(other))
