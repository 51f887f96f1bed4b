"""The journal: its entries, and which of them stay after the host changed messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .edits import Drop, Edit, Replace, Rewrite, Together

Shown: TypeAlias = tuple[Message | None, int, int]
"""The message shown at an ordinal (``None`` for nothing), its tokens and its bytes."""


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
        yield from applied.parts


def inserted(applied: Applied) -> list[int]:
    """Return the ids of the groups that an edit and its parts inserted, in order."""
    return [each.made for each in flat([applied]) if each.made is not None]


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
