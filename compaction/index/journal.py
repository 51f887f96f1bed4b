"""The journal: the entries that record which edits were applied, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from ..messages import Message
from .edits import Edit, Replace, Rewrite

Shown: TypeAlias = tuple[Message | None, int, int]
"""The message shown at an ordinal (``None`` for nothing), its tokens and its bytes."""


@attrs.define(weakref_slot=False)
class Applied:
    """An edit in the journal. Never modified, but not frozen, because creating a frozen value takes three times as long."""

    edit: Edit
    by: str  # the strategy that made it; empty outside a run
    turn: int  # the turn in which it was applied
    made: int | None = None  # the id of the group it inserted, for a `Replace`
    before: tuple[tuple[int, Shown], ...] = ()  # what the view showed before at each ordinal that a `Rewrite` changed
    parts: tuple[Applied, ...] = ()
    # how many source messages had been read when it was decided; ``None`` if the host changed them since, or if a saved
    # state lacks the number
    seen: int | None = None
    # keys of messages that it may have been written from, and that the host has altered or removed since
    lost: frozenset[str] = frozenset()

    def without(self, gone: Iterable[tuple[int, str]]) -> Applied:
        """Return the entry without messages of the source, given by their ordinals and keys: it has lost those that it saw."""
        lost = {key for ordinal, key in gone if self.seen is None or ordinal < self.seen}
        return attrs.evolve(self, lost=self.lost | lost)

    @property
    def inserted_ids(self) -> list[int]:
        """The ids of the groups that it and its parts inserted, in order."""
        return [each.made for each in flat([self]) if each.made is not None]

    @property
    def writes(self) -> bool:
        """Whether it may contain text of groups that it does not name."""
        edits = [each.edit for each in flat([self])]
        return any(isinstance(edit, Replace) or (isinstance(edit, Rewrite) and edit.read) for edit in edits)


def flat(journal: Iterable[Applied]) -> Iterator[Applied]:
    """Yield every edit of a journal, each followed by its parts."""
    for applied in journal:
        yield applied
        yield from applied.parts
