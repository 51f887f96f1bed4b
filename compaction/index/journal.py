"""Applying and undoing edits, side by side: whatever `perform` changes, `undo` changes back.

Nothing here asks whether an edit is allowed. `rules` and `joins` say so, and `MessageIndex.apply` asks them.
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
    """An edit in the journal; nobody changes it. Not frozen, as making a frozen value takes three times as long.

    Args:
        edit: The edit.
        by: The strategy that asked for it; empty outside a run.
        turn: The turn it happened in.
        made: The id of the group it inserted, for a `Replace`.
        before: What the view showed at each ordinal it rewrote.
        parts: The parts of a `Together`, in order.
        known: How many source messages had been read when it was decided; ``None`` if the host changed them since, or if a
            saved state does not say.
    """

    edit: Edit
    by: str
    turn: int
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    parts: tuple[Applied, ...] = ()
    known: int | None = None


def flat(journal: Iterable[Applied]) -> Iterator[Applied]:
    """Every edit of a journal, and the parts of each after it."""
    for applied in journal:
        yield applied
        yield from flat(applied.parts)


def inserted(applied: Applied) -> list[int]:
    """The ids of the groups an edit inserted, its parts included, in order."""
    own = [] if applied.made is None else [applied.made]
    return own + [id for part in applied.parts for id in inserted(part)]


def perform(projection: Projection, edit: Drop | Replace | Rewrite | Restore, measure: Measure, by: str = "") -> Applied:
    """Apply an edit that is known to be allowed; O(the groups it names).

    A `Together` comes here part by part, as each of its parts is judged after those before it were applied.
    """
    turn, known = projection.grouping.turn, len(projection.source)
    if isinstance(edit, Drop):
        for id in edit.groups:
            projection.exclude(id)
        return Applied(edit, by, turn, known=known)
    if isinstance(edit, Replace):
        return Applied(edit, by, turn, made=_replace(projection, edit, measure, by), known=known)
    if isinstance(edit, Rewrite):
        return Applied(edit, by, turn, before=_rewrite(projection, edit, measure), known=known)
    for id in edit.groups:
        projection.include(id)
    return Applied(edit, by, turn, known=known)


def _replace(projection: Projection, edit: Replace, measure: Measure, by: str) -> int:
    sizes = [measure(message) for message in edit.messages]  # before anything changes: a counter may fail
    anchor = max(map(projection.anchor, edit.groups))
    for id in edit.groups:
        projection.exclude(id)
    mark = read_mark(edit.messages[0])
    total = (sum(tokens for tokens, _ in sizes), sum(size for _, size in sizes))
    return projection.insert(edit.messages, total, anchor, edit.groups, (by or None) if mark is None else mark.by)


def _rewrite(projection: Projection, edit: Rewrite, measure: Measure) -> tuple[tuple[int, Shown], ...]:
    sizes = [(0, 0) if message is None else measure(message) for message in edit.messages]
    ordinals = visible_ordinals(projection, edit.group)
    before: list[tuple[int, Shown]] = []
    for ordinal, message, (tokens, size) in zip(ordinals, edit.messages, sizes, strict=False):
        before.append((ordinal, projection.show(ordinal, (message, tokens, size))))
    return tuple(before)


def visible_ordinals(projection: Projection, id: int) -> list[int]:
    """The ordinals of a source group at which the view shows a message while the group is included."""
    return [ordinal for ordinal in projection.ordinals(id) if projection.shows(ordinal)]


def undo(projection: Projection, applied: Applied) -> None:
    """Undo the newest edit: the exact inverse of `perform`."""
    edit = applied.edit
    if isinstance(edit, Drop):
        for id in reversed(edit.groups):
            projection.include(id)
    elif isinstance(edit, Replace):
        assert applied.made is not None
        projection.withdraw(applied.made)
        for id in reversed(edit.groups):
            projection.include(id)
    elif isinstance(edit, Rewrite):
        for ordinal, shown in reversed(applied.before):
            projection.show(ordinal, shown)
    elif isinstance(edit, Restore):
        for id in reversed(edit.groups):
            projection.exclude(id)
    else:
        for part in reversed(applied.parts):
            undo(projection, part)


def touched(projection: Projection, applied: Applied) -> list[int]:
    """The places at which an edit changed the view: ordinals, and ids of the groups it inserted or hid, in no order."""
    edit = applied.edit
    if isinstance(edit, Together):
        return [place for part in applied.parts for place in touched(projection, part)]
    if isinstance(edit, Rewrite):
        return [ordinal for ordinal, _ in applied.before]
    places = [] if applied.made is None else [applied.made]
    for id in edit.groups:
        places += [id] if id < 0 else projection.ordinals(id)
    return places
