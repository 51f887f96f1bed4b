"""Visibility: which messages and inserted groups the view shows, in which order, and which of them are neighbours.

An element of the view is a *node*: a source message, or a group that an edit inserted. An inserted group is shown directly
before the source message at its anchor::

    ordinals    0   1           2   3       -1 and -2 have the anchor 2; 1 and 2 are hidden
    view        0      -1  -2       3       before(3) and before(2) are -2, after(0) and after(1) are -1
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final, TypeAlias, TypeVar

import attrs

from ..messages import Message

_T = TypeVar("_T")

_RUNS: Final = 4
"""The number of runs of shown messages that are copied as wholes."""

Node: TypeAlias = int
"""An element of the view: a source message, by its ordinal, or an inserted group, by its id, which is negative."""


@attrs.define(eq=False)
class Inserted:
    """A summary group that an edit inserted. Holds state: whether it is shown."""

    id: int  # its id, below 0
    messages: tuple[Message, ...]
    anchor: int  # the ordinal of the source message directly after it
    replaces: tuple[int, ...]  # the ids of the groups that it replaces
    tokens: int
    bytes: int
    made_by: str | None  # the strategy that wrote it
    shown: bool = False


class Visibility:
    """The nodes that the view shows, and which of them are neighbours. Holds state.

    A neighbour is found at C speed, in O(the hidden messages between).
    """

    def __init__(self) -> None:
        self.messages = bytearray()  # for each source message, whether the view shows it
        self.inserted: dict[int, Inserted] = {}  # the groups that edits inserted, by id
        self._shown: list[tuple[int, int]] = []  # anchor and negated id of the inserted groups that the view shows, in order

    def set(self, id: int, *, shown: bool) -> None:
        """Show an inserted group, after those with the same anchor that were inserted earlier, or hide it."""
        self.inserted[id].shown = shown
        if shown:
            insort(self._shown, self._key(id))
        else:
            del self._shown[bisect_left(self._shown, self._key(id))]

    def _key(self, node: Node) -> tuple[int, int]:
        """Return the position of a node among those of the inserted groups; a message is behind all with its anchor."""
        return (self.inserted[node].anchor, -node) if node < 0 else (node, sys.maxsize)

    @property
    def is_complete(self) -> bool:
        """Whether the view shows the whole source and nothing else."""
        return not self._shown and self.messages.find(0) < 0

    def is_shown(self, node: Node) -> bool:
        """Whether the view shows the message or group of a node."""
        return node in self.inserted and self.inserted[node].shown if node < 0 else bool(self.messages[node])

    def shown_at(self, ordinal: int) -> list[int]:
        """Return the inserted groups that the view shows directly before a source message, in order."""
        start, end = (bisect_left(self._shown, (at, 0)) for at in (ordinal, ordinal + 1))
        return [-number for _, number in self._shown[start:end]]

    def add_shown(self, found: list[_T], values: Sequence[_T], start: int, end: int) -> None:
        """Add the values of the source messages between two ordinals that the view shows; at C speed.

        The first runs are copied as wholes: most views consist of the beginning and the end.
        """
        shown = self.messages
        for _ in range(_RUNS):
            if (first := shown.find(1, start, end)) < 0:
                return
            start = hidden if (hidden := shown.find(0, first, end)) >= 0 else end
            found += values[first:start]
        found += compress(values[start:end], shown[start:end])

    def parts(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield the view as parts: source messages from an ordinal to another, and the inserted group after them, if any."""
        start = 0
        for anchor, number in self._shown:
            yield start, anchor, (-number,)
            start = anchor
        yield start, len(self.messages), ()

    def nodes(self) -> list[Node]:
        """Return every node that the view shows, in order."""
        nodes: list[Node] = []
        for start, end, inserted in self.parts():
            self.add_shown(nodes, range(len(self.messages)), start, end)
            nodes += inserted
        return nodes

    def before(self, node: Node) -> Node | None:
        """Return the node shown directly before a node, shown or not; ``None`` at the start."""
        ordinal, _ = key = self._key(node)
        start, inserted = 0, None
        if at := bisect_left(self._shown, key):
            start, number = self._shown[at - 1]
            inserted = -number
        message = self.messages.rfind(1, start, ordinal)
        return message if message >= 0 else inserted

    def after(self, node: Node | None) -> Node | None:
        """Return the node shown directly after a node, shown or not, or the first one for ``None``; ``None`` at the end."""
        start, _ = key = (0, 0) if node is None else self._key(node)
        if node is not None and node >= 0:
            start += 1
        end, inserted = len(self.messages), None
        if (at := bisect_right(self._shown, key)) < len(self._shown):
            end, number = self._shown[at]
            inserted = -number
        message = self.messages.find(1, start, end)
        return message if message >= 0 else inserted
