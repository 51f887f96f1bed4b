"""Pieces: the view as runs of successive messages of one group. `cuts` and `replacements` plan with them.

Most groups are one piece. A group has several if messages of other groups are between its own, such as the result of another
call between a call and its result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..messages import Message
from .columns import Columns
from .visibility import Node


class Pieces:
    """The pieces of the view, numbered from 0, without the groups that are ``gone``. Later edits do not change them."""

    def __init__(self, columns: Columns, gone: Collection[int] = ()) -> None:
        self._columns = columns
        self.groups: list[int] = []  # the group of each piece
        self.of_group: dict[int, list[int]] = {}  # the pieces of each group, in order
        self._ends: list[tuple[Node, Node]] = []  # the first and the last node of each piece
        group_of = columns.grouping.group_of
        for node in columns.visibility.nodes():
            id = node if node < 0 else group_of[node]
            if self.groups and self.groups[-1] == id:
                self._ends[-1] = (self._ends[-1][0], node)
            elif id not in gone:
                self.of_group.setdefault(id, []).append(len(self.groups))
                self.groups.append(id)
                self._ends.append((node, node))

    def whole(self) -> set[int]:
        """Return the ids of the groups that are one piece."""
        return {id for id, own in self.of_group.items() if len(own) == 1}

    def of_groups(self, ids: Iterable[int]) -> list[int]:
        """Return the pieces of groups; a group that the view does not show has none."""
        return [piece for id in ids for piece in self.of_group.get(id, ())]

    def first(self, piece: int) -> Message | None:
        """Return the first message of a piece; ``None`` if there is no such piece."""
        return self._columns.at(self._ends[piece][0], end=False) if 0 <= piece < len(self._ends) else None

    def last(self, piece: int) -> Message:
        """Return the last message of a piece."""
        return self._columns.at(self._ends[piece][1], end=True)

    def is_system(self, piece: int) -> bool:
        """Whether the first and the last message of a piece are instructions."""
        return self.last(piece).is_system and self._columns.at(self._ends[piece][0], end=False).is_system
