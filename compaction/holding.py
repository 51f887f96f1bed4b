"""What holds the space in a conversation that will not get smaller, why it stays, and what would help."""

from __future__ import annotations

from typing import Final

from .errors import Held
from .groups import GroupKind, MessageGroup
from .index import MessageIndex

__all__ = ["holding"]

_MOST: Final = 5
_SHORTEN: Final = "end with ToolResult(HeadTail(), keep=nothing) or Offload(..., keep=nothing), which shorten results in place"
_REMEDIES: Final = {
    GroupKind.SYSTEM: "shorten the instructions, or allow drop_system=True",
    GroupKind.USER: "shorten or split what the user sends before it is added",
    GroupKind.ASSISTANT: "let its strategies keep less",
    GroupKind.TOOL_CALL: _SHORTEN,
    GroupKind.SUMMARY: "ask for a shorter summary",
}


def holding(index: MessageIndex, *, most: int = _MOST) -> tuple[Held, ...]:
    """The largest groups of the view, and what is sent beside it; O(groups log groups).

    Args:
        index: The conversation.
        most: How many, >= 1.

    >>> index = MessageIndex([{"role": "user", "content": "word " * 400}], counter="chars/4")
    >>> print(holding(index)[0])
    group 0 (user): 504 tokens, the newest group stays; shorten or split what the user sends before it is added
    """
    held = [_held(index, group) for group in index.included_groups]
    overhead = index.context.overhead_tokens
    if overhead > 0:
        remedy = "send fewer or shorter tool schemas"
        held.append(Held(group=None, kind="overhead", tokens=overhead, why="it is sent beside the messages", remedy=remedy))
    return tuple(sorted(held, key=_tokens, reverse=True)[:most])


def _held(index: MessageIndex, group: MessageGroup) -> Held:
    rule = index.protection(group)
    remedy = _REMEDIES[group.kind]
    if group.pinned:
        remedy = "pin less"
    elif group.pending:
        remedy = "shorten the result before it is added, or wait for the last one"
    elif rule is None and group.kind is not GroupKind.TOOL_CALL:
        remedy = "let its strategies keep less"
    why = "no strategy took it" if rule is None else rule
    return Held(group=group.id, kind=group.kind.value, tokens=group.tokens, why=why, remedy=remedy)


def _tokens(held: Held) -> int:
    return held.tokens
