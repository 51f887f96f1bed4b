"""Known messages: every version of every message that the view shows, showed or may show, and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, TypeAlias

import attrs

from .columns import Columns
from .edits import Restore, Rewrite, Together
from .journal import Applied, flat
from .visibility import Inserted

NEVER: Final = 1 << 62
"""A number of edits that is never reached."""

Position: TypeAlias = tuple[int, int, int]
"""The ordinal of a source message, 0 and 0; of a message of a summary, that of the source message after it, -1 and a number."""


@attrs.define(eq=False)
class Known:
    """A message of the conversation, in a version that the view shows, showed or may show. Holds state: its key."""

    position: Position  # in the order of all known messages; versions of one message share it
    group: int
    raw: Any = None  # the message; ``None`` if only its key is known
    role: str | None = None
    is_shown: bool = True  # whether the view shows its group now
    since: int = 0  # the number of edits after which it was first shown
    until: int = NEVER  # the number of edits after which it was last shown
    key: str | None = None  # its key; `align` sets it when it compares contents

    @property
    def ordinal(self) -> int:
        """The ordinal of a source message; for a message of a summary, that of the source message after it."""
        return self.position[0]


def known_messages(columns: Columns) -> tuple[list[Known], set[int]]:
    """Return every message in every version that was or may be shown, in order, and the ordinals that a rewrite removed."""
    times = _Times(columns.journal)
    known: list[Known] = []
    at_anchor: dict[int, list[Inserted]] = defaultdict(list)
    for group in columns.inserted.values():
        at_anchor[group.anchor].append(group)
    group_of, included = columns.grouping.group_of, columns.is_included
    for ordinal, raw in enumerate(columns.source):
        for group in at_anchor.get(ordinal, ()):
            since, until = times.made.get(group.id, 0), times.gone.get(group.id, NEVER)
            for part, each in enumerate(group.messages):
                position = (ordinal, -1, -2 * group.id + part)
                known.append(Known(position, group.id, each.raw, each.role, group.shown, since, until))
        id = group_of[ordinal]
        shown, gone, role = included(id), times.gone.get(id, NEVER), columns.read(ordinal).role
        versions = [(raw, 0), *times.versions.get(ordinal, ())]
        for (version, since), (_, end) in pairwise([*versions, (None, NEVER + 1)]):
            if version is not None:
                known.append(Known((ordinal, 0, 0), id, version, role, shown, since, min(gone, end - 1)))
    return known, times.hidden


class _Times:
    """The times at which each message was shown, as numbers of edits. Holds state."""

    def __init__(self, journal: Iterable[Applied]) -> None:
        self.made: dict[int, int] = {}  # when a summary was written, by its id
        self.gone: dict[int, int] = {}  # when a hidden group was last shown, by its id
        # the rewritten messages shown at an ordinal, ``None`` for a removed one, each with its first time
        self.versions: dict[int, list[tuple[Any, int]]] = defaultdict(list)
        for time, whole in enumerate(journal):
            for applied in flat([whole]):
                self._note(applied, time)

    def _note(self, applied: Applied, time: int) -> None:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            for (ordinal, _), message in zip(applied.before, edit.messages, strict=False):
                self.versions[ordinal].append((None if message is None else message.raw, time + 1))
        elif isinstance(edit, Restore):
            for id in edit.groups:
                self.gone.pop(id, None)
        elif not isinstance(edit, Together):
            self.gone.update(dict.fromkeys(edit.groups, time))
            if applied.made is not None:
                self.made[applied.made] = time + 1

    @property
    def hidden(self) -> set[int]:
        """The ordinals whose message a rewrite removed."""
        return {ordinal for ordinal, versions in self.versions.items() if any(raw is None for raw, _ in versions)}
