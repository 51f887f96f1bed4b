"""The places of a conversation that the view shows, and the shown neighbours of each place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

import attrs

from ..messages import Message

_T = TypeVar("_T")

_RUNS: Final = 4

Node: TypeAlias = int
"""A place of the view: a source message, by its ordinal, or an inserted group, by its id, which is negative."""


@attrs.define(eq=False)
class Inserted:
    """A summary group that an edit inserted. Holds state: the ordinals that it stands for, once they are known.

    Args:
        id: Its id, below 0.
        messages: Its messages.
        anchor: The ordinal of the source message directly after it.
        replaces: The ids of the groups that it replaces.
        tokens: Its tokens.
        bytes: Its bytes.
        made_by: The strategy that wrote it.
        known_originals: The ordinals of the source messages that it replaces, through any number of rounds, once known.
    """

    id: int
    messages: tuple[Message, ...]
    anchor: int
    replaces: tuple[int, ...]
    tokens: int
    bytes: int
    made_by: str | None
    known_originals: list[range] | None = None

    def originals(self, inserted: Mapping[int, Inserted], ordinals: Callable[[int], Sequence[int]]) -> list[range]:
        """Return the ordinals of the source messages that it replaces, in order; O(the groups it replaces) the first time.

        Args:
            inserted: The summaries that it may replace, by id.
            ordinals: Returns the ordinals of the messages of a source group.
        """
        if self.known_originals is None:
            found: list[range] = []
            waiting = list(self.replaces)
            while waiting:
                summary = inserted.get(id := waiting.pop())
                if summary is None:
                    found += [range(at, at + 1) for at in ordinals(id)]
                elif summary.known_originals is None:
                    waiting.extend(summary.replaces)
                else:
                    found += summary.known_originals
            self.known_originals = joined(found)
        return self.known_originals


class Visibility:
    """The places that the view shows. Holds state.

    Finding a neighbour costs amortized O(1) as long as nothing is shown again: runs of hidden places are skipped. After
    something was shown again, a run is first searched at C speed.

    Attributes:
        messages: For each source message, whether the view shows it.
        inserted: The groups that edits inserted, by id.
        shown_groups: Ids of the inserted groups that the view shows.
    """

    def __init__(self) -> None:
        self.messages = bytearray()
        self._summaries = bytearray(1)  # for each place between messages, whether the view shows an inserted group there
        self.inserted: dict[int, Inserted] = {}
        self.shown_groups: set[int] = set()
        self._anchored: dict[int, list[int]] = {}
        self._skip_left: dict[int, int] = {}
        self._skip_right: dict[int, int] = {}

    def extend(self, count: int) -> None:
        """Show new source messages at the end."""
        self.messages += b"\1" * count
        self._summaries += bytes(count)

    def insert(self, group: Inserted) -> None:
        """Show a new group directly before the source message at its anchor, after the groups inserted there earlier."""
        self.inserted[group.id] = group
        self._anchored.setdefault(group.anchor, []).append(group.id)
        self.show(group.id)
        self.something_came_back()

    def withdraw(self, id: int) -> None:
        """Undo the newest insertion."""
        self.hide(id)
        self._anchored[self.inserted.pop(id).anchor].pop()

    def show(self, id: int) -> None:
        """Show an inserted group."""
        self.shown_groups.add(id)
        self._summaries[self.inserted[id].anchor] = 1

    def hide(self, id: int) -> None:
        """Hide an inserted group."""
        self.shown_groups.discard(id)
        anchor = self.inserted[id].anchor
        self._summaries[anchor] = any(self.shown_at(anchor))

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

    def with_inserted(self, ids: list[int]) -> list[int]:
        """Return ids of source groups, in order, together with the inserted groups that the view shows among them."""
        found: list[int] = []
        start = 0
        for anchor in self.anchors():
            end = bisect_left(ids, anchor)
            found += ids[start:end]
            found += self.shown_at(anchor)
            start = end
        return found + ids[start:]

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
        messages, summaries, skip = self.messages, self._summaries, self._skip_left
        at = skip.get(start, start)
        if at and not (summaries[at] or messages[at - 1]):
            at = skip.get(at - 1, at - 1)
        message = messages.rfind(1, 0, at)
        summary = summaries.rfind(1, message + 1, at + 1)
        at = max(summary, message + 1)
        if at < start:
            skip[start] = at
        if summary >= 0:
            return next(filter(self.is_shown, reversed(self._anchored[summary])))
        return None if message < 0 else message

    def _rightward(self, start: int) -> Node | None:
        """Return the first place shown from ``start`` on, inserted groups directly before it included."""
        messages, summaries, skip = self.messages, self._summaries, self._skip_right
        at, end = skip.get(start, start), len(messages)
        if at < end and not (summaries[at] or messages[at]):
            at = skip.get(at + 1, at + 1)
        message = messages.find(1, at)
        summary = summaries.find(1, at, end if message < 0 else message + 1)
        at = message if summary < 0 else summary
        if start < at:
            skip[start] = at
        if summary >= 0:
            return next(self.shown_at(summary))
        return None if message < 0 else message


def joined(runs: Iterable[range]) -> list[range]:
    """Return runs of ordinals in order, with those that touch or overlap joined.

    >>> joined([range(4, 6), range(1), range(1, 3)])
    [range(0, 3), range(4, 6)]
    """
    found: list[range] = []
    for run in sorted(runs, key=attrgetter("start")):
        if found and run.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, run.stop))
        else:
            found.append(run)
    return found
