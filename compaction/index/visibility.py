"""Which places of a conversation the view shows, and what is shown directly before and after each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from .columns import Inserted

Node: TypeAlias = int
"""What stands at one place of the view: a message, by its ordinal, or an inserted group, by its id, which is negative."""


class Visibility:
    """The places that the view shows. Holds state; a neighbour costs amortized O(1) while nothing comes back.

    Attributes:
        messages: For each source message, whether the view shows it.
        inserted: The groups that edits inserted, by id.
    """

    def __init__(self) -> None:
        self.messages = bytearray()
        self.inserted: dict[int, Inserted] = {}
        self._anchored: dict[int, list[int]] = {}
        self._skip_left: dict[int, int] = {}
        self._skip_right: dict[int, int] = {}

    def insert(self, group: Inserted) -> None:
        """Show a new group directly before the source message at its anchor, after those that stand there already."""
        self.inserted[group.id] = group
        self._anchored.setdefault(group.anchor, []).append(group.id)
        self.something_came_back()

    def withdraw(self, id: int) -> None:
        """Undo the newest insertion."""
        self._anchored[self.inserted.pop(id).anchor].pop()

    def at_anchor(self, ordinal: int) -> Sequence[int]:
        """Every group that was inserted directly before a source message, shown or not, in order."""
        return self._anchored.get(ordinal, ())

    def shown_at(self, ordinal: int) -> Iterator[int]:
        """The inserted groups that the view shows directly before a source message, in order."""
        return (id for id in self._anchored.get(ordinal, ()) if not self.inserted[id].excluded)

    def is_shown(self, node: Node) -> bool:
        """Whether the view shows what stands at a place."""
        if node < 0:
            return node in self.inserted and not self.inserted[node].excluded
        return bool(self.messages[node])

    def anchor_of(self, node: Node) -> int:
        """The ordinal of a place; of an inserted group, that of the message it stands directly before."""
        return self.inserted[node].anchor if node < 0 else node

    def nodes(self) -> Iterator[Node]:
        """Every place that the view shows, in order."""
        anchored = self._anchored
        for ordinal, visible in enumerate(self.messages):
            if ordinal in anchored:
                yield from self.shown_at(ordinal)
            if visible:
                yield ordinal

    def something_came_back(self) -> None:
        """Forget what is known of places that show nothing; whoever shows something again says so."""
        self._skip_left.clear()
        self._skip_right.clear()

    def before(self, node: Node) -> Node | None:
        """What the view shows directly before a place; ``None`` at the start. Amortized O(1) while nothing comes back."""
        if node >= 0:
            return self._leftward(node)
        anchor = self.inserted[node].anchor
        here = self._anchored[anchor]
        for id in reversed(here[: here.index(node)]):
            if not self.inserted[id].excluded:
                return id
        if anchor and self.messages[anchor - 1]:
            return anchor - 1
        return self._leftward(anchor - 1) if anchor else None

    def after(self, node: Node) -> Node | None:
        """What the view shows directly after a place; ``None`` at the end. Amortized O(1) while nothing comes back."""
        if node >= 0:
            return self._rightward(node + 1)
        anchor = self.inserted[node].anchor
        here = self._anchored[anchor]
        for id in here[here.index(node) + 1 :]:
            if not self.inserted[id].excluded:
                return id
        return anchor if self.messages[anchor] else self._rightward(anchor + 1)

    def first(self) -> Node | None:
        """What the view shows first."""
        return self._rightward(0)

    def _leftward(self, start: int) -> Node | None:
        """The last place shown before the source message at ``start``, whether that is shown or not."""
        at, skip, anchored = start, self._skip_left, self._anchored
        found: Node | None = None
        while True:
            at = skip.get(at, at)
            if at in anchored:
                found = next((id for id in reversed(anchored[at]) if not self.inserted[id].excluded), None)
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
        """The first place shown from the source message at ``start`` on, what stands directly before it included."""
        at, skip, anchored = start, self._skip_right, self._anchored
        end = len(self.messages)
        found: Node | None = None
        while at < end:
            at = skip.get(at, at)
            if at in anchored:
                found = next((id for id in anchored[at] if not self.inserted[id].excluded), None)
            if found is None and self.messages[at]:
                found = at
            if found is not None:
                break
            at += 1
        if start < at < end:
            skip[start] = at
        return found
