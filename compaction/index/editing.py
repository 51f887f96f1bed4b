"""Editing a view: edits are judged, applied, held, undone, and applied again after the conversation changed beneath them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence

import attrs

from ..errors import InputError
from ..formats import MessageFormat
from .edits import Drop, Edit, Restore, Together, named, renamed
from .joins import BadJoin, bad_joins, blames, was_bad
from .journal import Applied, Measure, inserted, perform, touched, undo
from .marks import COLLAPSED_BY
from .projection import Projection
from .rules import Refusals, refusal, removal
from .steps import steps

_CONNECTED = 64
"""How many held drops are tried together with a new one; those that are left are tried when the step ends."""


@attrs.frozen
class _Refused:
    """Why an edit was not applied.

    Args:
        rule: The rule it would break, in words.
        bad: The joins that are wrong, if that alone is why.
    """

    rule: str
    bad: Sequence[BadJoin] = ()


@attrs.define(eq=False)
class _Held:
    """A drop that waits for others, which may close the join it leaves.

    Args:
        edit: The drop.
        by: The strategy that asked.
        needs: The groups on either side of the joins that are wrong: one of them would have to leave too.

    Attributes:
        groups: The groups that the drop names.
    """

    edit: Drop
    by: str
    needs: frozenset[int]
    groups: frozenset[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.groups = frozenset(self.edit.groups)


def _apart(held: Sequence[_Held]) -> list[_Held]:
    """Those that share no group: of two that do, the one that asks for more."""
    taken: set[int] = set()
    chosen: set[_Held] = set()
    for each in sorted(held, key=lambda each: -len(each.groups)):
        if taken.isdisjoint(each.groups):
            chosen.add(each)
            taken |= each.groups
    return [each for each in held if each in chosen]


class Editor:
    """What happens to the view of messages that are there. Holds state: the journal, what was refused, what is held.

    Args:
        projection: The view.
        format: The wire format of its messages.
        measure: Counts the tokens and bytes of a message.

    Attributes:
        journal: The edits in force, in order.
        refusals: What was not allowed.
        undone: Edits that were undone because of messages that came later.
    """

    def __init__(self, projection: Projection, format: MessageFormat, measure: Measure) -> None:
        self.journal: list[Applied] = []
        self.refusals = Refusals()
        self.undone: list[Edit] = []
        self._projection = projection
        self._format = format
        self._measure = measure
        self._held: list[_Held] = []

    # ---------------------------------------------------------------- applying

    def apply(self, edit: Edit, by: str) -> bool:
        """Apply an edit, unless it would break a rule; see `MessageIndex.apply`."""
        outcome = self._drop(edit, by) if isinstance(edit, Drop) and not self._format.judges_joins else self._try(edit, by)
        if isinstance(outcome, Applied):
            self._commit(outcome)
            return True
        if outcome.bad and isinstance(edit, Drop):
            needs = frozenset(self._groups_at(outcome.bad))
            if self._held and self._with_held(edit, by, needs):
                return True
            self.refusals.note(edit, outcome.rule, by)
            self._held.append(_Held(edit, by, needs))
        else:
            self.refusals.note(edit, outcome.rule, by)
        return False

    def _commit(self, applied: Applied) -> None:
        """Take an edit into the journal, and apply the drops that waited for it."""
        self.journal.append(applied)
        self.refusals.changed()
        if not self._held:
            return
        gone = set(named(applied.edit))
        self._let_go(gone)
        for held in [each for each in self._held if not gone.isdisjoint(each.needs)]:
            outcome = self._try(held.edit, held.by)
            if isinstance(outcome, Applied):
                self._commit(outcome)
            elif outcome.bad:
                held.needs = frozenset(self._groups_at(outcome.bad))

    def _let_go(self, changed: Collection[int]) -> None:
        """Hold no longer what asks for a group that left the view; if all it asks for left, it was not refused."""
        shown = self._projection.is_included
        for held in [each for each in self._held if not each.groups.isdisjoint(changed)]:
            if not all(map(shown, held.groups)):
                self._held.remove(held)
                if not any(map(shown, held.groups)):
                    self.refusals.forget(held.edit)

    def _with_held(self, edit: Drop, by: str, needs: frozenset[int]) -> bool:
        """Apply a drop together with the held ones that it touches, if the joins close then."""
        together: list[_Held] = []
        groups, wanted = set(edit.groups), set(needs)
        found = True
        while found and len(together) < _CONNECTED:
            touching = _apart(
                [
                    each
                    for each in self._held
                    if groups.isdisjoint(each.groups) and not (groups.isdisjoint(each.needs) and wanted.isdisjoint(each.groups))
                ]
            )
            found = bool(touching)
            for each in touching:
                groups.update(each.groups)
                wanted.update(each.needs)
            together += touching
        return bool(together) and self._apply_held(together, edit, by)

    def _apply_held(self, held: Sequence[_Held], edit: Drop | None, by: str) -> bool:
        drops = [each.edit for each in held] + ([] if edit is None else [edit])
        outcome = self._try(Together(*drops), by) if len(drops) > 1 else self._try(drops[0], by)
        if not isinstance(outcome, Applied):
            return False
        self._commit(outcome)
        return True

    def end_step(self) -> bool:
        """Apply what is still held as far as the joins close; says whether anything was. The rest stays refused."""
        applied = False
        if self._held:
            by_first = {each.edit.groups[0]: each for each in _apart(self._held)}
            for step in steps(self._projection, self._format, [each.edit.groups for each in by_first.values()]):
                planned = [by_first[id] for id in step if id in by_first]
                if together := [held for held in planned if held in self._held]:
                    applied = self._apply_held(together, None, together[0].by) or applied
        self._held.clear()
        return applied

    def _drop(self, edit: Drop, by: str) -> Applied | _Refused:
        """A drop as applied, or why it was not: judged by the rules alone, where any neighbours will do."""
        rule = removal(self._projection, edit.groups, allow_system=edit.allow_system)
        return perform(self._projection, edit, self._measure, by) if rule is None else _Refused(rule)

    def _try(self, edit: Edit, by: str) -> Applied | _Refused:
        """The edit as applied, but not yet in the journal; or why it was not, with nothing changed."""
        included = self._projection.included
        before = included.tokens
        done = self._attempt(edit, by)
        if isinstance(done, str):
            return _Refused(done)
        if included.tokens > before:
            grown = included.tokens - before
            undo(self._projection, done)
            return _Refused(f"the view does not grow (this adds {grown} tokens)")
        if not self._format.judges_joins:
            return done
        bad = bad_joins(self._projection, self._format, touched(self._projection, done))
        if not bad:
            return done
        undo(self._projection, done)
        new = [each for each in bad if not was_bad(self._projection, self._format, each)]
        if new:
            return _Refused(self._explained(new[0]), new)
        again = self._attempt(edit, by)
        assert isinstance(again, Applied)
        return again

    def _attempt(self, edit: Edit, by: str) -> Applied | str:
        """The edit as applied, or the rule that forbids it; a `Together` is applied part by part, all or none."""
        rule = refusal(self._projection, self._format, edit, by)
        if rule is not None:
            return rule
        if not isinstance(edit, Together):
            return perform(self._projection, edit, self._measure, by)
        parts: list[Applied] = []
        try:
            for part in edit.edits:
                done = self._attempt(part, by)
                if isinstance(done, str):
                    return done
                parts.append(done)
            projection = self._projection
            whole = Applied(edit, by, projection.grouping.turn, parts=tuple(parts), known=len(projection.source))
            parts.clear()
            return whole
        finally:
            for earlier in reversed(parts):
                undo(self._projection, earlier)

    def _groups_at(self, bad: Iterable[BadJoin]) -> Iterable[int]:
        group_of = self._projection.grouping.group_of
        for join in bad:
            for node in (join.before, join.after):
                if node is not None and (node >= 0 or node in self._projection.inserted):
                    yield node if node < 0 else group_of[node]

    def _explained(self, bad: BadJoin) -> str:
        groups = sorted(set(self._groups_at([bad])))
        needed = " or ".join(f"group {id}" for id in groups)
        return f"what is left must be a list the provider takes [{bad.rule}]: {needed} would have to leave too"

    def turns_since_edit(self) -> int:
        """How many turns of the user began since the last edit of a strategy; all of them if there was none."""
        turn = self._projection.grouping.turn
        return turn - next((each.turn for each in reversed(self.journal) if not isinstance(each.edit, Restore)), 0)

    # ---------------------------------------------------------------- undoing

    def mark(self) -> int:
        """Begin a run: what an earlier run was refused is forgotten. Returns a place in the journal to roll back to."""
        self.refusals.clear()
        self._held.clear()
        return len(self.journal)

    def begin_step(self) -> None:
        """Begin a strategy: it may ask, once, for what another was refused."""
        self.refusals.changed()
        self._held.clear()

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """Undo at the end whatever is applied inside, and forget what is refused there."""
        mark, refusals, held = len(self.journal), self.refusals, self._held
        self.refusals, self._held = Refusals(), []
        try:
            yield
        finally:
            self.rollback(mark)
            self.refusals, self._held = refusals, held

    def rollback(self, mark: int) -> None:
        """Undo every edit made since the mark.

        Raises:
            InputError: If the mark lies beyond the journal.
        """
        if not 0 <= mark <= len(self.journal):
            raise InputError(f"rollback({mark}): the journal holds {len(self.journal)} edits; pass a value of mark()")
        self._held.clear()
        while len(self.journal) > mark:
            undo(self._projection, self.journal.pop())

    # ---------------------------------------------------------------- when messages come

    def restore(self, id: int) -> None:
        """Bring back a group that a late result arrived for; a line that stood for it alone goes."""
        late = Restore((id,), reason="a late result came for its call")
        self.journal.append(perform(self._projection, late, self._measure))
        for line in self._lines_for(id):
            gone = perform(self._projection, Drop((line,), reason="the call it stood for came back"), self._measure)
            self.journal.append(attrs.evolve(gone, turn=self.journal[-2].turn))

    def _lines_for(self, id: int) -> list[int]:
        """The collapsed tool call that the view shows for this group alone, if there is one."""
        shown, inserted = self._projection.visibility.shown_at(id), self._projection.inserted
        return [line for line in shown if inserted[line].made_by == COLLAPSED_BY and inserted[line].replaces == (id,)]

    def replay(
        self, journal: Iterable[Applied], groups: Mapping[int, int] | None = None
    ) -> tuple[list[Applied], dict[int, int]]:
        """Apply journaled edits again, as far as they are allowed here.

        Args:
            journal: The edits.
            groups: The new id of each source group that an edit may name; ``None`` if all are as they were.

        Returns:
            The edits that are left out, and the new id of each group that an edit inserted.
        """
        left_out: list[Applied] = []
        ids: dict[int, int] = dict(groups or {})
        for applied in journal:
            gone = groups is not None and any(id not in ids for id in named(applied.edit))
            edit = None if gone else renamed(applied.edit, ids)
            again = None if edit is None else self._repeated(edit, applied.by)
            if again is None:
                left_out.append(applied)
                continue
            ids.update(zip(inserted(applied), inserted(again), strict=False))
            self.journal.append(attrs.evolve(again, turn=min(applied.turn, again.turn), known=applied.known))
        return left_out, ids

    def _repeated(self, edit: Edit, by: str) -> Applied | None:
        """The edit applied again, if it is allowed here; joins are judged when all edits are back, by `settle`."""
        projection = self._projection
        if isinstance(edit, Restore):
            if any(not projection.exists(id) or not projection.excluded(id) for id in edit.groups):
                return None
            return perform(projection, edit, self._measure, by)
        done = self._attempt(edit, by)
        return done if isinstance(done, Applied) else None

    def settle(self, places: Iterable[int]) -> None:
        """Undo what makes the view wrong at these places where the source is right; the newest edit there goes first.

        It is asked after messages came, changed or were restored: an edit that was right before may be wrong beside them.
        """
        if not self._format.judges_joins:
            return
        known = list(places)
        while (bad := self._first_wrong(known)) is not None and (place := self._newest_at(bad)) is not None:
            self.undone.append(self.journal[place].edit)
            rest = self.journal[:place] + self.journal[place + 1 :]
            known += touched(self._projection, self.journal[place])
            self.rollback(0)
            self.replay(rest)
            known = [each for each in known if each >= 0 or each in self._projection.inserted]

    def _first_wrong(self, places: Iterable[int]) -> BadJoin | None:
        """The first join at these places that is wrong in the view and not in the source."""
        bad = bad_joins(self._projection, self._format, places)
        return next((each for each in bad if not self._is_of_source(each)), None)

    def _is_of_source(self, bad: BadJoin) -> bool:
        """Whether the messages at fault break the same rule in the source."""
        return all(node >= 0 and self._is_bad_in_source(node, bad.rule) for node in bad.blamed)

    def _is_bad_in_source(self, node: int, rule: str) -> bool:
        read, grouping = self._projection.read, self._projection.grouping
        before = None if node <= grouping.leading else read(node - 1)
        after = read(node + 1) if node + 1 < len(self._projection.source) else None
        left = self._format.join_problem(before, read(node))
        right = self._format.join_problem(None if node < grouping.leading else read(node), after)
        return blames(left, rule, "after") or blames(right, rule, "before")

    def _newest_at(self, bad: BadJoin) -> int | None:
        """The place in the journal of the newest edit that made these two neighbours."""
        projection = self._projection
        start = 0 if bad.before is None else projection.visibility.anchor_of(bad.before)
        end = len(projection.source) if bad.after is None else projection.visibility.anchor_of(bad.after)
        for place in reversed(range(len(self.journal))):
            applied = self.journal[place]
            if isinstance(applied.edit, Restore):
                continue
            if any(start <= projection.visibility.anchor_of(each) <= end for each in touched(projection, applied)):
                return place
        return None
