"""The space report: the largest groups left in a view, why each stays, and what would make room."""

from __future__ import annotations

from typing import Final

from ..errors import SpaceUse
from .groups import GroupKind, MessageGroup
from .message_index import MessageIndex

__all__ = ["space_report"]

_MOST: Final = 5
_SHORTEN: Final = "end with ToolResult(HeadTail(), keep=nothing) or Offload(..., keep=nothing), which shorten results in place"
_REMEDIES: Final = {
    GroupKind.SYSTEM: "shorten the instructions, or allow drop_system=True",
    GroupKind.USER: "shorten or split what the user sends before it is added",
    GroupKind.ASSISTANT: "let its strategies keep less",
    GroupKind.TOOL_CALL: _SHORTEN,
    GroupKind.SUMMARY: "ask for a shorter summary",
}


def space_report(index: MessageIndex, *, most: int = _MOST) -> tuple[SpaceUse, ...]:
    """Return the largest groups of the view and the overhead of a request, largest first; O(groups log groups).

    Args:
        index: The conversation.
        most: The number of entries, >= 1.

    >>> index = MessageIndex([{"role": "user", "content": "word " * 400}], counter="chars/4")
    >>> print(space_report(index)[0])
    group 0 (user): 504 tokens, the newest group stays; shorten or split what the user sends before it is added
    """
    uses = [_use(index, group) for group in index.included_groups]
    overhead = index.context.overhead_tokens
    if overhead > 0:
        remedy = "send fewer or shorter tool schemas"
        uses.append(SpaceUse(group=None, kind="overhead", tokens=overhead, why="it is sent beside the messages", remedy=remedy))
    return tuple(sorted(uses, key=_tokens, reverse=True)[:most])


def _use(index: MessageIndex, group: MessageGroup) -> SpaceUse:
    rule = index.protection(group)
    remedy = _REMEDIES[group.kind]
    if group.pinned:
        remedy = "pin less"
    elif group.pending:
        remedy = "shorten the result before it is added, or wait for the last one"
    elif rule is None and group.kind is not GroupKind.TOOL_CALL:
        remedy = "let its strategies keep less"
    why = "no strategy took it" if rule is None else rule
    return SpaceUse(group=group.id, kind=group.kind.value, tokens=group.tokens, why=why, remedy=remedy)


def _tokens(use: SpaceUse) -> int:
    return use.tokens
