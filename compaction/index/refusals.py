"""Refusals: the edits that were not allowed, and the drops among them that wait for others of the same strategy.

A drop that only its neighbours forbid may become valid together with another one. It is recorded as refused and waits; when the
strategy ends, all waiting drops that are valid together are applied.
"""

from __future__ import annotations

import attrs

from ..errors import NoProgress
from . import cuts, editing
from .columns import Columns
from .edits import Drop, Edit, Refusal, Together, signature


@attrs.define(eq=False)
class Refusals:
    """The refusals of a run. Holds state."""

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
                if editing.apply(columns, edit, chosen[0][1]) is None:
                    gone += drops
        removed = set(map(id, gone))
        self.noted = [each for each in self.noted if id(each.edit) not in removed]
        return len(columns.journal) > count
