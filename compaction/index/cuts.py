"""Cuts: which groups can leave the view together.

A *cut* is one of the smallest sets of groups that can only be removed together; `MessageIndex.steps` yields them. It may be
removed if the messages around each run of its groups may then follow one another. The functions here only plan; the caller
drops or replaces the groups.

A caller offers *units*, groups that it wants to remove together, such as those of a turn; all other groups stay. In a format
with rules about neighbours, `CutPlanner` goes over the units three times, each time over those that are left:

1. From the oldest group of each run of offered groups on, as the format prefers it (`from_oldest`).
2. Unit by unit in the caller's order, as the format prefers it (`one_by_one`). A unit that cannot leave yet is *held*. Held
   units that touch form a *block*, which leaves as soon as one more unit makes its neighbours fit.
3. Unit by unit, as the format allows it.

For example, an answer of the assistant (``a``) should follow a message of the user (``u``), and may follow another answer::

    view          u0  a1  u2  a3  u4  a5  a6  a7      offered: 2, 3, 4, 5 and 6, each as a unit

    from_oldest   2: a3 would follow a1. With 3: u4 would, which is fine                               cut [2, 3]
                  4: a5 would follow a1. With 5: a6 would. With 6: a7 would
    one_by_one    4: a5 would follow a1, so 4 is held
                  5: without the block 4 5, a6 would follow a1; without 5 alone, a6 follows u4         cut [5]
                  4: offered again, since it has a new neighbour; a6 would follow a1, so 4 is held
                  6: without the block 4 6, a7 would follow a1; without 6 alone, a7 follows u4         cut [6]
                  4: a7 would follow a1, so 4 is held
    one_by_one    4: a7 may follow a1                                                                  cut [4]

    >>> from compaction import MessageIndex
    >>> messages = [{"role": {"u": "user", "a": "assistant"}[who], "content": who} for who in "uauauaaa"]
    >>> index = MessageIndex(messages, format="anthropic", counter="chars/4")
    >>> list(index.steps([2, 3, 4, 5, 6]))
    [[2, 3], [5], [6], [4]]
    >>> list(index.steps([2, 3, 6, 5, 4]))
    [[2, 3], [6, 5], [4]]
    >>> list(index.steps([1, 2, 5, 6], together=lambda one, other: True))
    [[1, 2, 5, 6]]

In the second list, 6 is held, since a7 would follow a5. Then 5 is offered; without the block 5 6, a7 follows u4.

In any other format only the first message of the view matters (`_behind_opening`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import starmap
from typing import NamedTuple, TypeAlias

from ..messages import Message
from .columns import Columns
from .groups import GroupKind
from .visibility import Node

_MayFollow: TypeAlias = Callable[["Message | None", "Message | None"], bool]
"""Whether the second message may follow the first; ``None`` is the start or the end of the view."""


def plan_cuts(
    columns: Columns, ids: Iterable[int], together: Callable[[int, int], bool] | None, *, preferred_only: bool, replaced: bool
) -> Iterator[list[int]]:
    """Return the cuts of these groups, see `MessageIndex.steps`; if all may be removed, the cuts together name all of them."""
    distinct = dict.fromkeys(ids)
    if together is None:
        units = [[id] for id in distinct]
    else:
        units = list[list[int]]()
        for id in distinct:
            if units and together(units[-1][-1], id):
                units[-1].append(id)
            else:
                units.append([id])
    return plan_units(columns, units, preferred_only=preferred_only, replaced=replaced)


def plan_units(
    columns: Columns, units: Sequence[list[int]], *, preferred_only: bool = False, replaced: bool = False
) -> Iterator[list[int]]:
    """Yield the cuts of `plan_cuts` for units that have no group in common."""
    format = columns.format
    if not format.judges_joins:
        yield from units if replaced else _behind_opening(columns, units, preferred_only=preferred_only)
        return

    def prefers(one: Message | None, other: Message | None) -> bool:
        return format.prefers(one, other) and format.follows(one, other)

    planner = CutPlanner(Pieces(columns))
    yield from planner.from_oldest(units, prefers)
    yield from planner.one_by_one(units, prefers)
    if not preferred_only:
        yield from planner.one_by_one(units, format.follows)


# -------------------------------------------------------------------- where any message may follow any other


def _behind_opening(columns: Columns, units: Iterable[list[int]], *, preferred_only: bool) -> Iterator[list[int]]:
    """Yield the cuts for a format in which any message may follow any other, and only the opening group matters.

    A group with which the format prefers a view to begin is held until the same is true of its successor. It is removed with
    the last unit before that successor, or alone in the last cut.
    """
    kinds, system = columns.grouping.kinds, GroupKind.SYSTEM
    view = iter([id for id in columns.ids() if id < 0 or kinds[id] is not system])
    opening = next(view, None)  # the group that opens the view after all units so far
    opens_well = opening is None or _opens_well(columns, opening)
    held: list[int] = []  # the group that opened the view well, and has a successor that does not
    gone: set[int] = set()
    for unit in units:
        gone.update(unit)
        opener, opened_well = opening, opens_well  # before this unit
        if opening in gone:
            while opening in gone:
                opening = next(view, None)
            opens_well = opening is None or _opens_well(columns, opening)
        if opens_well:
            yield held + unit if held else unit
            held = []
        elif opened_well:
            held = [id for id in unit if id == opener]
            if len(unit) > 1:
                yield [id for id in unit if id != opener]
        else:
            yield unit
    if held and not preferred_only:
        yield held


def _opens_well(columns: Columns, id: int) -> bool:
    """Whether the format prefers a conversation to begin with this group; only a summary's message is read."""
    kind = columns.kind(id)
    if kind is GroupKind.SUMMARY:
        return columns.format.prefers(None, columns.at(id, end=False))
    return kind is GroupKind.USER


# -------------------------------------------------------------------- where the format has rules about neighbours


class Pieces:
    """The view as runs of successive messages of one group, numbered from 0, without the groups that are ``gone``.

    Most groups are one piece. A group has several if messages of other groups are between its own, such as the result of
    another call between a call and its result. Later edits do not change the pieces.
    """

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
        """Return the first message of a piece; ``None`` if the piece does not exist."""
        return self._columns.at(self._ends[piece][0], end=False) if 0 <= piece < len(self._ends) else None

    def last(self, piece: int) -> Message:
        """Return the last message of a piece."""
        return self._columns.at(self._ends[piece][1], end=True)

    def is_system(self, piece: int) -> bool:
        """Whether the first and the last message of a piece are instructions."""
        return self.last(piece).is_system and self._columns.at(self._ends[piece][0], end=False).is_system


class _Block(NamedTuple):
    """Held units that touch, directly or through others, and the gaps that they are in."""

    units: set[int]
    gaps: set[int]


class CutPlanner:
    """Plans the cuts of one view. Holds state: which pieces are in no cut yet, and which of them are held.

    A *gap* is a run of pieces that do not stay, between two that do. Its number is the piece before it, or -1 at the start.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._uncut = bytearray(b"\1") * len(pieces.groups)  # 1 for each piece that is in no cut; searched at C speed
        self._staying = self._uncut.copy()  # 1 for each of these that is not held; only for `one_by_one`
        self._block_in: dict[int, _Block] = {}  # by gap, if it has held units
        self._leading = 0  # the number of instructions at the start; to a provider, the view begins after them
        while self._leading < len(pieces.groups) and pieces.is_system(self._leading):
            self._leading += 1

    def from_oldest(
        self, units: Sequence[Sequence[int]], may_follow: _MayFollow, *, behind_instructions: bool = True
    ) -> Iterator[list[int]]:
        """Yield what can be removed from the oldest group of each run of offered groups on, in one walk over the view.

        A run ends before a group that stays; groups of several pieces stay here. A unit may cover several runs; its groups that
        cannot leave their run stay. If ``behind_instructions`` is false, so does a message after an instruction. For example,
        1, 2, 5 and 6 of the view above are one unit::

            1 2     a3 would follow u0, so they may leave, but their unit ends in a later run
            5 6     a7 would follow u4                                                           cut [1, 2, 5, 6]

        If a7 could not follow u4, all would stay here: 1 and 2 would be cut with the next unit that may leave, if there is one.
        """
        pieces = self._pieces
        ends = {unit[-1] for unit in units}
        free = {id for unit in units for id in unit} & pieces.whole()
        before: Message | None = None  # the message before the run; ``None`` if there are only leading instructions
        earlier: list[int] = []  # groups that may leave their earlier runs, of a unit that ends in a later one
        run: list[int] = []
        for piece, id in enumerate(pieces.groups):
            is_behind_instruction = not run and before is not None and before.is_system
            if id in free and (behind_instructions or not is_behind_instruction):  # the run continues
                run.append(id)
                if id in ends and may_follow(before, pieces.first(piece + 1)):
                    cut = earlier + run
                    self._set(self._uncut, cut, 0)
                    yield cut
                    earlier, run = [], []
                continue
            if run and may_follow(before, pieces.first(piece)):  # the piece stays, and ends the run
                earlier += run
            opens_view = before is None and not run and not earlier
            before = None if opens_view and pieces.is_system(piece) else pieces.last(piece)
            run = []

    def one_by_one(self, units: Iterable[Sequence[int]], may_follow: _MayFollow) -> Iterator[list[int]]:
        """Offer what is left of the units one after the other, and yield every cut that can then be removed.

        A unit that cannot be removed yet is held. Each unit forms a block with the held ones that it touches. The whole block
        is removed if it can be; otherwise the unit alone, if it can be, and the others of the block are offered again.
        """
        self._staying[:] = self._uncut  # nothing is held
        self._block_in.clear()
        offered = [left for unit in units if (left := [id for id in unit if self._is_uncut(id)])]
        waiting = [*range(len(offered))][::-1]  # numbers of units, the next one at the end
        while waiting:
            number = waiting.pop()
            block = self._hold(number, offered[number])
            if self._may_close(block.gaps, self._staying, may_follow):
                leaving = block.units
            elif len(block.units) > 1 and self._may_leave_alone(offered[number], may_follow):
                leaving = {number}
            else:
                continue
            for gap in block.gaps:
                del self._block_in[gap]
            others = block.units - leaving
            for each in others:
                self._set(self._staying, offered[each], 1)
            waiting += sorted(others, reverse=True)
            cut = [id for each in sorted(leaving) for id in offered[each]]
            self._set(self._uncut, cut, 0)
            yield cut

    def _is_uncut(self, id: int) -> bool:
        """Whether the view shows a group and it is in no cut; its pieces are so together."""
        own = self._pieces.of_group.get(id)
        return own is not None and self._uncut[own[0]] == 1

    def _set(self, pieces: bytearray, ids: Iterable[int], value: int) -> None:
        for piece in self._pieces.of_groups(ids):
            pieces[piece] = value

    def _hold(self, number: int, unit: Sequence[int]) -> _Block:
        """Hold a unit, and return its block; a block that a unit touches becomes a part of the unit's.

        For example, the pieces 1, 2 and 5 are held, and 4 and 7 together; ``|`` are pieces that stay. The block of 5 has all
        but the first two, and is in the gaps 3 and 6::

            piece      0   1   2   3   4   5   6   7   8
                       |   .   .   |   .   .   |   .   |
        """
        self._set(self._staying, unit, 0)
        block = _Block({number}, set())
        for piece in self._pieces.of_groups(unit):
            before, behind = self._staying.rfind(1, 0, piece), piece  # the two gaps at the piece, which are now one
            for gap in (before, behind):
                if (touched := self._block_in.get(gap, block)) is not block:
                    block = self._joined(block, touched)
            block.gaps.discard(behind)
            self._block_in.pop(behind, None)
            block.gaps.add(before)
            self._block_in[before] = block
        return block

    def _joined(self, one: _Block, other: _Block) -> _Block:
        """Return one block of two. The smaller is added to the larger, so all blocks together cost O(n log n)."""
        small, large = sorted((one, other), key=lambda block: len(block.units))
        large.units.update(small.units)
        large.gaps.update(small.gaps)
        self._block_in.update(dict.fromkeys(small.gaps, large))
        return large

    def _may_leave_alone(self, unit: Iterable[int], may_follow: _MayFollow) -> bool:
        """Whether a unit can be removed if all other uncut pieces stay."""
        self._set(self._uncut, unit, 0)
        gaps = {self._uncut.rfind(1, 0, piece) for piece in self._pieces.of_groups(unit)}
        may_leave = self._may_close(gaps, self._uncut, may_follow)
        self._set(self._uncut, unit, 1)
        return may_leave

    def _may_close(self, gaps: Iterable[int], remaining: bytearray, may_follow: _MayFollow) -> bool:
        """Whether the pieces on both sides of each gap may follow one another, if only those with a 1 here remain."""
        pieces = self._pieces
        opening = remaining.find(1, self._leading)
        while opening >= 0 and pieces.is_system(opening):
            opening = remaining.find(1, opening + 1)
        start = len(pieces.groups) if opening < 0 else opening
        neighbours = [(None if gap < start else pieces.last(gap), pieces.first(remaining.find(1, gap + 1))) for gap in gaps]
        return all(starmap(may_follow, neighbours))
