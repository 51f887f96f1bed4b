"""Doing and undoing an edit, side by side: whatever `perform` changes, `undo` changes back.

Nothing here asks whether an edit is allowed; that is `laws`, and `MessageIndex.apply` asks it first.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from .edits import Drop, Edit, Replace, Restore, Rewrite
from .making import maker
from .marks import read_mark
from .messages import Message
from .projection import Projection, Shown

__all__ = ["Applied", "Measure", "inserted", "perform", "undo"]

Measure = Callable[[Message], tuple[int, int]]
"""Tokens and bytes of one message."""


@attrs.frozen(weakref_slot=False)
class Applied:
    """An edit in the journal.

    Args:
        edit: The edit.
        by: The strategy that asked for it; empty outside a run.
        turn: The turn it happened in.
        made: The id of the group it inserted, for a `Replace`.
        before: What the view showed at each ordinal it rewrote.
        parts: The parts of a `Together`, in order.
    """

    edit: Edit
    by: str
    turn: int
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    parts: tuple[Applied, ...] = ()


_applied = maker(Applied)


def inserted(applied: Applied) -> list[int]:
    """The ids of the groups an edit inserted, its parts included, in order."""
    own = [] if applied.made is None else [applied.made]
    return own + [id for part in applied.parts for id in inserted(part)]


def perform(projection: Projection, edit: Drop | Replace | Rewrite | Restore, measure: Measure, by: str = "") -> Applied:
    """Apply an edit that is known to be allowed; O(the groups it names).

    A `Together` comes here part by part, for each of its parts is judged when those before it are done.
    """
    turn = projection.grouping.turn
    if isinstance(edit, Drop):
        for id in edit.groups:
            projection.exclude(projection.by_id[id])
        return _applied(edit, by, turn)
    if isinstance(edit, Replace):
        return _applied(edit, by, turn, made=_replace(projection, edit, measure, by))
    if isinstance(edit, Rewrite):
        return _applied(edit, by, turn, before=_rewrite(projection, edit, measure))
    for id in edit.groups:
        projection.include(projection.by_id[id])
    return _applied(edit, by, turn)


def _replace(projection: Projection, edit: Replace, measure: Measure, by: str) -> int:
    replaced = [projection.by_id[id] for id in edit.groups]
    sizes = [measure(message) for message in edit.messages]  # before anything changes: a counter may fail
    for record in replaced:
        projection.exclude(record)
    total = (sum(tokens for tokens, _ in sizes), sum(size for _, size in sizes))
    anchor = max(record.anchor for record in replaced)
    record = projection.insert(edit.messages, total, anchor, edit.groups)
    mark = read_mark(edit.messages[0])
    record.made_by = (by or None) if mark is None else mark.by
    return record.id


def _rewrite(projection: Projection, edit: Rewrite, measure: Measure) -> tuple[tuple[int, Shown], ...]:
    sizes = [(0, 0) if message is None else measure(message) for message in edit.messages]
    ordinals = projection.visible_ordinals(projection.by_id[edit.group])
    before: list[tuple[int, Shown]] = []
    for ordinal, message, (tokens, size) in zip(ordinals, edit.messages, sizes, strict=False):
        before.append((ordinal, projection.show(ordinal, (message, tokens, size))))
    return tuple(before)


def undo(projection: Projection, applied: Applied) -> None:
    """Take back the newest edit: the exact inverse of `perform`."""
    edit = applied.edit
    if isinstance(edit, Drop):
        for id in reversed(edit.groups):
            projection.include(projection.by_id[id])
    elif isinstance(edit, Replace):
        assert applied.made is not None
        projection.withdraw(projection.by_id[applied.made])
        for id in reversed(edit.groups):
            projection.include(projection.by_id[id])
    elif isinstance(edit, Rewrite):
        for ordinal, shown in reversed(applied.before):
            projection.show(ordinal, shown)
    elif isinstance(edit, Restore):
        for id in reversed(edit.groups):
            projection.exclude(projection.by_id[id])
    else:
        for part in reversed(applied.parts):
            undo(projection, part)
