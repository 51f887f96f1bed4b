"""Editing: apply an edit if the rules allow it, undo it exactly, and repeat or undo edits after the source changed.

`apply` asks `rules` before and `joins` after it has changed the view; an edit that it applies is in the projection's journal.
Only `MessageIndex.apply_all` drops groups without it, where neither question is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from . import joins
from .edits import Drop, Edit, Replace, Restore, Rewrite, Together, named, renamed
from .journal import Applied, Shown, inserted
from .marks import COLLAPSED_BY, read_mark
from .projection import Projection
from .rules import refusal

_BY_NEIGHBOURS: Final = "the provider would reject the rest of the view"


@attrs.frozen
class Broken:
    """The rule that an edit would break.

    Args:
        rule: The rule, in words.
        by_neighbours: Whether only new neighbours break it: later drops may remove one of them.
    """

    rule: str
    by_neighbours: bool = False


def apply(projection: Projection, edit: Edit, by: str) -> Broken | None:
    """Apply an edit; if it would break a rule, change nothing and return the rule. O(the groups it names)."""
    before = projection.included.tokens
    done = _attempt(projection, edit, by)
    if isinstance(done, str):
        return Broken(done)
    grown = projection.included.tokens - before
    if grown > 0:
        undo(projection, done)
        return Broken(f"the edit would make the view {grown} tokens longer")
    bad = joins.bad_joins(projection, touched(projection, done)) if projection.format.judges_joins else []
    if bad:
        undo(projection, done)
        if new := joins.new_joins(projection, bad):
            needed = " or ".join(f"group {id}" for id in sorted(joins.groups_at(projection, new[0])))
            return Broken(f"{_BY_NEIGHBOURS} [{new[0].rule}]: {needed} would have to be dropped, too", by_neighbours=True)
        done = _attempt(projection, edit, by)  # the same joins were bad before the edit, so it is allowed
        assert isinstance(done, Applied)
    projection.journal.append(done)
    return None


def _attempt(projection: Projection, edit: Edit, by: str, seen: int | None = None) -> Applied | str:
    """Apply an edit regardless of joins, or return the rule that it breaks; a `Together` is applied whole or not at all."""
    rule = refusal(projection, edit, by, seen=seen)
    if rule is not None:
        return rule
    if not isinstance(edit, Together):
        return perform(projection, edit, by)
    parts: list[Applied] = []
    try:
        for part in edit.edits:
            done = _attempt(projection, part, by, seen)
            if isinstance(done, str):
                return done
            parts.append(done)
        whole = Applied(edit, by, projection.grouping.turn, parts=tuple(parts), seen=len(projection.source))
        parts.clear()
        return whole
    finally:
        for earlier in reversed(parts):
            undo(projection, earlier)


def perform(projection: Projection, edit: Drop | Replace | Rewrite | Restore, by: str = "") -> Applied:
    """Apply an edit that is known to be allowed; O(the groups it names)."""
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    if isinstance(edit, Drop):
        projection.exclude(edit.groups)
    elif isinstance(edit, Restore):
        projection.include(edit.groups)
    elif isinstance(edit, Replace):
        sizes = [projection.measure(message) for message in edit.messages]  # before anything changes: a counter may fail
        anchor = max(map(projection.anchor, edit.groups))
        projection.exclude(edit.groups)
        mark = read_mark(edit.messages[0])
        total = (sum(tokens for tokens, _ in sizes), sum(size for _, size in sizes))
        made = projection.insert(edit.messages, total, anchor, edit.groups, (by or None) if mark is None else mark.by)
    else:
        sizes = [(0, 0) if message is None else projection.measure(message) for message in edit.messages]
        shown = zip(projection.shown_ordinals(edit.group), edit.messages, sizes, strict=False)
        before = tuple([(ordinal, projection.show(ordinal, (message, *size))) for ordinal, message, size in shown])
    return Applied(edit, by, projection.grouping.turn, made, before, seen=len(projection.source))


def undo(projection: Projection, applied: Applied) -> None:
    """Undo the newest edit: the exact inverse of the changes that applied it."""
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


def rollback(projection: Projection, checkpoint: int) -> list[Applied]:
    """Undo every edit since a position in the journal, and return them."""
    undone = projection.journal[checkpoint:]
    while len(projection.journal) > checkpoint:
        undo(projection, projection.journal.pop())
    return undone


def touched(projection: Projection, *journal: Applied) -> list[int]:
    """Return the places at which edits changed the view: ordinals, and ids of inserted groups, in no order."""
    places: list[int] = []
    for applied in journal:
        edit = applied.edit
        if isinstance(edit, Together):
            places += touched(projection, *applied.parts)
        elif isinstance(edit, Rewrite):
            places += [ordinal for ordinal, _ in applied.before]
        else:
            places += [] if applied.made is None else [applied.made]
            for id in edit.groups:
                places += [id] if id < 0 else projection.ordinals(id)
    return places


# -------------------------------------------------------------------- after the source changed


def restore(projection: Projection, id: int) -> None:
    """Put back a hidden group that a new result joins; remove the collapsed line that replaced only this group, if any."""
    journal, made = projection.journal, projection.inserted
    journal.append(perform(projection, Restore((id,), reason="a late result came for its call")))
    for line in projection.visibility.shown_at(id):
        if made[line].made_by == COLLAPSED_BY and made[line].replaces == (id,):
            gone = perform(projection, Drop((line,), reason="the tool call that this line replaced was restored"))
            journal.append(attrs.evolve(gone, turn=journal[-2].turn))


def restore_words(projection: Projection) -> None:
    """Put back the user's last words, if an edit hid their group before they came with a late result. O(1)."""
    for id in (projection.grouping.last_user, projection.grouping.last_words):
        if id is not None and not projection.is_included(id):
            restore(projection, id)


def reapply(
    projection: Projection, journal: Iterable[Applied], groups: Mapping[int, int] | None = None
) -> tuple[list[Applied], dict[int, int]]:
    """Repeat journaled edits, as far as they are allowed now; `settle` checks the joins afterwards.

    Args:
        projection: The view.
        journal: The edits.
        groups: The new id of each source group that an edit may name; ``None`` if no id changed.

    Returns:
        The edits that are not allowed, and the new ids of groups, inserted ones included.
    """
    left_out: list[Applied] = []
    ids: dict[int, int] = dict(groups or {})
    for applied in journal:
        gone = groups is not None and any(id not in ids for id in named(applied.edit))
        edit = None if gone else renamed(applied.edit, ids)
        again = None if edit is None else _repeated(projection, edit, applied)
        if again is None:
            left_out.append(applied)
            continue
        ids.update(zip(inserted(applied), inserted(again), strict=False))
        turn = min(applied.turn, again.turn)
        projection.journal.append(attrs.evolve(again, turn=turn, seen=applied.seen, lost=applied.lost))
    restore_words(projection)
    return left_out, ids


def _repeated(projection: Projection, edit: Edit, known: Applied) -> Applied | None:
    """Apply an edit again if it is allowed."""
    if isinstance(edit, Restore):
        is_gone = all(projection.exists(id) and not projection.is_included(id) for id in edit.groups)
        return perform(projection, edit, known.by) if is_gone else None
    done = _attempt(projection, edit, known.by, known.seen)
    return done if isinstance(done, Applied) else None


def settle(projection: Projection, places: Iterable[int]) -> list[Edit]:
    """Undo edits, newest first, until neighbours at these places break only rules that they also break in the source.

    Called after messages were added, changed or restored: new neighbours can make an earlier edit invalid.

    Returns:
        The edits that were undone.
    """
    undone: list[Edit] = []
    if not projection.format.judges_joins:
        return undone
    known = list(places)
    while (place := _newest_wrong(projection, known)) is not None:
        changed = [*known, *touched(projection, *projection.journal)]
        journal = rollback(projection, 0)
        undone.append(journal.pop(place).edit)
        undone += edits_of(reapply(projection, journal)[0])
        known = [each for each in changed if each >= 0]  # the summaries have new ids
        known += touched(projection, *projection.journal)
    return undone


def edits_of(journal: Iterable[Applied]) -> list[Edit]:
    """Return the edits of a journal that strategies made."""
    return [applied.edit for applied in journal if not isinstance(applied.edit, Restore)]


def _newest_wrong(projection: Projection, places: Iterable[int]) -> int | None:
    """Return the position in the journal of the newest edit that makes neighbours at these places wrong."""
    wrong = joins.wrong_joins(projection, places)
    return next((place for bad in wrong if (place := _newest_at(projection, bad)) is not None), None)


def _newest_at(projection: Projection, bad: joins.BadJoin) -> int | None:
    """Return the position in the journal of the newest edit that affects these two neighbours."""
    anchor, before = projection.anchor, bad.before
    if joins.message_before(projection, before) is None:
        before = None  # only instructions are before it: to the provider, it is the first message
    start = 0 if before is None else anchor(before)
    end = len(projection.source) if bad.after is None else anchor(bad.after)
    for place, applied in reversed([*enumerate(projection.journal)]):
        if isinstance(applied.edit, Restore):
            continue
        if any(start <= anchor(each) <= end for each in touched(projection, applied)):
            return place
    return None
