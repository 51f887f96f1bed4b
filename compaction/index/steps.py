"""Steps: the smallest runs of groups that can leave together so that the provider still takes what is left.

A run may leave if its neighbours may then follow one another. Runs that the format prefers come first: those from the oldest
group of a gap on, then the others. A run that the format merely allows comes after all of those. Nothing is changed here:
whoever asks drops each step, or only plans with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ..formats import MessageFormat
from ..messages import Message
from .groups import GroupKind
from .projection import Projection

_WALKS: Final = 2
"""How often the view is walked for runs from the oldest group on: what left may have stood between the messages of a group."""

_Joins: TypeAlias = Callable[["Message | None", "Message | None"], bool]


def units_of(ids: Iterable[int], together: Callable[[int, int], bool] | None) -> Iterator[list[int]]:
    """The groups that leave only together, in order: each one alone, unless ``together`` joins it to the one before."""
    unit: list[int] = []
    for id in ids:
        if unit and (together is None or not together(unit[-1], id)):
            yield unit
            unit = []
        unit.append(id)
    if unit:
        yield unit


def steps(
    projection: Projection,
    format: MessageFormat,
    units: Iterable[Sequence[int]],
    *,
    preferred_only: bool = False,
    replaced: bool = False,
) -> Iterator[list[int]]:
    """The smallest runs of these units that can leave together, oldest first; O(messages in the view) for all of them.

    Every set of units whose leaving the format allows is reached: it is the union of the steps made of it.

    Args:
        projection: The view; a step is planned as if the ones before it had been dropped.
        format: Its wire format.
        units: Groups that may leave, by id, in order; the groups of one unit leave together, as many of them as can.
        preferred_only: Whether to leave out runs that the format allows and does not prefer.
        replaced: Whether a message will stand in their place, and so opens the view where only its beginning matters.
    """
    if not format.judges_joins:
        yield from map(list, units) if replaced else _behind_opening(projection, format, units, preferred_only=preferred_only)
        return
    waiting = _distinct(units)

    def prefers(one: Message | None, other: Message | None) -> bool:
        return format.prefers(one, other) and format.follows(one, other)

    gone: set[int] = set()
    pieces = _Pieces(projection, gone)
    for _ in range(_WALKS):
        count = len(gone)
        for step in _from_oldest(pieces, prefers, waiting):
            gone.update(step)
            yield step
        if len(gone) == count:
            break
        waiting = [left for unit in waiting if (left := [id for id in unit if id not in gone])]
        pieces = _Pieces(projection, gone)
    for joins in (prefers,) if preferred_only else (prefers, format.follows):
        planned = _Plan(pieces, joins)
        for unit in waiting:
            yield from planned.add(unit)
        waiting = planned.held()


def _distinct(units: Iterable[Sequence[int]]) -> list[list[int]]:
    """The units that name a group, each group only where it is named first."""
    known: set[int] = set()
    distinct: list[list[int]] = []
    for unit in units:
        new = [id for id in dict.fromkeys(unit) if id not in known]
        known.update(new)
        if new:
            distinct.append(new)
    return distinct


def _behind_opening(
    projection: Projection, format: MessageFormat, units: Iterable[Sequence[int]], *, preferred_only: bool
) -> Iterator[list[int]]:
    """The units, where any message may follow any other and only the one that opens the view matters.

    It stays until what would open the view instead does so as well, and leaves with the unit before that, or at last alone.
    """
    kind, system = projection.kind, GroupKind.SYSTEM
    view = (id for id in projection.ids() if kind(id) is not system)
    opening = next(view, None)  # once all that was planned has left
    held: list[int] = []
    gone: set[int] = set()
    for given in units:
        unit = [id for id in given if id not in gone] if len(given) > 1 or given[0] in gone else list(given)
        if not unit:
            continue
        gone.update(unit)
        first = opening
        while opening in gone:
            opening = next(view, None)
        if opening is None or _opens(projection, format, opening):
            yield held + unit
            held = []
        elif held or first is None or not _opens(projection, format, first):
            yield unit
        else:
            held = [first]
            if len(unit) > 1:
                yield [id for id in unit if id != first]
    if held and not preferred_only:
        yield held


def _opens(projection: Projection, format: MessageFormat, id: int) -> bool:
    """Whether a conversation reads well with this group first; only a summary's message is asked for."""
    kind = projection.kind(id)
    if kind is GroupKind.SUMMARY:
        return format.prefers(None, projection.at(id, end=False))
    return kind is GroupKind.USER


def _from_oldest(pieces: _Pieces, joins: _Joins, units: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The runs that leave a gap from its oldest group on, found in one walk over the view.

    A gap is what may leave between two groups that stay. Groups with others between their messages stay here. Of a unit that
    covers several gaps, those groups stay that cannot leave their gap.
    """
    ends = {unit[-1] for unit in units}
    free = {id for unit in units for id in unit if len(pieces.of_group.get(id, ())) == 1}
    before: Message | None = None
    earlier: list[int] = []  # of units that end in a later gap
    run: list[int] = []
    for piece, id in enumerate(pieces.groups):
        if id in free:
            run.append(id)
            if id in ends and joins(before, pieces.first(piece + 1)):
                yield earlier + run
                earlier, run = [], []
            continue
        if run and joins(before, pieces.first(piece)):
            earlier += run
        leads = before is None and pieces.is_system(piece) and not run and not earlier
        before, run = None if leads else pieces.end(piece), []


class _Pieces:
    """The view as runs of messages of one group each, linked to their neighbours. Holds state: which were taken out.

    Args:
        projection: The view.
        gone: Groups to leave out, as if they had left it.
    """

    def __init__(self, projection: Projection, gone: Collection[int]) -> None:
        self._projection = projection
        self.nodes: list[tuple[int, int]] = []  # the first and last place of each piece
        self.groups: list[int] = []  # the group of each piece
        self.of_group: dict[int, list[int]] = {}
        for node, id in projection.nodes():
            if id in gone:
                continue
            if self.groups and id == self.groups[-1]:
                self.nodes[-1] = (self.nodes[-1][0], node)
                continue
            self.of_group.setdefault(id, []).append(len(self.nodes))
            self.nodes.append((node, node))
            self.groups.append(id)
        self.left = list(range(-1, len(self.nodes) - 1))
        self.right = list(range(1, len(self.nodes) + 1))
        self._opening = 0

    def first(self, piece: int) -> Message | None:
        """The first message of a piece; ``None`` past the end."""
        return None if piece == len(self.nodes) else self._projection.at(self.nodes[piece][0], end=False)

    def end(self, piece: int) -> Message:
        """The last message of a piece."""
        return self._projection.at(self.nodes[piece][1], end=True)

    def is_system(self, piece: int) -> bool:
        """Whether a piece is an instruction from its first message to its last."""
        return self.end(piece).is_system and self._projection.at(self.nodes[piece][0], end=False).is_system

    def opening(self, leaving: Mapping[int, int]) -> int:
        """The first piece that stays and is not an instruction; instructions before it lead the view.

        Args:
            leaving: The runs that leave, by their first piece, with the last.
        """
        while self._opening < len(self.nodes) and self.is_system(self._opening):
            self._opening = self.right[self._opening]
        piece = self._opening
        while piece < len(self.nodes) and (piece in leaving or self.is_system(piece)):
            piece = self.right[leaving.get(piece, piece)]
        return piece

    def take_out(self, start: int, end: int) -> None:
        """Take the pieces from ``start`` to ``end`` out, between which nothing else is left."""
        before, after = self.left[start], self.right[end]
        if start <= self._opening <= end:
            self._opening = after
        if before >= 0:
            self.right[before] = after
        if after < len(self.nodes):
            self.left[after] = before


class _Held:
    """Units that cannot leave by themselves, connected because their pieces touch. Holds state.

    Args:
        unit: The first of them, with its place among those asked about.

    Attributes:
        units: The units, each with its place among those asked about.
        runs: The runs of pieces they cover, by their first piece, with the last.
    """

    __slots__ = ("runs", "units")

    def __init__(self, unit: tuple[int, list[int]]) -> None:
        self.units = [unit]
        self.runs: dict[int, int] = {}


class _Plan:
    """One pass over the units with one opinion of which neighbours may follow one another. Holds state."""

    def __init__(self, pieces: _Pieces, joins: _Joins) -> None:
        self._pieces = pieces
        self._joins = joins
        self._starts: dict[int, _Held] = {}
        self._ends: dict[int, tuple[int, _Held]] = {}
        self._asked = 0

    def add(self, unit: list[int]) -> Iterator[list[int]]:
        """Ask about one more unit; yields every run that can leave now."""
        self._asked += 1
        waiting = [(self._asked, unit)]
        while waiting:
            number, each = waiting.pop()
            alone = sorted(piece for id in each for piece in self._pieces.of_group.get(id, ()))
            if not alone:
                continue
            held = _Held((number, each))
            for piece in alone:
                held = self._cover(piece, held)
            if self._leaves(held.runs.items()):
                self._take_out(held, held.runs.items())
                yield [id for _, other in sorted(held.units) for id in other]
            elif len(held.units) > 1 and self._leaves(runs := _runs(self._pieces, alone)):
                # It can leave by itself; what it was held with is asked about again, beside its new neighbours.
                self._take_out(held, runs)
                yield list(each)
                waiting += sorted((other for other in held.units if other[0] != number), reverse=True)

    def held(self) -> list[list[int]]:
        """The units that could not leave, in the order they were asked about."""
        left = {number: unit for held in self._starts.values() for number, unit in held.units}
        return [left[number] for number in sorted(left)]

    def _cover(self, piece: int, held: _Held) -> _Held:
        """Add a piece to what is held, joined with what is held on either side; returns the whole."""
        left, right = self._pieces.left[piece], self._pieces.right[piece]
        start = end = piece
        if left in self._ends:
            start, other = self._ends[left]
            held = self._merged(held, other)
        if right in self._starts:
            held = self._merged(held, self._starts[right])
            end = held.runs[right]
        if start != piece:
            del held.runs[start], self._ends[left]
        if end != piece:
            del held.runs[right], self._starts[right]
        held.runs[start] = end
        self._starts[start], self._ends[end] = held, (start, held)
        return held

    def _merged(self, one: _Held, other: _Held) -> _Held:
        """Both as one: the smaller moves into the larger."""
        if one is other:
            return one
        if len(one.units) + len(one.runs) < len(other.units) + len(other.runs):
            one, other = other, one
        one.units += other.units
        for start, end in other.runs.items():
            one.runs[start] = end
            self._starts[start], self._ends[end] = one, (start, one)
        return one

    def _leaves(self, runs: Iterable[tuple[int, int]]) -> bool:
        """Whether the view would still be right without these runs of pieces."""
        pieces, leaving = self._pieces, dict(runs)
        opening = pieces.opening(leaving)
        for start, end in leaving.items():
            left = pieces.left[start]
            if not self._joins(None if left < opening else pieces.end(left), pieces.first(pieces.right[end])):
                return False
        return True

    def _take_out(self, held: _Held, runs: Iterable[tuple[int, int]]) -> None:
        """Take runs out of the view, and hold no longer what was held together."""
        for start, end in held.runs.items():
            del self._starts[start], self._ends[end]
        for start, end in runs:
            self._pieces.take_out(start, end)


def _runs(pieces: _Pieces, alone: Sequence[int]) -> list[tuple[int, int]]:
    """The runs that some pieces form by themselves, each by its first and last piece."""
    runs: list[tuple[int, int]] = []
    for piece in alone:
        if runs and runs[-1][1] == pieces.left[piece]:
            runs[-1] = (runs[-1][0], piece)
        else:
            runs.append((piece, piece))
    return runs
