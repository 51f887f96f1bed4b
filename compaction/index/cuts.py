"""Cuts: what can leave together, and what one message can replace.

A *cut* is one of the smallest sets of groups that can only be removed together; `MessageIndex.steps` yields them. It may be
removed if the messages around each run of its groups may then follow one another. The functions here only plan; the caller
drops or replaces the groups.

A caller offers *units*, groups that it wants to remove together, such as those of a turn; the others stay. In a format with
rules about neighbours, `_between_joins` plans three times, each time with the units that are left:

1. From the oldest group of each gap on, as the format prefers it (`_from_oldest`). A *gap* is a run of offered groups.
2. From any group on, as the format prefers it (`_Pass`).
3. From any group on, as the format allows it (`_Pass`).

In any other format only the first message of the view matters (`_behind_opening`). `replaceable` answers the second question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .columns import Columns
from .groups import GroupKind
from .visibility import Node

_WALKS: Final = 2
"""How often the view is searched for runs that begin with a gap's oldest group; each removed group may allow further runs."""

_MayFollow: TypeAlias = Callable[["Message | None", "Message | None"], bool]
"""Whether the second message may follow the first; ``None`` is the start or the end of the view."""


def units_of(ids: Iterable[int], together: Callable[[int, int], bool] | None) -> Iterator[list[int]]:
    """Yield the groups that are removed only together, in order: each alone, unless ``together`` joins it to the one before."""
    if together is None:
        for id in ids:
            yield [id]
        return
    unit: list[int] = []
    for id in ids:
        if unit and not together(unit[-1], id):
            yield unit
            unit = []
        unit.append(id)
    if unit:
        yield unit


def plan_cuts(
    columns: Columns,
    units: Iterable[list[int]],
    *,
    preferred_only: bool = False,
    replaced: bool = False,
) -> Iterator[list[int]]:
    """Return the smallest runs of these units that can be removed together, oldest first (see `MessageIndex.steps`).

    If the format allows all these units to be removed, the cuts together name all of them.
    """
    if columns.format.judges_joins:
        return _between_joins(columns, units, preferred_only=preferred_only)
    return iter(units) if replaced else _behind_opening(columns, units, preferred_only=preferred_only)


def _between_joins(columns: Columns, units: Iterable[Sequence[int]], *, preferred_only: bool) -> Iterator[list[int]]:
    """Yield the cuts for a format with rules about which message may follow which."""
    waiting, format = _distinct(units), columns.format

    def prefers(one: Message | None, other: Message | None) -> bool:
        return format.prefers(one, other) and format.follows(one, other)

    gone: set[int] = set()
    pieces = _Pieces(columns)
    for _ in range(_WALKS):
        count = len(gone)
        for cut in _from_oldest(pieces, prefers, waiting):
            gone.update(cut)
            yield cut
        if len(gone) == count:
            break
        waiting = [left for unit in waiting if (left := [id for id in unit if id not in gone])]
        pieces = _Pieces(columns, gone)
    for may_follow in (prefers,) if preferred_only else (prefers, format.follows):
        planned = _Pass(pieces, may_follow)
        for unit in waiting:
            yield from planned.add(unit)
        waiting = planned.remaining()


def _distinct(units: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return the units without repeated groups: each group stays only in the first unit that names it."""
    known: set[int] = set()
    distinct: list[list[int]] = []
    for unit in units:
        new = [id for id in dict.fromkeys(unit) if id not in known]
        known.update(new)
        if new:
            distinct.append(new)
    return distinct


def _behind_opening(columns: Columns, units: Iterable[list[int]], *, preferred_only: bool) -> Iterator[list[int]]:
    """Yield the cuts for a format in which any message may follow any other, and only the opening group matters.

    A group with which the format prefers a view to begin stays until the same is true of its successor. It is removed with the
    last unit before that successor, or alone in the last cut.
    """
    kinds, system = columns.grouping.kinds, GroupKind.SYSTEM
    view = iter([id for id in columns.ids() if id < 0 or kinds[id] is not system])
    opening = next(view, None)  # the group that opens the view after all planned cuts
    opens = opening is None or _opens(columns, opening)
    held: list[int] = []
    gone: set[int] = set()
    for given in units:
        unit = given if gone.isdisjoint(given) else [id for id in given if id not in gone]
        if not unit:
            continue
        gone.update(unit)
        first, opened = opening, opens
        if opening in gone:
            while opening in gone:
                opening = next(view, None)
            opens = opening is None or _opens(columns, opening)
        if opens:
            yield held + unit if held else unit
            held = []
        elif held or first is None or not opened:
            yield unit
        else:
            held = [first]
            if len(unit) > 1:
                yield [id for id in unit if id != first]
    if held and not preferred_only:
        yield held


def _opens(columns: Columns, id: int) -> bool:
    """Whether a conversation may begin with this group; only a summary's message is read."""
    kind = columns.kind(id)
    if kind is GroupKind.SUMMARY:
        return columns.format.prefers(None, columns.at(id, end=False))
    return kind is GroupKind.USER


def _from_oldest(pieces: _Pieces, may_follow: _MayFollow, units: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the runs that can be removed from a gap's oldest group on, found in one walk over the view.

    A gap is a run of removable groups between two groups that stay. Groups with other groups' messages between their own are
    not removed here. Of a unit that covers several gaps, the groups that cannot be removed from their gap stay.
    """
    ends = {unit[-1] for unit in units}
    free = {id for unit in units for id in unit if len(pieces.of_group.get(id, ())) == 1}
    before: Message | None = None
    earlier: list[int] = []  # of units that end in a later gap
    run: list[int] = []
    for piece, id in enumerate(pieces.groups):
        if id in free:
            run.append(id)
            if id in ends and may_follow(before, pieces.first(piece + 1)):
                yield earlier + run
                earlier, run = [], []
            continue
        if run and may_follow(before, pieces.first(piece)):
            earlier += run
        leads = before is None and pieces.is_system(piece) and not run and not earlier
        before, run = None if leads else pieces.end(piece), []


class _Pieces:
    """The view as pieces, runs of successive messages of one group, without the groups that are ``gone``.

    Holds state: the pieces that were taken out. A piece is a number; `end_place` is the one after the last.
    """

    def __init__(self, columns: Columns, gone: Collection[int] = ()) -> None:
        self._columns = columns
        self.groups: list[int] = []
        self._first: list[Node] = []
        self._last: list[Node] = []
        group_of = columns.grouping.group_of
        for node in columns.visibility.nodes():
            id = node if node < 0 else group_of[node]
            if self.groups and self.groups[-1] == id:
                self._last[-1] = node
            elif id not in gone:
                self.groups.append(id)
                self._first.append(node)
                self._last.append(node)
        self.end_place = len(self.groups)
        self.of_group: dict[int, list[int]] = {}
        for piece, id in enumerate(self.groups):
            self.of_group.setdefault(id, []).append(piece)
        # the neighbours of each piece that were not taken out; -1 is before the first one
        self.left = list(range(-1, self.end_place - 1))
        self.right = list(range(1, self.end_place + 1))
        self._opening = 0  # the first piece that may open the view: it is not an instruction

    def whole(self) -> set[int]:
        """Return the ids of the groups whose messages are not separated by others."""
        return {id for id, own in self.of_group.items() if len(own) == 1}

    def first(self, piece: int) -> Message | None:
        """Return the first message of a piece; ``None`` past the end."""
        return None if piece == self.end_place else self._columns.at(self._first[piece], end=False)

    def end(self, piece: int) -> Message:
        """Return the last message of a piece."""
        return self._columns.at(self._last[piece], end=True)

    def is_system(self, piece: int) -> bool:
        """Whether the first and the last message of a piece are instructions."""
        return self.end(piece).is_system and self._columns.at(self._first[piece], end=False).is_system

    def opening(self, leaving: Mapping[int, int]) -> int:
        """Return the first piece that stays and is not an instruction; ``leaving`` has each run by its first piece."""
        while self._opening < self.end_place and self.is_system(self._opening):
            self._opening = self.right[self._opening]
        piece = self._opening
        while piece < self.end_place and (piece in leaving or self.is_system(piece)):
            piece = self.right[leaving.get(piece, piece)]
        return piece

    def take_out(self, start: int, end: int) -> None:
        """Take out the pieces from ``start`` to ``end``, with no others between them."""
        before, after = self.left[start], self.right[end]
        if start <= self._opening <= end:
            self._opening = after
        if before >= 0:
            self.right[before] = after
        if after < self.end_place:
            self.left[after] = before


@attrs.define(eq=False)
class _Block:
    """Units, with their numbers, that cannot be removed by themselves, and the runs of pieces they cover. Holds state."""

    units: list[tuple[int, list[int]]]
    runs: dict[int, int] = attrs.Factory(dict[int, int])


class _Pass:
    """One pass over the units with one rule for which message may follow which. Holds state.

    A unit that cannot be removed yet is held. Held units whose pieces touch form one block, which is removed as soon as a
    further unit makes its neighbours fit: of ``user, call, call, user`` both calls, when the second is added.
    """

    def __init__(self, pieces: _Pieces, may_follow: _MayFollow) -> None:
        self._pieces = pieces
        self._may_follow = may_follow
        self._starts: dict[int, _Block] = {}
        self._ends: dict[int, tuple[int, _Block]] = {}
        self._count = 0

    def add(self, unit: list[int]) -> Iterator[list[int]]:
        """Add one more unit, and yield every run that can be removed now."""
        self._count += 1
        waiting = [(self._count, unit)]
        while waiting:
            number, each = waiting.pop()
            alone = sorted(piece for id in each for piece in self._pieces.of_group.get(id, ()))
            if not alone:
                continue
            block = _Block([(number, each)])
            for piece in alone:
                block = self._cover(piece, block)
            if self._may_go(block.runs.items()):
                self._take_out(block, block.runs.items())
                yield [id for _, other in sorted(block.units) for id in other]
            elif len(block.units) > 1 and self._may_go(runs := _runs(self._pieces, alone)):
                # It can be removed alone; the units held with it are tried again, beside their new neighbours.
                self._take_out(block, runs)
                yield list(each)
                waiting += sorted((other for other in block.units if other[0] != number), reverse=True)

    def remaining(self) -> list[list[int]]:
        """Return the units that could not be removed, in the order of `add`."""
        units = {number: unit for block in self._starts.values() for number, unit in block.units}
        return [units[number] for number in sorted(units)]

    def _cover(self, piece: int, block: _Block) -> _Block:
        """Add a piece to a block, merge it with the blocks on either side, and return the result."""
        left, right = self._pieces.left[piece], self._pieces.right[piece]
        start = end = piece
        if left in self._ends:
            start, other = self._ends[left]
            block = self._merged(block, other)
        if right in self._starts:
            block = self._merged(block, self._starts[right])
            end = block.runs[right]
        if start != piece:
            del block.runs[start], self._ends[left]
        if end != piece:
            del block.runs[right], self._starts[right]
        block.runs[start] = end
        self._starts[start], self._ends[end] = block, (start, block)
        return block

    def _merged(self, one: _Block, other: _Block) -> _Block:
        """Return both as one: the smaller is merged into the larger."""
        if one is other:
            return one
        if len(one.units) + len(one.runs) < len(other.units) + len(other.runs):
            one, other = other, one
        one.units += other.units
        for start, end in other.runs.items():
            one.runs[start] = end
            self._starts[start], self._ends[end] = one, (start, one)
        return one

    def _may_go(self, runs: Iterable[tuple[int, int]]) -> bool:
        """Whether these runs of pieces may go: the neighbours of each may then follow one another."""
        pieces, leaving = self._pieces, dict(runs)
        opening = pieces.opening(leaving)
        for start, end in leaving.items():
            left = pieces.left[start]
            if not self._may_follow(None if left < opening else pieces.end(left), pieces.first(pieces.right[end])):
                return False
        return True

    def _take_out(self, block: _Block, runs: Iterable[tuple[int, int]]) -> None:
        """Take runs out of the view, and release the units of their block."""
        for start, end in block.runs.items():
            del self._starts[start], self._ends[end]
        for start, end in runs:
            self._pieces.take_out(start, end)


def _runs(pieces: _Pieces, alone: Sequence[int]) -> list[tuple[int, int]]:
    """Return the runs that these pieces form, each as its first and last piece."""
    runs: list[tuple[int, int]] = []
    for piece in alone:
        if runs and runs[-1][1] == pieces.left[piece]:
            runs[-1] = (runs[-1][0], piece)
        else:
            runs.append((piece, piece))
    return runs


# -------------------------------------------------------------------- replacing groups by one message


def neighbours(columns: Columns, gone: Collection[int]) -> tuple[Message | None, Message | None]:
    """Return the messages before and after the message that would replace these groups. O(messages).

    It takes the place of the last group. Instructions that open the view do not count as a neighbour: to a provider, the
    message after them is the first one.
    """
    pieces = _Pieces(columns)
    place = max(at for at, id in enumerate(pieces.groups) if id in gone)
    left = [at for at, id in enumerate(pieces.groups[:place]) if id not in gone]
    return None if all(map(pieces.is_system, left)) else pieces.end(left[-1]), pieces.first(place + 1)


def interleaved(columns: Columns) -> set[int]:
    """Return the groups with other groups' messages between their own, and those other groups; O(messages)."""
    if not columns.format.judges_joins:
        return set()
    pieces = _Pieces(columns)
    apart = pieces.of_group.keys() - pieces.whole()
    return apart | _within(pieces, apart)


def replaceable(columns: Columns, ids: Sequence[int]) -> list[int]:
    """Return those of these groups that one message can replace, ordered by their last messages; O(messages).

    The message takes the place of the last group. If other groups stay between the removed ones, there are several gaps, and
    the message fills only the last one: the neighbours of every other gap must be allowed to follow one another.
    """
    if not columns.format.judges_joins:
        return list(ids)
    free = set(ids)
    gone: set[int] = set()
    while True:  # again, since a removed group may have separated the messages of another
        pieces = _Pieces(columns, gone)
        earlier, last = _gaps(columns.format, pieces, free & pieces.whole())
        if not earlier:
            break
        gone |= earlier
    pieces = _Pieces(columns)
    ends = {id: own[-1] for id, own in pieces.of_group.items()}
    chosen = gone | last
    chosen -= _within(pieces, ends.keys() - chosen)  # a replacement never separates the messages of a group that stays
    return sorted((id for id in ids if id in chosen), key=ends.__getitem__)


def _gaps(format: MessageFormat, pieces: _Pieces, free: set[int]) -> tuple[set[int], set[int]]:
    """Return the groups that may be removed from the gaps before the last one, and the groups of the last gap."""
    gaps: list[tuple[list[int], list[int]]] = []  # the pieces of each, and those that may be removed without a replacement
    before: Message | None = None
    run: list[int] = []
    for piece, id in enumerate(pieces.groups):
        if id in free:
            run.append(piece)
            continue
        may_go = _oldest_of_gap(format, pieces, before, run, piece) if run else []
        if run:
            gaps.append((run, may_go))
        first = pieces.first(piece)
        leads = before is None and first is not None and first.is_system and len(may_go) == len(run)
        before, run = None if leads else pieces.end(piece), []
    if run:
        gaps.append((run, run))
    earlier = {pieces.groups[piece] for _, may_go in gaps[:-1] for piece in may_go}
    return earlier, {pieces.groups[piece] for piece in gaps[-1][0]} if gaps else set()


def _oldest_of_gap(format: MessageFormat, pieces: _Pieces, before: Message | None, run: list[int], after: int) -> list[int]:
    """Return as many of the oldest pieces (``run``) of a gap as the format prefers to be removed from between its neighbours.

    The message after an instruction stays.
    """
    if before is not None and before.is_system:
        before, run = pieces.end(run[0]), run[1:]
    following = [pieces.first(piece) for piece in [*run, after][1:]]  # after one removed piece, after two, ...
    return run[: next((count for count in range(len(run), 0, -1) if format.prefers(before, following[count - 1])), 0)]


def _within(pieces: _Pieces, groups: Collection[int]) -> set[int]:
    """Return the ids of the groups with a message between the messages of one of these groups."""
    within: set[int] = set()
    end = -1
    for piece, id in enumerate(pieces.groups):
        if piece < end:
            within.add(id)
        if id in groups:
            end = max(end, pieces.of_group[id][-1])
    return within
