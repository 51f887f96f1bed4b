"""The journal's entries, the functions that apply one to the projection and undo it, and those that say which entries stay.

`undo` reverts exactly the changes of `perform`. Neither checks whether an edit is allowed: `rules` and `joins` do, and
`editing` calls them first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from ..formats import MessageFormat
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
        seen: How many source messages had been read when it was decided; ``None`` if the host changed them since, or if a
            saved state lacks the number.
        lost: Keys of messages that it may have been written from, and that the host has altered or removed since.
    """

    edit: Edit
    by: str
    turn: int
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    parts: tuple[Applied, ...] = ()
    seen: int | None = None
    lost: frozenset[str] = frozenset()

    @property
    def writes(self) -> bool:
        """Whether it may contain text of groups that it does not name."""
        edits = [each.edit for each in flat([self])]
        return any(isinstance(edit, Replace) or (isinstance(edit, Rewrite) and edit.read) for edit in edits)


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
    return Applied(edit, by, projection.grouping.turn, made, before, seen=len(projection.source))


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


def carried_over(
    journal: Iterable[Applied],
    *,
    unchanged: int,
    altered: Collection[int],
    gone: Callable[[], Mapping[int, str]],
    undone: list[Edit],
    summaries: Mapping[int, Sequence[Any]] | None = None,
    format: MessageFormat | None = None,
) -> list[Applied]:
    """Return the edits after the host changed messages: without rewrites of altered groups, and knowing what they lost.

    Args:
        journal: The edits.
        unchanged: The number of messages at the start that neither moved nor changed.
        altered: The groups of which a message changed.
        gone: Returns the key of each message that the host altered or removed, by its ordinal.
        undone: Gets the rewrites that do not stay.
        summaries: The host's messages in place of a summary, by its id.
        format: Reads these messages.
    """

    def after(applied: Applied) -> Applied | None:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            if edit.group not in altered:
                return applied
            undone.append(edit)
            return None
        written = summaries.get(applied.made) if summaries and applied.made is not None else None
        if isinstance(edit, Replace) and written and format:
            edit = attrs.evolve(edit, messages=[format.read(raw) for raw in written])
            return attrs.evolve(applied, edit=edit, seen=None)
        if not isinstance(edit, Together):
            return applied
        parts = [left for part in applied.parts if (left := after(part)) is not None]
        whole = Together(*[cast("Drop | Replace | Rewrite", part.edit) for part in parts], reason=edit.reason)
        seen = applied.seen if len(parts) == len(applied.parts) else None
        return attrs.evolve(applied, edit=whole, parts=tuple(parts), seen=seen) if parts else None

    kept = [left for applied in journal if (left := after(applied)) is not None]
    keys = gone() if any(each.writes for each in kept) else dict[int, str]()
    losing = [attrs.evolve(each, lost=each.lost | _read_of(each, keys)) if keys and each.writes else each for each in kept]
    return [each if (each.seen or 0) <= unchanged else attrs.evolve(each, seen=None) for each in losing]


def _read_of(applied: Applied, keys: Mapping[int, str]) -> set[str]:
    return {key for ordinal, key in keys.items() if applied.seen is None or ordinal < applied.seen}
