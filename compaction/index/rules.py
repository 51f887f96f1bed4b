"""The rules that every edit must obey, whichever strategy made it.

They keep a conversation valid even if a strategy is wrong. `editing` checks each edit here before applying it, and then checks
its neighbours with `joins`. A refused edit is recorded with the rule that it would have broken, and the strategy continues.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, starmap
from typing import Final

import attrs

from ..errors import StrategyError
from ..formats import MessageFormat
from ..messages import MediaPart, Message, ReasoningPart, TextPart
from .columns import Columns
from .edits import Drop, Edit, Replace, Restore, Rewrite, Together
from .groups import GroupKind, only_reasoning, says_nothing
from .keys import message_id
from .replacements import place_of
from .visibility import Node


@attrs.define
class _Removal:
    """The exceptions from the protection of groups that one edit has."""

    by: str = ""  # the strategy of a summary in its place, which may replace its own
    allow_system: bool = False
    allow_history: bool = False  # whether the provider wrote the summary, so that its earlier one may go
    seen: int | None = None  # the number of messages read when a repeated edit was decided; ``None`` for a new edit


_ORDINARY: Final = _Removal()
_SYSTEM: Final = "system messages must be kept"
_PINNED: Final = "pinned groups must be kept"
_BEHIND_PENDING: Final = "groups after an unanswered tool call must be kept until its result arrives"
_HISTORY: Final = "the newest summary that the provider itself wrote must be kept"


def refusal(columns: Columns, edit: Edit, by: str, *, seen: int | None = None, is_repeated: bool = False) -> str | None:
    """Return the rule that an edit of this strategy would break; ``None`` if it is allowed. O(named groups).

    When an edit of the journal is repeated, ``seen`` is the number of messages that had been read when it was decided. The edit
    may then remove a group that only later messages protect: the group of an old call, which words of the user joined with a
    late result. A later edit of the journal, or `editing.restore_joined`, brings that group back. Since then, a framework may
    have given an id to the replacement; so ids are checked only the first time.

    `editing` calls this function for each part of a `Together`. It checks two more rules for the whole after applying it: the
    view's tokens must not grow, and the new neighbours must be valid.

    Raises:
        StrategyError: If it is not an edit.
    """
    if isinstance(edit, Drop):
        return _removal_problem(columns, edit.groups, _Removal(allow_system=edit.allow_system, seen=seen))
    if isinstance(edit, Replace):
        newer = any(message.holds_history for message in edit.messages)
        return (
            _removal_problem(columns, edit.groups, _Removal(by, allow_history=newer, seen=seen))
            or _content_problem(columns.format, edit.messages)
            or (None if is_repeated else _id_problem(edit.messages))
            or (_repetition_problem(columns, edit) if newer else None)
            or _placement_problem(columns, edit.groups)
        )
    if isinstance(edit, Rewrite):
        return _rewrite_problem(columns, edit)
    if isinstance(edit, Restore):
        return "only the index may restore groups, when a late result arrives"
    if not isinstance(edit, Together):
        raise StrategyError(f"{edit!r} is not an edit: apply a Drop, Replace, Rewrite or Together")
    return None if edit.edits else "the edit names no groups"


def removable(columns: Columns, by: str = "") -> list[int]:
    """Return the groups of the view that `protection` does not protect, in order. O(groups).

    ``by`` names the strategy. It may remove its own summary, even if that is the last message with the user role, or if the
    provider wrote it.
    """
    kept = set[int | None]().union(*_kept(columns, _Removal(by)).values())

    def may_go(id: int) -> bool:
        return _protection_of_inserted(columns, id, allow_history=columns.made_by(id) == by) is None

    return [id for id in columns.ids() if id not in kept and (id >= 0 or may_go(id))]


def _removal_problem(columns: Columns, ids: Sequence[int], removal: _Removal) -> str | None:
    if not ids:
        return "the edit names no groups"
    if len(ids) > 1 and len(set(ids)) < len(ids):
        return "the edit names a group twice"
    for id in ids:
        if (rule := protection(columns, id, removal)) is not None:
            return rule
    if len(ids) >= columns.included.groups:
        return "the edit would remove every group of the view"
    return None


def protection(columns: Columns, id: int, removal: _Removal = _ORDINARY) -> str | None:
    """Return why a group may not be removed, apart from its neighbours, or ``None``. O(1)."""
    if (rule := _absence(columns, id)) is not None:
        return rule
    kept = _kept(columns, removal)
    if id >= 0 and removal.seen is not None and columns.ordinals(id)[-1] >= removal.seen:
        kept = {rule: kept[rule] for rule in (_SYSTEM, _PINNED)}  # only messages that joined it later give it another one
    for rule, ids in kept.items():
        if id in ids:
            return rule
    return _protection_of_inserted(columns, id, allow_history=removal.allow_history) if id < 0 else None


def _kept(columns: Columns, removal: _Removal) -> dict[str, Collection[int | None]]:
    """Return the groups that may not be removed, by the reason, of which the first that fits is given.

    Of the groups that edits inserted, only the pinned ones are here; for the others see `_protection_of_inserted`.
    """
    newest, pending, count = columns.grouping.newest, columns.grouping.calls.pending, len(columns.source)
    return {
        _SYSTEM: () if removal.allow_system else columns.grouping.instructions.needed,
        _PINNED: columns.pinned,
        "a tool call must be kept until its result arrives": (pending,),
        _BEHIND_PENDING: () if pending is None else range(pending + 1, count),
        "the newest group must be kept": (newest.group,),
        _HISTORY: () if removal.allow_history else (newest.history,),
        "the last user message must be kept": (newest.words, newest.user),
        "the last user message must be kept, even if it begins with a summary mark": (newest.marked_by_others(removal.by),),
    }


def _protection_of_inserted(columns: Columns, id: int, *, allow_history: bool) -> str | None:
    """Return why a group that an edit inserted may not be removed, or ``None``."""
    pending = columns.grouping.calls.pending
    if pending is not None and columns.anchor(id) > pending:
        return _BEHIND_PENDING
    return _HISTORY if not allow_history and _is_newest_history(columns, id) else None


def _is_newest_history(columns: Columns, id: int) -> bool:
    """Return whether an inserted group is a summary of the provider, and the host has no newer one."""
    group, history = columns.inserted[id], columns.grouping.newest.history
    return group.messages[0].holds_history and (history is None or history < group.anchor)


def _repetition_problem(columns: Columns, edit: Replace) -> str | None:
    """Return the rule against a provider's summary that the conversation already has; O(messages)."""
    sources = [columns.read(ordinal) for ordinal in range(len(columns.source))]
    inserted = [each.messages for each in columns.inserted.values() if each.shown and each.id not in edit.groups]
    known = [each for each in chain(sources, *inserted) if each.holds_history]
    for message in filter(operator.attrgetter("holds_history"), edit.messages):
        id = message_id(message.raw)
        if any(each.raw is message.raw or each.raw == message.raw or (id and message_id(each.raw) == id) for each in known):
            return "a replacement must not repeat a summary of the provider that the conversation has"
    return None


def _content_problem(format: MessageFormat, messages: Sequence[Message]) -> str | None:
    """Return why these messages cannot replace others. One that the provider wrote may have parts of its own."""
    ours = [message for message in messages if not message.holds_history]
    if not 1 <= len(messages) <= 2:
        return "a replacement must be one message, or two if the format requires alternating roles"
    if any(any(message.tool_calls()) or any(message.tool_results()) for message in messages):
        return "a replacement must not contain tool calls or results"
    if not all(isinstance(part, TextPart | MediaPart) for message in ours for part in message.parts):
        return "a replacement must contain only text and media"
    if any(isinstance(part, ReasoningPart) for message in messages for part in message.parts):
        return "a replacement must not contain reasoning"
    if len(messages) > 1 and (broken := format.join_problem(*messages)) is not None:
        return f"the second message of a replacement must be one that may follow the first [{broken[0]}]"
    return next((problem for message in messages if (problem := format.acceptable(message)) is not None), None)


def _id_problem(messages: Sequence[Message]) -> str | None:
    if any(message_id(message.raw) for message in messages if not message.holds_history):
        return "a replacement must not have an id, which would name a message of the host or the provider"
    return None


def _placement_problem(columns: Columns, ids: Sequence[int]) -> str | None:
    """Return the rule against a replacement between the messages of a remaining group, if it would be broken.

    Results without a call (``o``) may stand between the messages of any group, so they are passed over. Of the others, only the
    nearest on each side is asked, which is enough in a valid list: it has only results between a call and its results::

        u0  c1  o2  r3          o2 is replaced: refused, since the group of c1 and r3 is on both sides
        u0  c1  a2  o3  a4  r5  o3 is replaced: allowed; the list was wrong before

    If any message may follow any other, only the place of such a result is checked.
    """
    grouping, place = columns.grouping, place_of(columns, ids)
    if not columns.format.judges_joins and place not in grouping.orphans:
        return None
    gone = set(ids)
    for step in (columns.visibility.before, columns.visibility.after):
        node: Node | None = place
        while node is not None and ((id := columns.group_at(node)) in gone or id in grouping.orphans):
            node = step(node)
        if node is None or node < 0:
            continue
        members = columns.ordinals(grouping.group_of[node])
        if members[0] < columns.anchor(place) < members[-1]:
            return "a replacement must not be written between the messages of a remaining group"
    return None


def _rewrite_problem(columns: Columns, edit: Rewrite) -> str | None:
    id, format = edit.group, columns.format
    if rule := rewrite_protection(columns, id):
        return rule
    before = [columns.at(ordinal, end=False) for ordinal in columns.shown_ordinals(id)]
    after = edit.messages
    if len(after) > len(before):
        return "the rewrite has more messages than its group"
    pairs = [*zip(before, after, strict=False)]
    if all(old is new for old, new in pairs):
        return "the rewrite changes nothing"
    if len(after) == len(before) and all(new is None for new in after):
        return "the rewrite removes its whole group; use Drop"
    problems = chain(starmap(_exchange_problem, pairs), (_new_problem(format, old, new) for old, new in pairs))
    rule = next((problem for problem in problems if problem is not None), None)
    current = columns.turn(id) == columns.grouping.turn
    return rule or format.rewrite_problem(before[: len(after)], after, current=current)


def _new_problem(format: MessageFormat, old: Message, new: Message | None) -> str | None:
    """Return the rule of the format that only the changed message breaks."""
    if new is None or new is old:
        return None
    if new.format is not format:
        return format.acceptable(new)
    problems = format.message_problems(new.raw)
    if not problems:
        return None
    known = Counter(problem.rule for problem in format.message_problems(old.raw))
    added = Counter(problem.rule for problem in problems) - known
    return next((f"{problem.message} [{problem.rule}]" for problem in problems if problem.rule in added), None)


def rewrite_protection(columns: Columns, id: int) -> str | None:
    """Return why no rewrite of a group is allowed; ``None`` if one may be. O(1)."""
    if (rule := _absence(columns, id)) is not None:
        return rule
    if columns.kind(id) is GroupKind.SUMMARY and (id < 0 or not columns.is_collapsed(id)):
        return "a summary must be replaced, not rewritten"
    if id == columns.grouping.calls.pending:
        return "a tool call must not be changed until its result arrives"
    if id in columns.pinned:
        return "pinned groups must not be changed"
    return None


def _absence(columns: Columns, id: int) -> str | None:
    if columns.is_included(id):
        return None
    return f"group {id} is not in the view" if columns.exists(id) else f"group {id} does not exist"


def _exchange_problem(old: Message, new: Message | None) -> str | None:
    if new is None:
        return None if only_reasoning(old) else "a rewrite may remove only messages that contain nothing but reasoning"
    places = {id(call.raw): place for place, call in enumerate(old.tool_calls()) if call.raw is not None}
    if (only_reasoning(new) and not only_reasoning(old)) or _structure(old) != _structure(new):
        return "a rewrite must keep roles, calls and results"
    if says_nothing(old) and not says_nothing(new):
        return "a rewrite must not add text to an empty message"
    if any(places.get(id(call.raw), place) != place for place, call in enumerate(new.tool_calls())):
        return "a rewrite must keep the order of calls"
    if (old.begins, old.resumes) != (new.begins, new.resumes):
        return "a rewrite must keep the calls that the provider runs itself"
    if message_id(new.raw) not in (None, message_id(old.raw)):
        return "a rewrite must keep the ids of messages"
    return None


def _structure(message: Message) -> tuple[str, list[tuple[str, str]], list[str]]:
    """Return what decides whether a message's neighbours are valid: its role, calls and results."""
    calls = [(call.id, call.name) for call in message.tool_calls()]
    return message.role, calls, [result.call_id for result in message.tool_results()]
