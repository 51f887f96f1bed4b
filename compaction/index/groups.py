"""Groups: the messages that stay or leave together.

A provider refuses a tool result without its call, and a call without its results. So nothing is ever dropped by the message: an
assistant message with tool calls, every result that answers them and the reasoning around it are one `MessageGroup`, which is
kept or dropped whole.
"""

from __future__ import annotations

import enum

import attrs

from ..messages import Message, ReasoningPart, TextPart
from .marks import COLLAPSED_BY, tools_of


class GroupKind(enum.Enum):
    """What a group is, which decides what may happen to it."""

    SYSTEM = "system"
    """One system or developer message; belongs to no turn and is never dropped unless a strategy's options say so."""

    USER = "user"
    """One user message; starts the next turn."""

    ASSISTANT = "assistant"
    """What the assistant says without calling a tool."""

    TOOL_CALL = "tool_call"
    """An assistant message with tool calls, the results that answer them, and the reasoning directly around it."""

    SUMMARY = "summary"
    """What a strategy wrote in place of other groups; belongs to no turn."""

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen(weakref_slot=False)
class MessageGroup:
    """Messages that stay or go together: a snapshot, safe to keep while the index changes.

    Args:
        id: The ordinal of its first message, from 0; negative for a group that an edit inserted.
        kind: What it is.
        messages: Its messages as the view shows them now, in order.
        turn: The turn it belongs to, from 1; 0 before the first user message; ``None`` for system and summary groups.
        tokens: Tokens of its messages, their overhead included.
        bytes: UTF-8 bytes of its texts, and of data carried in it.
        tool_calls: How many calls it makes.
        open: Whether a call has no result.
        pending: Whether it is open and a result may still come, because nothing but results follows it.
        orphan: Whether it is a result that answers no call.
        pinned: Whether somebody asked for it to be kept as it is.
        made_by: The strategy that wrote it, for a summary.
        replaces: Ids of the groups it stands for, for a summary written on this index.
    """

    id: int
    kind: GroupKind
    messages: tuple[Message, ...]
    turn: int | None
    tokens: int
    bytes: int
    tool_calls: int = 0
    open: bool = False
    pending: bool = False
    orphan: bool = False
    pinned: bool = False
    made_by: str | None = None
    replaces: tuple[int, ...] = ()

    @property
    def is_collapsed(self) -> bool:
        """Whether it is a tool call shortened to a line: dropped like what it stands for, not kept like a summary."""
        return self.kind is GroupKind.SUMMARY and self.made_by == COLLAPSED_BY

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools it calls, in order, repeated as called; of a collapsed tool call, those its text names."""
        if self.is_collapsed:
            return tools_of(self.messages[0].text)
        return tuple(call.name for message in self.messages for call in message.tool_calls())


def only_reasoning(message: Message) -> bool:
    """Whether the message holds thoughts and nothing else; an empty message does not."""
    if message.role != "assistant":
        return False
    thought = False
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            thought = True
        elif not isinstance(part, TextPart) or part.text:
            return False
    return thought
