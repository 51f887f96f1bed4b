"""Editing: check and apply edits, join drops that depend on one another, and undo or reapply edits after the source changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping

import attrs

from ..errors import InputError
from ..formats import MessageFormat
from .cuts import plan_cuts
from .edits import Drop, Drops, Edit, Restore, Together, named, renamed
from .joins import BadJoin, JoinJudge, message_before
from .journal import Applied, Measure, inserted, perform, touched, undo
from .marks import COLLAPSED_BY
from .projection import Projection
from .rules import Refusals, refusal, removable


@attrs.frozen
class _Refused:
    """The rule that an edit would break, and whether only new neighbours break it: later drops may remove one of them."""

    rule: str
    by_neighbours: bool = False


class Editor:
    """Applies edits to a projection, and undoes them. Holds state: the journal, the refusals, the waiting drops.

    Args:
        projection: The view.
        format: The wire format of its messages.
        measure: Counts the tokens and bytes of a message.
        undone: The list to which edits are added that new or changed messages undo.

    Attributes:
        journal: The edits that are currently applied, in order.
        refusals: The refused edits of the run.
    """

    def __init__(self, projection: Projection, format: MessageFormat, measure: Measure, undone: list[Edit]) -> None:
        self.journal: list[Applied] = []
        self.refusals = Refusals()
        self._undone = undone
        self._projection = projection
        self._format = format
        self._measure = measure
        self._joins = JoinJudge(projection, format)
        self._waiting: list[tuple[Drop, str]] = []  # drops of the running strategy that only their neighbours forbid

    # ---------------------------------------------------------------- applying

    def apply(self, edit: Edit, by: str) -> bool:
        """Apply an edit unless it would break a rule; see `MessageIndex.apply`."""
        outcome = self._try(edit, by)
        if isinstance(outcome, Applied):
            self._commit(outcome)
            return True
        self.refusals.note(edit, outcome.rule, by)
        if isinstance(edit, Drop) and outcome.by_neighbours:
            self._waiting.append((edit, by))
        return False

    def apply_all(self, drops: Drops, by: str, changed: Callable[[], object]) -> None:
        """Apply drops one after the other, and call ``changed`` after each.

        If any message may follow any other, a drop of removable groups is always allowed, and needs no further check.
        """
        projection, journal, exclude = self._projection, self.journal, self._projection.exclude
        free = set[int]() if self._format.judges_joins else set(removable(projection))
        included, turn, seen, left = projection.included, projection.grouping.turn, len(projection.source), len(free)
        for drop in drops.one_by_one():
            groups = drop.groups
            free.difference_update(groups)
            before, left = left, len(free)
            if before - left == len(groups) > 0 and len(groups) < included.groups:  # all are free, and none is named twice
                exclude(groups)
                journal.append(Applied(drop, by, turn, seen=seen))
                self.refusals.changed()
            else:
                self.apply(drop, by)
            changed()

    def _commit(self, applied: Applied) -> None:
        self.journal.append(applied)
        self.refusals.changed()

    def end_step(self) -> bool:
        """Apply those refused drops that together leave no bad join; return whether there were any. The rest stays refused."""
        waiting, is_shown, count = self._waiting, self._projection.is_included, len(self.journal)
        if not waiting:
            return False
        self._waiting = []
        done: list[Drop] = [drop for drop, _ in waiting if not any(map(is_shown, drop.groups))]
        taken: set[int] = set()
        by_first: dict[int, tuple[Drop, str]] = {}
        for drop, by in waiting:
            if all(map(is_shown, drop.groups)) and taken.isdisjoint(drop.groups):
                taken.update(drop.groups)
                by_first[drop.groups[0]] = drop, by
        for cut in plan_cuts(self._projection, self._format, [list(drop.groups) for drop, _ in by_first.values()]):
            if units := [by_first[id] for id in cut if id in by_first]:
                drops = [drop for drop, _ in units]
                outcome = self._try(drops[0] if len(drops) == 1 else Together(*drops), units[0][1])
                if isinstance(outcome, Applied):
                    self._commit(outcome)
                    done += drops
        self.refusals.forget(done)
        return len(self.journal) > count

    def _try(self, edit: Edit, by: str) -> Applied | _Refused:
        """Apply an edit, but do not add it to the journal yet; if it breaks a rule, change nothing and return the reason."""
        included = self._projection.included
        before = included.tokens
        done = self._attempt(edit, by)
        if isinstance(done, str):
            return _Refused(done)
        if included.tokens > before:
            grown = included.tokens - before
            undo(self._projection, done)
            return _Refused(f"the edit would make the view {grown} tokens longer")
        if not self._format.judges_joins:
            return done
        bad = self._joins.bad_joins(touched(self._projection, done))
        if not bad:
            return done
        undo(self._projection, done)
        new = self._joins.new_joins(bad)
        if new:
            needed = " or ".join(f"group {id}" for id in sorted(set(self._joins.groups_at([new[0]]))))
            rule = f"the provider would reject the rest of the view [{new[0].rule}]: {needed} would have to be dropped, too"
            return _Refused(rule, by_neighbours=True)
        again = self._attempt(edit, by)  # the same joins were bad before the edit, so it is allowed
        assert isinstance(again, Applied)
        return again

    def _attempt(self, edit: Edit, by: str, seen: int | None = None) -> Applied | str:
        """Apply an edit regardless of joins, or return the rule that it breaks; a `Together` is applied whole or not at all."""
        rule = refusal(self._projection, self._format, edit, by, seen=seen)
        if rule is not None:
            return rule
        if not isinstance(edit, Together):
            return perform(self._projection, edit, self._measure, by)
        parts: list[Applied] = []
        try:
            for part in edit.edits:
                done = self._attempt(part, by, seen)
                if isinstance(done, str):
                    return done
                parts.append(done)
            projection = self._projection
            whole = Applied(edit, by, projection.grouping.turn, parts=tuple(parts), seen=len(projection.source))
            parts.clear()
            return whole
        finally:
            for earlier in reversed(parts):
                undo(self._projection, earlier)

    def turns_since_edit(self) -> int:
        """See `MessageIndex.turns_since_edit`."""
        turn = self._projection.grouping.turn
        return turn - next((each.turn for each in reversed(self.journal) if not isinstance(each.edit, Restore)), 0)

    # ---------------------------------------------------------------- undoing

    def checkpoint(self) -> int:
        """See `MessageIndex.checkpoint`."""
        self.refusals = Refusals()
        self._waiting.clear()
        return len(self.journal)

    def begin_step(self) -> None:
        """See `MessageIndex.begin_step`."""
        self.refusals.changed()
        self._waiting.clear()

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """See `MessageIndex.trial`."""
        checkpoint, refusals, waiting = len(self.journal), self.refusals, self._waiting
        self.refusals, self._waiting = Refusals(), []
        try:
            yield
        finally:
            self.rollback(checkpoint)
            self.refusals, self._waiting = refusals, waiting

    def rollback(self, checkpoint: int) -> None:
        """See `MessageIndex.rollback`."""
        if not 0 <= checkpoint <= len(self.journal):
            raise InputError(
                f"rollback({checkpoint}): the journal has {len(self.journal)} edits; pass a value from checkpoint()"
            )
        self._waiting.clear()
        while len(self.journal) > checkpoint:
            undo(self._projection, self.journal.pop())

    # ---------------------------------------------------------------- after new messages

    def restore(self, id: int) -> None:
        """Put back a hidden group that a new result joins; remove the collapsed line that replaced only this group, if any."""
        late = Restore((id,), reason="a late result came for its call")
        self.journal.append(perform(self._projection, late, self._measure))
        shown, made = self._projection.visibility.shown_at(id), self._projection.inserted
        for line in [each for each in shown if made[each].made_by == COLLAPSED_BY and made[each].replaces == (id,)]:
            drop = Drop((line,), reason="the tool call that this line replaced was restored")
            gone = perform(self._projection, drop, self._measure)
            self.journal.append(attrs.evolve(gone, turn=self.journal[-2].turn))

    def replay(
        self, journal: Iterable[Applied], groups: Mapping[int, int] | None = None
    ) -> tuple[list[Applied], dict[int, int]]:
        """Reapply journaled edits, as far as they are allowed now.

        Args:
            journal: The edits.
            groups: The new id of each source group that an edit may name; ``None`` if no id changed.

        Returns:
            The edits that are not allowed, which are undone, and the new ids of groups, inserted ones included.
        """
        left_out: list[Applied] = []
        ids: dict[int, int] = dict(groups or {})
        for applied in journal:
            gone = groups is not None and any(id not in ids for id in named(applied.edit))
            edit = None if gone else renamed(applied.edit, ids)
            again = None if edit is None else self._repeated(edit, applied)
            if again is None:
                left_out.append(applied)
                self._undone += [] if isinstance(applied.edit, Restore) else [applied.edit]
                continue
            ids.update(zip(inserted(applied), inserted(again), strict=False))
            self.journal.append(attrs.evolve(again, turn=min(applied.turn, again.turn), seen=applied.seen, lost=applied.lost))
        self.restore_words()
        return left_out, ids

    def restore_words(self) -> None:
        """Put back the user's last words, if an edit hid their group before they came with a late result. O(1)."""
        grouping = self._projection.grouping
        for id in (grouping.last_user, grouping.last_words):
            if id is not None and self._projection.excluded(id):
                self.restore(id)

    def _repeated(self, edit: Edit, known: Applied) -> Applied | None:
        """Apply an edit again if it is allowed; `settle` checks the joins after all edits."""
        projection = self._projection
        if isinstance(edit, Restore):
            if any(not projection.exists(id) or not projection.excluded(id) for id in edit.groups):
                return None
            return perform(projection, edit, self._measure, known.by)
        done = self._attempt(edit, known.by, known.seen)
        return done if isinstance(done, Applied) else None

    def settle(self, places: Iterable[int]) -> list[Applied] | None:
        """Undo edits, newest first, until neighbours at these places break only rules that they also break in the source.

        Called after messages were added, changed or restored: new neighbours can make an earlier edit invalid.

        Returns:
            The journal before, if an edit was undone.
        """
        if not self._format.judges_joins:
            return None
        known, before = list(places), None
        while (place := self._newest_wrong(known)) is not None:
            before = before or self.journal.copy()
            self._undone.append(self.journal[place].edit)
            rest = self.journal[:place] + self.journal[place + 1 :]
            changed = [*known, *self._touched()]
            self.rollback(0)
            self.replay(rest)
            known = [each for each in changed if each >= 0] + self._touched()  # the summaries have new ids
        return before

    def _touched(self) -> list[int]:
        return [place for applied in self.journal for place in touched(self._projection, applied)]

    def _newest_wrong(self, places: Iterable[int]) -> int | None:
        """Return the position in the journal of the newest edit that makes neighbours at these places wrong."""
        wrong = self._joins.wrong_joins(places)
        return next((place for bad in wrong if (place := self._newest_at(bad)) is not None), None)

    def _newest_at(self, bad: BadJoin) -> int | None:
        """Return the position in the journal of the newest edit that affects these two neighbours."""
        projection = self._projection
        before = bad.before
        if message_before(projection, before) is None:
            before = None  # only instructions are before it: to the provider, it is the first message
        start = 0 if before is None else projection.visibility.anchor_of(before)
        end = len(projection.source) if bad.after is None else projection.visibility.anchor_of(bad.after)
        for place in reversed(range(len(self.journal))):
            applied = self.journal[place]
            if isinstance(applied.edit, Restore):
                continue
            if any(start <= projection.visibility.anchor_of(each) <= end for each in touched(projection, applied)):
                return place
        return None
