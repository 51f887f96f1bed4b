"""The places of a conversation that the view shows, and the shown neighbours of each place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final, TypeAlias, TypeVar

from .columns import Inserted

_T = TypeVar("_T")

_RUNS: Final = 4

Node: TypeAlias = int
"""A place of the view: a source message, by its ordinal, or an inserted group, by its id, which is negative."""


class Visibility:
    """The places that the view shows. Holds state.

    Finding a neighbour costs amortized O(1) as long as nothing is shown again: runs of hidden places are skipped.

    Attributes:
        messages: For each source message, whether the view shows it.
        inserted: The groups that edits inserted, by id.
        shown_groups: Ids of the inserted groups that the view shows.
    """

    def __init__(self) -> None:
        self.messages = bytearray()
        self.inserted: dict[int, Inserted] = {}
        self.shown_groups: set[int] = set()
        self._anchored: dict[int, list[int]] = {}
        self._skip_left: dict[int, int] = {}
        self._skip_right: dict[int, int] = {}

    def insert(self, group: Inserted) -> None:
        """Show a new group directly before the source message at its anchor, after the groups inserted there earlier."""
        self.inserted[group.id] = group
        self.shown_groups.add(group.id)
        self._anchored.setdefault(group.anchor, []).append(group.id)
        self.something_came_back()

    def withdraw(self, id: int) -> None:
        """Undo the newest insertion."""
        self._anchored[self.inserted.pop(id).anchor].pop()
        self.shown_groups.discard(id)

    def at_anchor(self, ordinal: int) -> Sequence[int]:
        """Return the groups inserted directly before a source message, shown or not, in order."""
        return self._anchored.get(ordinal, ())

    def shown_at(self, ordinal: int) -> Iterator[int]:
        """Yield the inserted groups that the view shows directly before a source message, in order."""
        return filter(self.is_shown, self.at_anchor(ordinal))

    def is_shown(self, node: Node) -> bool:
        """Whether the view shows the message or group at a place."""
        return node in self.shown_groups if node < 0 else bool(self.messages[node])

    def anchor_of(self, node: Node) -> int:
        """Return the ordinal of a place; of an inserted group, the ordinal of the source message after it."""
        return self.inserted[node].anchor if node < 0 else node

    def shows_source(self) -> bool:
        """Whether the view shows every source message and no inserted group; O(messages), at C speed."""
        return not self.shown_groups and self.messages.find(0) < 0

    def shown_of(self, values: Sequence[_T], start: int, end: int) -> list[_T]:
        """Return the values, one for each source message, of those between two ordinals that the view shows; at C speed.

        The first runs of shown messages are copied as wholes: most views consist of the beginning and the end.
        """
        shown, found = self.messages, list[_T]()
        for _ in range(_RUNS):
            if (first := shown.find(1, start, end)) < 0:
                return found
            start = hidden if (hidden := shown.find(0, first, end)) >= 0 else end
            found += values[first:start]
        found += compress(values[start:end], shown[start:end])
        return found

    def anchors(self) -> list[int]:
        """Return the ordinals directly before which the view shows inserted groups, in order."""
        return sorted({self.inserted[id].anchor for id in self.shown_groups})

    def nodes(self) -> Iterator[Node]:
        """Yield every place that the view shows, in order."""
        start, end = 0, len(self.messages)
        for anchor in [*self.anchors(), end]:
            yield from self.shown_of(range(end), start, anchor)
            yield from self.shown_at(anchor)
            start = anchor

    def something_came_back(self) -> None:
        """Discard the known runs of hidden places; must be called whenever a place is shown again."""
        self._skip_left.clear()
        self._skip_right.clear()

    def before(self, node: Node) -> Node | None:
        """Return the place shown directly before a place; ``None`` at the start."""
        if node >= 0:
            return self._leftward(node)
        anchor = self.inserted[node].anchor
        here = self._anchored[anchor]
        found = next(filter(self.is_shown, reversed(here[: here.index(node)])), None)
        if found is not None or anchor == 0:
            return found
        return anchor - 1 if self.messages[anchor - 1] else self._leftward(anchor - 1)

    def after(self, node: Node) -> Node | None:
        """Return the place shown directly after a place; ``None`` at the end."""
        if node >= 0:
            return self._rightward(node + 1)
        anchor = self.inserted[node].anchor
        here = self._anchored[anchor]
        found = next(filter(self.is_shown, here[here.index(node) + 1 :]), None)
        if found is not None:
            return found
        return anchor if self.messages[anchor] else self._rightward(anchor + 1)

    def first(self) -> Node | None:
        """Return the first place that the view shows."""
        return self._rightward(0)

    def _leftward(self, start: int) -> Node | None:
        """Return the last place shown before the source message at ``start``, which may itself be hidden."""
        at, skip, anchored = start, self._skip_left, self._anchored
        found: Node | None = None
        while True:
            at = skip.get(at, at)
            if at in anchored:
                found = next(filter(self.is_shown, reversed(anchored[at])), None)
            if found is not None or at == 0:
                break
            if self.messages[at - 1]:
                found = at - 1
                break
            at -= 1
        if at < start:
            skip[start] = at
        return found

    def _rightward(self, start: int) -> Node | None:
        """Return the first place shown from ``start`` on, inserted groups directly before it included."""
        at, skip, anchored = start, self._skip_right, self._anchored
        end = len(self.messages)
        found: Node | None = None
        while at < end:
            at = skip.get(at, at)
            if at in anchored:
                found = next(filter(self.is_shown, anchored[at]), None)
            if found is None and self.messages[at]:
                found = at
            if found is not None:
                break
            at += 1
        if start < at < end:
            skip[start] = at
        return found
