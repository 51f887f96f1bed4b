"""Editing: apply an edit if the rules allow it, undo it exactly, and repeat or undo edits after the source changed.

`apply` asks `rules` before and `joins` after it has changed the view; an edit that it applies is in the journal. Only
`apply_all` drops groups without it, where neither question is needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple, cast

import attrs

from ..errors import NoProgress
from . import cuts, joins
from .columns import Columns
from .edits import Applied, Drop, Edit, Refusal, Replace, Restore, Rewrite, Shown, Together, named, renamed, signature
from .marks import COLLAPSED_BY, read_mark
from .replacements import place_of
from .rules import refusal, removable
from .visibility import Node


class Broken(NamedTuple):
    """The rule that an edit would break."""

    rule: str
    by_neighbours: bool = False  # whether only new neighbours break it: later drops may remove one of them


def apply(columns: Columns, edit: Edit, by: str) -> Broken | None:
    """Apply an edit; if it would break a rule, change nothing and return the rule. O(the groups it names).

    New neighbours may break rules that were broken there before. That can only be seen in the view without the edit, so it is
    undone for the comparison, and then applied again.
    """
    before = columns.included.tokens
    done = _attempt(columns, edit, by)
    if isinstance(done, str):
        return Broken(done)
    grown = columns.included.tokens - before
    if grown > 0:
        undo(columns, done)
        return Broken(f"the edit would make the view {grown} tokens longer")
    bad = joins.bad_joins(columns, touched(columns, done)) if columns.format.judges_joins else []
    if bad:
        undo(columns, done)
        if new := joins.new_joins(columns, bad):
            needed = " or ".join(f"group {id}" for id in sorted(joins.groups_at(columns, new[0])))
            rule = f"the provider would reject the rest of the view [{new[0].rule}]: {needed} would have to be dropped, too"
            return Broken(rule, by_neighbours=True)
        _redo(columns, done)
    columns.journal.append(done)
    return None


def apply_all(columns: Columns, drops: Iterable[Drop], by: str) -> Iterator[tuple[Drop, Broken | None]]:
    """Apply each drop as `apply` would, and yield it with the rule that it would break, before the next is taken.

    If any message may follow any other, a drop of removable groups is always allowed, and needs no further check.
    """
    free = set[int]() if columns.format.judges_joins else set(removable(columns))
    turn, seen, included = columns.grouping.turn, len(columns.source), columns.included
    for drop in drops:
        ids, count = drop.groups, len(free)
        free.difference_update(ids)
        are_free = count - len(free) == len(ids) > 0  # all of them, and none is named twice
        if are_free and len(ids) < included.groups:
            columns.set_shown(ids, shown=False)
            columns.journal.append(Applied(drop, by, turn, seen=seen))
            yield drop, None
        else:
            yield drop, apply(columns, drop, by)


def _attempt(columns: Columns, edit: Edit, by: str, seen: int | None = None, *, is_repeated: bool = False) -> Applied | str:
    """Apply an edit regardless of joins, or return the rule that it breaks; a `Together` is applied whole or not at all."""
    rule = refusal(columns, edit, by, seen=seen, is_repeated=is_repeated)
    if rule is not None:
        return rule
    if not isinstance(edit, Together):
        return perform(columns, edit, by)
    with contextlib.ExitStack() as undoing:
        parts: list[Applied] = []
        for part in edit.edits:
            done = _attempt(columns, part, by, seen, is_repeated=is_repeated)
            if isinstance(done, str):
                return done
            parts.append(done)
            undoing.callback(undo, columns, done)
        undoing.pop_all()
    return Applied(edit, by, columns.grouping.turn, parts=tuple(parts), seen=len(columns.source))


def perform(columns: Columns, edit: Drop | Replace | Rewrite | Restore, by: str = "") -> Applied:
    """Apply an edit that is known to be allowed; O(the groups it names)."""
    made: int | None = None
    before: tuple[tuple[int, Shown], ...] = ()
    if isinstance(edit, Drop):
        columns.set_shown(edit.groups, shown=False)
    elif isinstance(edit, Restore):
        columns.set_shown(edit.groups, shown=True)
    elif isinstance(edit, Replace):
        sizes = [columns.measure(message) for message in edit.messages]  # before anything changes: a counter may fail
        anchor = columns.anchor(place_of(columns, edit.groups))
        columns.set_shown(edit.groups, shown=False)
        mark = read_mark(edit.messages[0])
        total = (sum(tokens for tokens, _ in sizes), sum(size for _, size in sizes))
        made = columns.insert(edit.messages, total, anchor, edit.groups, (by or None) if mark is None else mark.by)
    else:
        sizes = [(0, 0) if message is None else columns.measure(message) for message in edit.messages]
        shown = zip(columns.shown_ordinals(edit.group), edit.messages, sizes, strict=False)
        before = tuple([(ordinal, columns.show(ordinal, (message, *size))) for ordinal, message, size in shown])
    return Applied(edit, by, columns.grouping.turn, made, before, seen=len(columns.source))


def undo(columns: Columns, applied: Applied) -> None:
    """Undo the newest edit: the exact inverse of the changes that applied it."""
    for each in reversed(applied.simple):
        edit = each.edit
        if each.made is not None:
            columns.withdraw(each.made)
        if isinstance(edit, Rewrite):
            for ordinal, shown in reversed(each.before):
                columns.show(ordinal, shown)
        elif not isinstance(edit, Together):
            columns.set_shown(edit.groups, shown=not isinstance(edit, Restore))


def _redo(columns: Columns, applied: Applied) -> None:
    """Apply an edit again directly after it was undone: the same changes, with the same ids."""
    for each in applied.simple:
        perform(columns, cast("Drop", each.edit), applied.by)


def rollback(columns: Columns, checkpoint: int) -> list[Applied]:
    """Undo every edit since a position in the journal, and return them."""
    undone = columns.journal[checkpoint:]
    while len(columns.journal) > checkpoint:
        undo(columns, columns.journal.pop())
    return undone


def touched(columns: Columns, *journal: Applied) -> list[Node]:
    """Return the nodes at which edits changed the view, in no order."""
    nodes: list[Node] = []
    for each in chain.from_iterable([applied.simple for applied in journal]):
        if isinstance(each.edit, Rewrite):
            nodes += [ordinal for ordinal, _ in each.before]
        else:
            nodes += [] if each.made is None else [each.made]
            for id in named(each.edit):
                nodes += [id] if id < 0 else columns.ordinals(id)
    return nodes


# -------------------------------------------------------------------- after the source changed


def restore(columns: Columns, id: int) -> None:
    """Put back a hidden group that a new result joins; remove the collapsed line that replaced only this group, if any.

    The group is hidden, so the journal has an edit.
    """
    journal, inserted = columns.journal, columns.inserted
    newest_edit = journal[-1]
    journal.append(perform(columns, Restore((id,), reason="a late result came for its call")))
    for line in columns.visibility.shown_at(id):
        if inserted[line].made_by == COLLAPSED_BY and inserted[line].replaces == (id,):
            gone = perform(columns, Drop((line,), reason="the tool call that this line replaced was restored"))
            # no strategy made this edit: `MessageIndex.turns_since_edit` still counts from the newest one that a strategy made
            journal.append(attrs.evolve(gone, turn=newest_edit.turn))


def restore_joined(columns: Columns, late: Iterable[int] = ()) -> None:
    """Put back groups that edits hide, and that later messages joined: those with the user's last words, and ``late`` ones."""
    newest = columns.grouping.newest
    for id in dict.fromkeys([newest.user, newest.words, *late]):
        if id is not None and not columns.is_included(id):
            restore(columns, id)


def reapply(
    columns: Columns,
    journal: Iterable[Applied],
    pinned: Iterable[int],
    groups: Mapping[int, int] | None = None,
    late: Iterable[int] = (),
) -> list[Applied]:
    """Repeat journaled edits, as far as they are allowed now; `settle` checks the joins afterwards.

    They are repeated in order: an edit may name what an earlier one inserted. Then groups are put back that must be shown, and
    those are pinned again that were pinned by id: a repeated edit may name a group that was pinned later.

    Args:
        columns: The columns, to which no edit was applied.
        journal: The edits.
        pinned: The ids of the groups that were pinned by id.
        groups: The new id of each source group; ``None`` if no id changed.
        late: The groups of new messages; a late result may have joined one that an edit hides.

    Returns:
        The edits that are not allowed.
    """
    left_out: list[Applied] = []
    ids: dict[int, int] = dict(groups or {})
    for applied in journal:
        edit = renamed(applied.edit, ids, all_changed=groups is not None)
        again: Applied | str | None = None
        if isinstance(edit, Restore):
            if all(columns.exists(id) and not columns.is_included(id) for id in edit.groups):
                again = perform(columns, edit, applied.by)
        elif edit is not None:
            again = _attempt(columns, edit, applied.by, applied.seen, is_repeated=True)
        if not isinstance(again, Applied):
            left_out.append(applied)
            continue
        ids.update(zip(applied.inserted_ids, again.inserted_ids, strict=False))
        turn = min(applied.turn, again.turn)
        columns.journal.append(attrs.evolve(again, turn=turn, seen=applied.seen, lost=applied.lost))
    restore_joined(columns, late)
    renumbered = [ids.get(id, id) for id in pinned if id in ids or (id >= 0 and groups is None)]
    columns.pin([id for id in renumbered if columns.exists(id)], by_id=True)
    return left_out


def settle(columns: Columns, nodes: Iterable[Node]) -> list[Edit]:
    """Undo edits, newest first, until neighbours at these nodes break only rules that they also break in the source.

    Called after messages were added, changed or restored: new neighbours can make an earlier edit invalid. Returns the edits
    that were undone. Each round removes an edit, so it ends. For example, an ``a`` may not follow an ``a``::

        source             u0 a1 b2 u3 a4 b5
        view               u0 a1    u3 a4 b5        an edit dropped b2
        the host cut u3    u0 a1       a4 b5        a4 follows a1: the newest edit between them is undone
                           u0 a1 b2    a4 b5
    """
    undone: list[Edit] = []
    if not columns.format.judges_joins:
        return undone
    changed = [*nodes]
    while (position := _position_of_wrong(columns, changed)) is not None:
        changed += touched(columns, *columns.journal)
        undone += _undo_one(columns, position)
        still_named = [node for node in changed if node >= 0]  # the groups that edits insert have other ids now
        changed = [*still_named, *touched(columns, *columns.journal)]
    return undone


def _position_of_wrong(columns: Columns, nodes: Iterable[Node]) -> int | None:
    """Return the position in the journal of an edit that makes neighbours at these nodes wrong."""
    positions = (_newest_at(columns, bad) for bad in joins.wrong_joins(columns, nodes))
    return next((position for position in positions if position is not None), None)


def _undo_one(columns: Columns, position: int) -> list[Edit]:
    """Undo the edit at a position in the journal, and the later ones that are not allowed without it; return these edits.

    All edits are undone, and the others are repeated, since an edit is exactly undone only while it is the newest.
    """
    pinned = columns.pinned_by_id.copy()
    columns.pinned -= pinned
    journal = rollback(columns, 0)
    undone = journal.pop(position).edit
    return [undone, *edits_of(reapply(columns, journal, pinned))]


def edits_of(journal: Iterable[Applied]) -> list[Edit]:
    """Return the edits of a journal that strategies made."""
    return [applied.edit for applied in journal if not isinstance(applied.edit, Restore)]


def _newest_at(columns: Columns, bad: joins.BadJoin) -> int | None:
    """Return the position in the journal of the newest edit that affects these two neighbours."""
    anchor, before = columns.anchor, bad.before
    if joins.message_before(columns, before) is None:
        before = None  # only instructions are before it: to the provider, it is the first message
    start = 0 if before is None else anchor(before)  # without a message before it, any edit before the join affects it
    end = len(columns.source) if bad.after is None else anchor(bad.after)
    for position, applied in reversed([*enumerate(columns.journal)]):
        if isinstance(applied.edit, Restore):
            continue
        if any(start <= anchor(each) <= end for each in touched(columns, applied)):
            return position
    return None


# -------------------------------------------------------------------- edits that were not allowed


@attrs.define(eq=False)
class Refusals:
    """The edits of a run that were not allowed. Holds state.

    A drop that only its neighbours forbid may become valid together with another one. It is recorded as refused and waits; when
    the strategy ends, all waiting drops that are valid together are applied.
    """

    noted: list[Refusal] = attrs.Factory(list[Refusal])  # the refusals, in order
    _waiting: list[tuple[Drop, str]] = attrs.Factory(list[tuple[Drop, str]])  # each with its strategy
    _since_change: set[object] = attrs.Factory(set[object])

    def note(self, edit: Edit, rule: str, by: str, *, waits: bool = False) -> None:
        """Record that an edit of a strategy would have broken a rule. O(named groups).

        If only the neighbours of a drop forbid it, it ``waits`` for others. The same edit again, although nothing has changed,
        raises `NoProgress`.
        """
        self.noted.append(Refusal(edit, rule, by))
        asked = signature(edit)
        if asked in self._since_change:
            raise NoProgress(
                f"{by or 'a strategy'} repeated the refused {edit}: {rule}; do not repeat an edit that was refused"
            )
        self._since_change.add(asked)
        if waits and isinstance(edit, Drop):
            self._waiting.append((edit, by))

    def changed(self) -> None:
        """Allow refused edits to be tried again, because the view changed or another strategy begins."""
        self._since_change.clear()

    def stop_waiting(self) -> None:
        """Leave the waiting drops refused, because another strategy begins or edits were undone."""
        self._waiting.clear()

    def apply_waiting(self, columns: Columns) -> bool:
        """Apply the waiting drops that are valid together, remove them from the refusals, and return whether there were any."""
        waiting, is_shown, count = self._waiting.copy(), columns.is_included, len(columns.journal)
        if not waiting:
            return False
        self._waiting.clear()
        gone = [drop for drop, _ in waiting if not any(map(is_shown, drop.groups))]
        units: dict[int, tuple[Drop, str]] = {}  # by their first groups
        taken: set[int] = set()
        for drop, by in waiting:
            if all(map(is_shown, drop.groups)) and taken.isdisjoint(drop.groups):
                taken.update(drop.groups)
                units[drop.groups[0]] = drop, by
        for cut in cuts.plan_units(columns, [list(drop.groups) for drop, _ in units.values()]):
            if chosen := [units[first] for first in cut if first in units]:
                drops = [drop for drop, _ in chosen]
                edit = drops[0] if len(drops) == 1 else Together(*drops)
                if apply(columns, edit, chosen[0][1]) is None:
                    gone += drops
        removed = set(map(id, gone))
        self.noted = [each for each in self.noted if id(each.edit) not in removed]
        return len(columns.journal) > count
