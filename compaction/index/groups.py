"""Groups: messages that are kept or dropped together, as values.

A provider refuses a tool result without its call, and a call without its results. An assistant message with tool calls, every
result that answers them and the reasoning around them are therefore one `MessageGroup`. Edits name groups, never messages.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import attrs

from ..messages import Message, ReasoningPart, TextPart
from .marks import COLLAPSED_BY, Mark, read_mark

NO_CALL: Final = "result"
"""The text in place of the tool name, for a result without a call."""

_HEAD: Final = "[Tool results]"
_SERVER: Final = re.compile(r"__|[.:/]")  # "chat__human_input", "functions.ask_user"
_PERSON: Final = re.compile(r"user|human|person|follow|clarif|approval", re.IGNORECASE)
_ASKS_USER: Final = re.compile(
    r"(?:(?:ask|clarify|human)(?:[_-]?(?:user|human|person|question|for|followup|clarif|approval)\w*)?"
    r"|(?:(?:request|await|collect|elicit|wait[_-]?for|prompt(?:[_-]?for)?)[_-]?)?(?:user|human)[_-]?"
    r"(?:input|question|feedback|approval|confirmation|answer|response)"
    r"|get[_-]?(?:user[_-]?(?:input|approval|confirmation)|human[_-]?(?:input|approval|confirmation|feedback))"
    r"|request[_-]?approval)(?:[_-]?tool)?",
    re.IGNORECASE,
)


class GroupKind(enum.Enum):
    """The kind of a group. The rules for edits depend on it."""

    SYSTEM = "system"
    """One system or developer message; belongs to no turn, and is dropped only by an edit with ``allow_system``."""

    USER = "user"
    """One user message; starts the next turn."""

    ASSISTANT = "assistant"
    """An assistant message without tool calls."""

    TOOL_CALL = "tool_call"
    """An assistant message with tool calls, the results that answer them, and the reasoning directly around it."""

    SUMMARY = "summary"
    """A message that a strategy wrote in place of other groups: a summary, or one line for a tool call; belongs to no turn."""

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen(weakref_slot=False)
class MessageGroup:
    """Messages that are kept or dropped together: a snapshot, safe to keep while the index changes.

    Args:
        id: The position of its first message in the source, from 0; negative for a group that an edit inserted.
        kind: Its kind.
        messages: Its messages as the view shows them at the time of the snapshot, in order.
        turn: The turn it belongs to, from 1; 0 before the first user message; ``None`` for system and summary groups.
        tokens: Tokens of its messages, per-message overhead included.
        bytes: Bytes of its texts in UTF-8, and of the data in it.
        tool_calls: The number of calls.
        open: Whether a call has no result yet.
        pending: Whether it is open and its result may still arrive, because only results follow the call.
        orphan: Whether it is a result that answers no call.
        pinned: Whether it must be kept unchanged.
        made_by: The strategy that wrote it, for a summary.
        replaces: Ids of the groups that it replaces; empty for a summary that was already in the list.
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
        """Whether it is a tool call collapsed to a line of text, which is dropped like a tool call and unlike a summary."""
        return self.kind is GroupKind.SUMMARY and self.made_by == COLLAPSED_BY

    @property
    def mark(self) -> Mark | None:
        """The mark of a summary; ``None`` without one, and for any other group: a mark in its text is not believed."""
        return read_mark(self.messages[0]) if self.kind is GroupKind.SUMMARY else None

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that it calls, in order, with repetitions; for a collapsed tool call, read from its text."""
        if self.is_collapsed:
            return tools_of(self.messages[0].text)
        return tuple(call.name for message in self.messages for call in message.tool_calls())

    @property
    def asks_user(self) -> bool:
        """Whether it calls a tool whose result is what the user answers, see `asks_user`; not if it is collapsed."""
        return self.kind is GroupKind.TOOL_CALL and any(map(asks_user, self.tool_names))

    @property
    def is_spoken(self) -> bool:
        """Whether the user says something in it, in a message or through a tool that asks; in a summary nobody does."""
        return self.kind is not GroupKind.SUMMARY and (any(message.said for message in self.messages) or self.asks_user)


@lru_cache(maxsize=1_024)
def asks_user(tool: str) -> bool:
    """Whether the result of a tool with this name is what the user answers; no text of a conversation decides that.

    A tool of a server may ask a service: it must name a person, or what only a person gives.

    >>> names = "ask_user ask_question chat.human_input human_input_tool get_user_feedback wiki.ask_question read_file"
    >>> [name for name in names.split() if asks_user(name)]
    ['ask_user', 'ask_question', 'chat.human_input', 'human_input_tool']
    """
    *servers, name = _SERVER.split(tool)
    return _ASKS_USER.fullmatch(name) is not None and (not servers or _PERSON.search(name) is not None)


def says_nothing(message: Message) -> bool:
    """Whether the message contains only whitespace."""
    return all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts)


def only_reasoning(message: Message) -> bool:
    """Whether the message contains only reasoning; False for an empty message."""
    if message.role != "assistant":
        return False
    thought = False
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            thought = True
        elif not isinstance(part, TextPart) or part.text:
            return False
    return thought


def collapsed_text(said: Iterable[str], lines: Iterable[str]) -> str:
    """Return the text that replaces a collapsed tool call.

    Args:
        said: The assistant's texts with the calls.
        lines: A line for each call, ``name(arguments) -> outcome``, without line breaks.

    >>> text = collapsed_text(["I look it up."], ["read_file(path=a.py) -> import os"])
    >>> print(text)
    I look it up.
    [Tool results]
    read_file(path=a.py) -> import os
    >>> tools_of(text)
    ('read_file',)
    """
    return "\n".join([*said, _HEAD, *lines])


def tools_of(text: str) -> tuple[str, ...]:
    """Return the tool names in a text of `collapsed_text`, in order; O(text). A name ends at a bracket or a line break."""
    _, found, lines = f"\n{text}".rpartition(f"\n{_HEAD}\n")
    calls = [line.partition(" -> ")[0] for line in lines.split("\n")] if found else []
    return tuple([call.partition("(")[0] for call in calls if "(" in call])
