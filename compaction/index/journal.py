"""The journal's entries, and the two functions that apply an edit to the projection and undo it.

`undo` reverts exactly the changes of `perform`. Neither checks whether an edit is allowed: `rules` and `joins` do, and
`editing` calls them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from ..messages import Message
from .edits import Drop, Edit, Replace, Restore, Rewrite, Together
from .marks import read_mark
from .projection import Projection, Shown

Measure = Callable[[Message], tuple[int, int]]
"""Tokens and bytes of one message."""


@attrs.define(weakref_slot=False)
class Applied:
    """An edit in the journal. Never modified, but not frozen, because creating a frozen value takes three times as long.

    Args:
        edit: The edit.
        by: The strategy that made it; empty outside a run.
        turn: The turn in which it was applied.
        made: The id of the group it inserted, for a `Replace`.
        before: What the view showed before at each ordinal that a `Rewrite` changed.
        parts: The parts of a `Together`, in order.
        known: How many source messages had been read when it was decided; ``None`` if the host changed them since, or if a
            saved state lacks the number.
    """

    edit: Edit
    by: str
    turn: int
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    parts: tuple[Applied, ...] = ()
    known: int | None = None


def flat(journal: Iterable[Applied]) -> Iterator[Applied]:
    """Yield every edit of a journal, each followed by its parts."""
    for applied in journal:
        yield applied
        yield from flat(applied.parts)


def inserted(applied: Applied) -> list[int]:
    """Return the ids of the groups that an edit and its parts inserted, in order."""
    own = [] if applied.made is None else [applied.made]
    return own + [id for part in applied.parts for id in inserted(part)]


def perform(projection: Projection, edit: Drop | Replace | Rewrite | Restore, measure: Measure, by: str = "") -> Applied:
    """Apply an edit that is known to be allowed; O(the groups it names).

    A `Together` is applied part by part, since each part is checked after those before it were applied.
    """
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    if isinstance(edit, Drop):
        projection.exclude(edit.groups)
    elif isinstance(edit, Replace):
        made = _replace(projection, edit, measure, by)
    elif isinstance(edit, Rewrite):
        before = _rewrite(projection, edit, measure)
    else:
        projection.include(edit.groups)
    return Applied(edit, by, projection.grouping.turn, made, before, known=len(projection.source))


def _replace(projection: Projection, edit: Replace, measure: Measure, by: str) -> int:
    sizes = [measure(message) for message in edit.messages]  # before anything changes: a counter may fail
    anchor = max(map(projection.anchor, edit.groups))
    projection.exclude(edit.groups)
    mark = read_mark(edit.messages[0])
    total = (sum(tokens for tokens, _ in sizes), sum(size for _, size in sizes))
    return projection.insert(edit.messages, total, anchor, edit.groups, (by or None) if mark is None else mark.by)


def _rewrite(projection: Projection, edit: Rewrite, measure: Measure) -> tuple[tuple[int, Shown], ...]:
    sizes = [(0, 0) if message is None else measure(message) for message in edit.messages]
    ordinals = visible_ordinals(projection, edit.group)
    shown = zip(ordinals, edit.messages, sizes, strict=False)
    return tuple([(ordinal, projection.show(ordinal, (message, *size))) for ordinal, message, size in shown])


def visible_ordinals(projection: Projection, id: int) -> list[int]:
    """Return the ordinals of a source group without the messages that a rewrite removed."""
    return [ordinal for ordinal in projection.ordinals(id) if projection.shows(ordinal)]


def undo(projection: Projection, applied: Applied) -> None:
    """Undo the newest edit: the exact inverse of `perform`."""
    edit = applied.edit
    if isinstance(edit, Together):
        for part in reversed(applied.parts):
            undo(projection, part)
    elif isinstance(edit, Rewrite):
        for ordinal, shown in reversed(applied.before):
            projection.show(ordinal, shown)
    else:
        if applied.made is not None:
            projection.withdraw(applied.made)
        revert = projection.exclude if isinstance(edit, Restore) else projection.include
        revert(edit.groups)


def touched(projection: Projection, applied: Applied) -> list[int]:
    """Return the places at which an edit changed the view: ordinals, and ids of inserted groups, in no order."""
    edit = applied.edit
    if isinstance(edit, Together):
        return [place for part in applied.parts for place in touched(projection, part)]
    if isinstance(edit, Rewrite):
        return [ordinal for ordinal, _ in applied.before]
    places = [] if applied.made is None else [applied.made]
    for id in edit.groups:
        places += [id] if id < 0 else projection.ordinals(id)
    return places
