"""Instructions: the system and developer messages of a conversation, and which of them have become outdated."""

from __future__ import annotations

import re
from typing import Final

import attrs

from ..messages import Message, TextPart

_MOST_REMINDERS: Final = 4
"""Instructions after the leading ones that stay, if no two of them are alike."""

_ALIKE: Final = 0.6  # of the words of two instructions are in both
_READ_CHARS: Final = 4_000  # of an instruction, to compare it
_WORD: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+")


@attrs.define
class Instructions:
    """The instructions that were read so far. Holds state."""

    count: int = 0
    leading: int = 0  # the number of those at the start of the conversation. These are never outdated
    # the ids of those that may leave: a later one is alike, or five of different kinds came, of which each was the oldest
    outdated: set[int] = attrs.Factory(set[int])
    _reminders: list[tuple[frozenset[str], int]] = attrs.Factory(list[tuple[frozenset[str], int]])
    """The words and ids of those that are neither leading nor outdated, oldest first."""

    def add(self, id: int, text: str | None) -> None:
        """Add the instruction with this id. ``text`` is ``None`` for one that is never outdated."""
        self.count += 1
        self.leading += self.leading == id
        if id < self.leading or text is None:
            return
        words = frozenset(_WORD.findall(text[:_READ_CHARS].lower()))
        outdated = next((each for each in self._reminders if _alike(each[0], words)), None)
        if outdated is None and len(self._reminders) == _MOST_REMINDERS:
            outdated = self._reminders[0]
        if outdated is not None:
            self._reminders.remove(outdated)
            self.outdated.add(outdated[1])
        self._reminders.append((words, id))


def text_alone(message: Message) -> str | None:
    """Return the text of an instruction; ``None`` if it has other parts, such as a tool that it adds."""
    return message.text if all(isinstance(part, TextPart) for part in message.parts) else None


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have most of their words in common."""
    return 2 * len(one & other) >= _ALIKE * (len(one) + len(other))
