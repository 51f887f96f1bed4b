"""The rules that every edit must obey, whichever strategy made it.

They keep a conversation valid even if a strategy is wrong. `editing` checks each edit here before applying it, and then checks
its neighbours with `joins`. A refused edit is recorded with the rule that it would have broken, and the strategy continues.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import attrs

from ..errors import NoProgress, StrategyError
from ..formats import MessageFormat, fields_of
from ..messages import MediaPart, Message, ReasoningPart, TextPart
from .edits import Drop, Edit, Refusal, Replace, Restore, Rewrite, Together, signature
from .groups import GroupKind, only_reasoning, says_nothing
from .projection import Node, Projection

_USER: Final = "the last user message must be kept"
_REASONING: Final = "a replacement must not contain reasoning"
_HISTORY: Final = "the newest summary that the provider itself wrote must be kept"


def refusal(projection: Projection, edit: Edit, by: str, *, seen: int | None = None) -> str | None:
    """Return the rule that an edit of this strategy would break; ``None`` if it is allowed. O(named groups).

    ``seen`` is the number of messages that had been read when a journaled edit was decided. It may remove a group that only
    later messages protect: the journal, or `editing.restore_words`, brings that group back.

    `editing` checks two more rules after applying the edit: the view's tokens must not grow, and the new neighbours must be
    valid. It calls this function for each part of a `Together`, and checks these two rules for the whole.

    Raises:
        StrategyError: If it is not an edit.
    """
    if isinstance(edit, Drop):
        return removal(projection, edit.groups, allow_system=edit.allow_system, seen=seen)
    if isinstance(edit, Replace):
        newer = any(message.holds_history for message in edit.messages)
        rule = removal(projection, edit.groups, by=by, newer=newer, seen=seen) or _replacement(projection.format, edit.messages)
        if rule is None and newer:
            rule = _repetition(projection, edit)
        return rule or _within(projection, edit.groups)
    if isinstance(edit, Rewrite):
        return _rewriting(projection, edit)
    if isinstance(edit, Restore):
        return "only the index may restore groups, when a late result arrives"
    if not isinstance(edit, Together):
        raise StrategyError(f"{edit!r} is not an edit: apply a Drop, Replace, Rewrite or Together")
    return None if edit.edits else "the edit names no groups"


def removable(projection: Projection, by: str = "") -> list[int]:
    """Return the groups of the view that `protection` does not protect, in order. O(groups).

    ``by`` names the strategy. It may remove its own summary, even if that is the last message with the user role, or if the
    provider wrote it.
    """
    grouping, kept = projection.grouping, {*projection.pinned, *_newest(projection, by)}
    end = len(projection.source) if grouping.pending is None else grouping.pending
    kinds, system, outdated = grouping.kinds, GroupKind.SYSTEM, grouping.outdated
    return [  # calling `protection` for each would make a truncation 50 % slower
        id
        for id in projection.ids()
        if id not in kept
        and not (id < 0 and _is_newest_history(projection, id) and projection.made_by(id) != by)
        and (projection.anchor(id) <= end if id < 0 else id < end and (kinds[id] is not system or id in outdated))
    ]


def removal(
    projection: Projection,
    ids: Sequence[int],
    *,
    allow_system: bool = False,
    by: str = "",
    newer: bool = False,
    seen: int | None = None,
) -> str | None:
    """Return why these groups may not all be removed.

    Args:
        projection: The view.
        ids: The groups.
        allow_system: Whether system groups may be removed.
        by: The strategy, if a summary replaces them.
        newer: Whether that summary is one that the provider wrote: an older one may then go.
        seen: As for `refusal`.
    """
    if not ids:
        return "the edit names no groups"
    if len(ids) > 1 and len(set(ids)) < len(ids):
        return "the edit names a group twice"
    for id in ids:
        rule = protection(projection, id, allow_system=allow_system, by=by, newer=newer)
        if rule is not None and not (seen is not None and _is_removed_before(projection, id, seen, allow_system=allow_system)):
            return rule
    if len(ids) >= projection.included.groups:
        return "the edit would remove every group of the view"
    return None


def protection(projection: Projection, id: int, *, allow_system: bool = False, by: str = "", newer: bool = False) -> str | None:
    """Return why a group may not be removed, ignoring its neighbours, or ``None``; arguments as for `removal`. O(1)."""
    if not projection.is_included(id):
        return f"group {id} is not in the view" if projection.exists(id) else f"group {id} does not exist"
    grouping = projection.grouping
    if id >= 0 and not allow_system and grouping.kinds[id] is GroupKind.SYSTEM and id not in grouping.outdated:
        return "system messages must be kept"
    if id in projection.pinned:
        return "pinned groups must be kept"
    pending = grouping.pending
    if pending is not None and id == pending:
        return "a tool call must be kept until its result arrives"
    if pending is not None and projection.anchor(id) > pending:
        return "groups after an unanswered tool call must be kept until its result arrives"
    if id < 0:
        return _HISTORY if not newer and _is_newest_history(projection, id) else None
    return _newest(projection, by, newer=newer).get(id)


def _is_removed_before(projection: Projection, id: int, seen: int, *, allow_system: bool) -> bool:
    """Whether a group has messages that came after so many, and is protected by nothing that was known before."""
    if id < 0 or not projection.is_included(id) or id in projection.pinned or projection.ordinals(id)[-1] < seen:
        return False
    return allow_system or projection.grouping.kinds[id] is not GroupKind.SYSTEM


def _newest(projection: Projection, by: str, *, newer: bool = False) -> dict[int | None, str]:
    """Return the groups of the source that stay because each is the newest of its kind, with the reason (see `Grouping`)."""
    grouping = projection.grouping
    return {
        grouping.last_marked_of_others(by): "the last user message must be kept, even if it begins with a summary mark",
        grouping.last_words: _USER,
        grouping.last_user: _USER,
        None if newer else grouping.history: _HISTORY,
        grouping.newest: "the newest group must be kept",
    }


def _is_newest_history(projection: Projection, id: int) -> bool:
    """Return whether an inserted group is a summary of the provider, and the host has no newer one."""
    group, history = projection.inserted[id], projection.grouping.history
    return group.messages[0].holds_history and (history is None or history < group.anchor)


def _repetition(projection: Projection, edit: Replace) -> str | None:
    """Return the rule against a provider's summary that the conversation already has; O(messages)."""
    sources = [projection.read(ordinal) for ordinal in range(len(projection.source))]
    inserted = [each.messages for each in projection.inserted.values() if each.shown and each.id not in edit.groups]
    known = [each for each in chain(sources, *inserted) if each.holds_history]
    for message in filter(operator.attrgetter("holds_history"), edit.messages):
        id = _message_id(message)
        if any(each.raw is message.raw or each.raw == message.raw or (id and _message_id(each) == id) for each in known):
            return "a replacement must not repeat a summary of the provider that the conversation has"
    return None


def _replacement(format: MessageFormat, messages: Sequence[Message]) -> str | None:
    """Return why these messages cannot replace others. One that the provider wrote may have an id, and parts of its own."""
    ours = [message for message in messages if not message.holds_history]
    own_parts = [part for message in ours for part in message.parts]
    rule = _first(
        (not 1 <= len(messages) <= 2, "a replacement must be one message, or two if the format requires alternating roles"),
        (any(_structure(message)[1] for message in messages), "a replacement must not contain tool calls or results"),
        (
            not all(isinstance(part, TextPart | MediaPart) for part in own_parts),
            "a replacement must contain only text and media",
        ),
        (any(isinstance(part, ReasoningPart) for message in messages for part in message.parts), _REASONING),
        (
            any(map(_message_id, ours)),
            "a replacement must not have an id, which would name a message of the host or the provider",
        ),
    )
    return rule or next((problem for message in messages if (problem := format.acceptable(message)) is not None), None)


def _first(*rules: tuple[bool, str]) -> str | None:
    """Return the first rule that is broken."""
    return next((rule for is_broken, rule in rules if is_broken), None)


def _within(projection: Projection, ids: Sequence[int]) -> str | None:
    """Return the rule against a replacement between the messages of a remaining group, if it would be broken.

    If any message may follow any other, the messages of a group may be apart, except a call and its results.
    """
    grouping, last = projection.grouping, max(ids, key=projection.anchor)
    if not projection.format.judges_joins and last not in grouping.orphans:
        return None
    gone = set(ids)
    for step in (projection.visibility.before, projection.visibility.after):
        node: Node | None = last
        while node is not None and ((id := node if node < 0 else grouping.group_of[node]) in gone or id in grouping.orphans):
            node = step(node)
        if node is None or node < 0:
            continue
        members = projection.ordinals(grouping.group_of[node])
        if members[0] < projection.anchor(last) < members[-1]:
            return "a replacement must not be written between the messages of a remaining group"
    return None


def _rewriting(projection: Projection, edit: Rewrite) -> str | None:
    """Return the rule that this rewrite would break; ``None`` if it is allowed."""
    id, format = edit.group, projection.format
    if rule := rewrite_protection(projection, id):
        return rule
    before = [projection.at(ordinal, end=False) for ordinal in projection.shown_ordinals(id)]
    if len(edit.messages) > len(before):
        return "the rewrite has more messages than its group"
    part = before[: len(edit.messages)]
    if rule := _same_structure(part, edit.messages, whole=len(edit.messages) == len(before)):
        return rule
    for old, new in zip(part, edit.messages, strict=True):
        if new is not None and new is not old and (problem := _worse(format, old, new)) is not None:
            return problem
    current = projection.turn(id) == projection.grouping.turn
    return format.rewrite_problem(part, edit.messages, current=current)


def _worse(format: MessageFormat, old: Message, new: Message) -> str | None:
    """Return the rule of the format that only the changed message breaks."""
    if new.format is not format:
        return format.acceptable(new)
    problems = format.message_problems(new.raw)
    if not problems and says_nothing(new) and not says_nothing(old):  # some formats accept an empty one only at the end
        problems = format.message_problems(new.raw, last=False)
    if not problems:
        return None
    known = Counter(problem.rule for problem in format.message_problems(old.raw))
    added = Counter(problem.rule for problem in problems) - known
    return next((f"{problem.message} [{problem.rule}]" for problem in problems if problem.rule in added), None)


def rewrite_protection(projection: Projection, id: int) -> str | None:
    """Return why no rewrite of a group is allowed; ``None`` if one may be. O(1)."""
    if not projection.exists(id):
        return f"group {id} does not exist"
    if not projection.is_included(id):
        return f"group {id} is not in the view"
    if projection.kind(id) is GroupKind.SUMMARY and (id < 0 or not projection.is_collapsed(id)):
        return "a summary must be replaced, not rewritten"
    if id == projection.grouping.pending:
        return "a tool call must not be changed until its result arrives"
    if id in projection.pinned:
        return "pinned groups must not be changed"
    return None


def _same_structure(before: Sequence[Message], after: Sequence[Message | None], *, whole: bool) -> str | None:
    """Return why the new messages cannot replace the old ones in their group."""
    if all(old is new for old, new in zip(before, after, strict=True)):
        return "the rewrite changes nothing"
    if whole and all(new is None for new in after):
        return "the rewrite removes its whole group; use Drop"
    for old, new in zip(before, after, strict=True):
        if new is None and not only_reasoning(old):
            return "a rewrite may remove only messages that contain nothing but reasoning"
        if new is not None and (rule := _exchanged(old, new)) is not None:
            return rule
    return None


def _exchanged(old: Message, new: Message) -> str | None:
    """Return why a message cannot replace another in its group."""
    places = {id(call.raw): place for place, call in enumerate(old.tool_calls()) if call.raw is not None}
    moved = [place for place, call in enumerate(new.tool_calls()) if places.get(id(call.raw), place) != place]
    loses_words = only_reasoning(new) and not only_reasoning(old)
    return _first(
        (loses_words or _structure(old) != _structure(new), "a rewrite must keep roles, calls and results"),
        (says_nothing(old) and not says_nothing(new), "a rewrite must not add text to an empty message"),
        (bool(moved), "a rewrite must keep the order of calls"),
        ((old.begins, old.resumes) != (new.begins, new.resumes), "a rewrite must keep the calls that the provider runs itself"),
        (_message_id(new) not in (None, _message_id(old)), "a rewrite must keep the ids of messages"),
    )


def _message_id(message: Message) -> object:
    """Return the id that a provider or a host gave a message; ``None`` without one."""
    return (fields_of(message.raw) or {}).get("id") or None


def _structure(message: Message) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what decides whether a message's neighbours are valid: its role, calls and results."""
    links = [("call", call.id + "\n" + call.name) for call in message.tool_calls()]
    links += [("result", result.call_id) for result in message.tool_results()]
    return message.role, tuple(links)


@attrs.define(eq=False)
class Refusals:
    """The refusals of a run. Holds state.

    Attributes:
        noted: The refusals, in order.
        waiting: The drops of the running strategy, each with its name, that only their neighbours forbid.
    """

    noted: list[Refusal] = attrs.Factory(list[Refusal])
    waiting: list[tuple[Drop, str]] = attrs.Factory(list[tuple[Drop, str]])
    _since_change: set[object] = attrs.Factory(set[object])

    def note(self, edit: Edit, rule: str, by: str) -> None:
        """Record that an edit would have broken a rule. O(named groups).

        Raises:
            NoProgress: If the same strategy repeats a refused edit although nothing has changed.
        """
        self.noted.append(Refusal(edit, rule, by))
        asked = signature(edit)
        if asked in self._since_change:
            raise NoProgress(
                f"{by or 'a strategy'} repeated the refused {edit}: {rule}; do not repeat an edit that was refused"
            )
        self._since_change.add(asked)

    def forget(self, edits: Iterable[Edit]) -> None:
        """Remove the refusals of edits whose groups were removed later."""
        gone = set(map(id, edits))
        self.noted = [each for each in self.noted if id(each.edit) not in gone]

    def changed(self) -> None:
        """Allow refused edits to be tried again, because the view changed or another strategy begins."""
        self._since_change.clear()
