"""What no edit may do, whoever asks.

A strategy can be wrong; the conversation must not break. So every edit passes through here before it happens. An edit is
refused with the rule it would break, in words; the caller of ``apply`` records it and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from .edits import Drop, Edit, Replace, Restore, Rewrite, Together
from .errors import StrategyError
from .formats import MessageFormat
from .groups import GroupKind, GroupRecord, only_reasoning
from .messages import Message
from .projection import Projection

__all__ = ["protection", "refusal", "rewritable"]


def refusal(projection: Projection, edit: Edit) -> str | None:
    """The rule an edit would break, or ``None`` if it may happen. O(the groups it names, what is gone before them).

    That included tokens do not grow is judged after the edit is done, by the sums; a `Together` is judged part by part as it is
    done. Both are the index's business.

    Raises:
        StrategyError: If it is no edit.
    """
    if isinstance(edit, Drop):
        return _removal(projection, edit.groups, allow_system=edit.allow_system)
    if isinstance(edit, Replace):
        return _removal(projection, edit.groups, allow_system=False) or _replacement(projection, edit)
    if isinstance(edit, Rewrite):
        return _rewriting(projection, edit)
    if isinstance(edit, Restore):
        return "only the index restores groups, when a late result arrives"
    if not isinstance(edit, Together):
        raise StrategyError(f"{edit!r} is no edit: apply a Drop, Replace, Rewrite or Together")
    return None if edit.edits else "an edit names at least one group"


def protection(projection: Projection, id: int) -> str | None:
    """Why a group may not leave the view by itself; ``None`` if it may. O(1)."""
    record = projection.by_id.get(id)
    return f"there is no group {id}" if record is None else _protection(projection, record, allow_system=False)


def rewritable(projection: Projection, id: int) -> bool:
    """Whether a group's content may be shortened. O(1)."""
    record = projection.by_id.get(id)
    return record is not None and _frozen(projection, record) is None


def _removal(projection: Projection, ids: Sequence[int], *, allow_system: bool) -> str | None:
    """Why these groups may not all leave the view."""
    if not ids:
        return "an edit names at least one group"
    if len(ids) > 1 and len(set(ids)) < len(ids):
        return "an edit names a group once"
    for id in ids:
        record = projection.by_id.get(id)
        rule = f"there is no group {id}" if record is None else _protection(projection, record, allow_system)
        if rule:
            return rule
    if len(ids) >= projection.included.groups:
        return "something is left to send"
    return None


def _protection(projection: Projection, record: GroupRecord, allow_system: bool) -> str | None:
    """Why this group may not leave the view."""
    grouping = projection.grouping
    if record.excluded:
        return f"group {record.id} is not in the view"
    if record.kind is GroupKind.SYSTEM and not allow_system:
        return "system messages stay"
    if record.pinned:
        return "pinned groups stay"
    if record is grouping.pending:
        return "a call whose result may still come stays"
    if grouping.pending is not None and record.anchor > grouping.pending.id:
        return "what follows a call whose result may still come stays"
    if record is grouping.newest:
        return "the newest group stays"
    if record is grouping.last_user or record is grouping.last_words:
        return "the last user message stays"
    return None


def _replacement(projection: Projection, edit: Replace) -> str | None:
    """Why these messages cannot stand in place of others."""
    messages = edit.messages
    if not 1 <= len(messages) <= 2:
        return "a replacement is one message, or two where roles alternate"
    if any(_structure(message)[1] for message in messages):
        return "a replacement makes no calls and carries no results"
    format = _format(projection)
    problem = format.replacement_problem(messages, instructed=True)
    if problem is None or any(_follows_instruction(projection, id, edit.groups) for id in edit.groups):
        return problem
    return format.replacement_problem(messages, instructed=False)


def _follows_instruction(projection: Projection, id: int, gone: Sequence[int]) -> bool:
    """Whether the view shows a system message directly before a group, and something that is left before that."""
    before = projection.directly_before(projection.by_id[id])
    if before is None or not projection.read[before].is_system:
        return False
    for record in projection.records():
        if record.anchor >= before:
            return False
        if record.id not in gone and record.kind is not GroupKind.SYSTEM:
            return True
    return False


def _format(projection: Projection) -> MessageFormat:
    """The wire format of the conversation; there is one, for an edit that names groups comes after messages."""
    format = projection.read[0].format
    assert isinstance(format, MessageFormat)
    return format


def _rewriting(projection: Projection, edit: Rewrite) -> str | None:
    """Why a group's content may not change like this."""
    record = projection.by_id.get(edit.group)
    rule = f"there is no group {edit.group}" if record is None else _frozen(projection, record)
    if record is None or rule:
        return rule
    before = projection.snapshot(record).messages
    if len(edit.messages) > len(before):
        return "a rewrite gives the messages of its group anew, one for one"
    part = before[: len(edit.messages)]
    rule = _same_structure(part, edit.messages, whole=len(edit.messages) == len(before))
    current = record.turn == projection.grouping.turn
    return rule or _format(projection).rewrite_problem(part, edit.messages, current=current)


def _frozen(projection: Projection, record: GroupRecord) -> str | None:
    """Why this group's content may not change at all."""
    if record.excluded:
        return f"group {record.id} is not in the view"
    if record.kind is GroupKind.SUMMARY:
        return "a summary is replaced, not rewritten"
    if record is projection.grouping.pending:
        return "a call whose result may still come stays as it is"
    if record.pinned:
        return "pinned groups stay as they are"
    return None


def _same_structure(before: Sequence[Message], after: Sequence[Message | None], *, whole: bool) -> str | None:
    """Why these messages cannot take each other's place."""
    if all(old is new for old, new in zip(before, after, strict=True)):
        return "a rewrite changes something"
    if whole and all(new is None for new in after):
        return "a rewrite leaves something of its group"
    for old, new in zip(before, after, strict=True):
        if new is None and not only_reasoning(old):
            return "only a message that holds nothing but reasoning may be removed by a rewrite"
        if new is not None and _structure(old) != _structure(new):
            return "a rewrite keeps roles, calls and results"
    return None


def _structure(message: Message) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What of a message its neighbours rely on: its role, and the calls and results in it."""
    links = [("call", call.id + "\n" + call.name) for call in message.tool_calls()]
    links += [("result", result.call_id) for result in message.tool_results()]
    return message.role, tuple(links)
