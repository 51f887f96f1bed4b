"""The memories that a conversation keeps between the rounds of its summaries, so that each round reads only new messages."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

import attrs

from ...messages import Message
from .memory import ConversationMemory
from .reading import Readings, Redact


@attrs.define
class _Kept:
    """A memory for later rounds. Holds state.

    Args:
        memory: The memory.
        messages: Its messages.
        earlier: Memories of fewer messages, each with their number, the shortest first. A message that stayed in the view while
            later ones were summarized, such as the last one of the user, belongs between them once it is summarized too.
    """

    memory: ConversationMemory = attrs.Factory(ConversationMemory)
    messages: list[Message] = attrs.Factory(list[Message])
    earlier: list[tuple[int, ConversationMemory]] = attrs.Factory(list[tuple[int, ConversationMemory]])

    def go_back(self, messages: Sequence[Message]) -> None:
        """Go back to a memory of messages that these begin with. O(messages) in C."""
        same = [*map(is_, self.messages, messages)]
        shared = same.index(False) if False in same else len(same)
        if shared == len(self.messages):
            return
        while self.earlier and self.earlier[-1][0] > shared:
            self.earlier.pop()
        count, self.memory = self.earlier.pop() if self.earlier else (0, ConversationMemory())
        del self.messages[count:]

    def add(self, message: Message, readings: Readings, redact: Redact) -> None:
        """Add the next message; at times, keep the memory before it, fewer of them the longer ago they are.

        The readings of messages long before it are forgotten: the memory has what they held.
        """
        if len(self.messages) - (self.earlier[-1][0] if self.earlier else 0) >= _STEP:
            for old in self.messages[-3 * _STEP : -2 * _STEP]:
                readings.forget(old, redact)
            self.earlier.append((len(self.messages), self.memory.copy()))
            if len(self.earlier) > _MOST_EARLIER:
                del self.earlier[1 : -_MOST_EARLIER // 2 : 2]
        self.memory.add(readings.of(message, redact))
        self.messages.append(message)


_MOST_MEMORIES: Final = 8
_MOST_EARLIER: Final = 8
_STEP: Final = 32  # messages between two of them; a copy costs about as much as three messages


class Memories:
    """The memories of one conversation, for later rounds. Holds state: one for each first message and redaction.

    While a memory grows it is not among them: after an exception, whatever raised it, the next round reads the messages again.

    Attributes:
        readings: The readings of its messages.
    """

    def __init__(self) -> None:
        self.readings = Readings()
        self._kept: dict[tuple[int, Redact], _Kept] = {}  # each holds the message whose identity it is found by

    def of(self, messages: Sequence[Message], redact: Redact = str, *, after: Sequence[Message] = ()) -> ConversationMemory:
        """Return the memory of messages; it is the caller's until the next call with the same first message.

        O(new messages) if it continues the memory of an earlier call. If messages are new between those of earlier calls, all
        after them are added again. O(messages) in C otherwise.

        Args:
            messages: The messages, oldest first.
            redact: Removes from every text what must not be shown.
            after: The messages that precede ``messages``.
        """
        whole = [*after, *messages]
        if not whole:
            return ConversationMemory()
        key = id(whole[0]), redact
        kept = self._kept.pop(key, None) or _Kept()
        kept.go_back(whole)
        for message in whole[len(kept.messages) :]:
            kept.add(message, self.readings, redact)
        while len(self._kept) >= _MOST_MEMORIES:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[key] = kept
        return kept.memory
