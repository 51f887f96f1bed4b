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

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .columns import Columns
from .groups import GroupKind
from .visibility import Node

_MayFollow: TypeAlias = Callable[["Message | None", "Message | None"], bool]
"""Whether the second message may follow the first; ``None`` is the start or the end of the view."""


def plan_cuts(
    columns: Columns,
    ids: Iterable[int],
    together: Callable[[int, int], bool] | None,
    *,
    preferred_only: bool,
    replaced: bool,
) -> Iterator[list[int]]:
    """Return the smallest runs of these groups that can be removed together, oldest first (see `MessageIndex.steps`).

    If the format allows all these groups to be removed, the cuts together name all of them.
    """
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
    """Return the cuts of `plan_cuts` for units that have no group in common."""
    if columns.format.judges_joins:
        return _between_joins(columns, units, preferred_only=preferred_only)
    return iter(units) if replaced else _behind_opening(columns, units, preferred_only=preferred_only)


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
    for unit in units:
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


def _between_joins(columns: Columns, units: Sequence[list[int]], *, preferred_only: bool) -> Iterator[list[int]]:
    """Yield the cuts for a format with rules about which message may follow which."""
    format, pieces = columns.format, _Pieces(columns)

    def prefers(one: Message | None, other: Message | None) -> bool:
        return format.prefers(one, other) and format.follows(one, other)

    for cut in _from_oldest(pieces, prefers, units):
        pieces.take_out(cut)
        yield cut
    waiting = [left for unit in units if (left := [id for id in unit if pieces.has(id)])]
    for may_follow in (prefers,) if preferred_only else (prefers, format.follows):
        planned = _Pass(pieces, may_follow)
        yield from planned.cuts(waiting)
        waiting = planned.held()


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

    Holds state: which pieces are still here. A piece is a number; before the first one is -1, and no piece after the last.
    """

    def __init__(self, columns: Columns, gone: Collection[int] = ()) -> None:
        self._columns = columns
        self.groups: list[int] = []  # of each piece
        self._nodes: list[tuple[Node, Node]] = []  # the first and the last of each piece
        group_of = columns.grouping.group_of
        for node in columns.visibility.nodes():
            id = node if node < 0 else group_of[node]
            if self.groups and self.groups[-1] == id:
                self._nodes[-1] = (self._nodes[-1][0], node)
            elif id not in gone:
                self.groups.append(id)
                self._nodes.append((node, node))
        self.of_group: dict[int, list[int]] = {}
        for piece, id in enumerate(self.groups):
            self.of_group.setdefault(id, []).append(piece)
        self.here = bytearray(b"\1" * len(self.groups))
        self._leading = 0  # the number of pieces before the first that is not an instruction
        while self._leading < len(self.groups) and self.is_system(self._leading):
            self._leading += 1

    def whole(self) -> set[int]:
        """Return the ids of the groups whose messages are not separated by others."""
        return {id for id, own in self.of_group.items() if len(own) == 1}

    def first(self, piece: int) -> Message | None:
        """Return the first message of a piece; ``None`` past the end."""
        return self._columns.at(self._nodes[piece][0], end=False) if 0 <= piece < len(self._nodes) else None

    def end(self, piece: int) -> Message:
        """Return the last message of a piece."""
        return self._columns.at(self._nodes[piece][1], end=True)

    def is_system(self, piece: int) -> bool:
        """Whether the first and the last message of a piece are instructions."""
        return self.end(piece).is_system and self._columns.at(self._nodes[piece][0], end=False).is_system

    def has(self, id: int) -> bool:
        """Whether the pieces of a group are here."""
        return any(self.here[piece] for piece in self.of_group.get(id, ()))

    def of_groups(self, ids: Iterable[int]) -> list[int]:
        """Return the pieces of groups."""
        return [piece for id in ids for piece in self.of_group.get(id, ())]

    def take_out(self, ids: Iterable[int]) -> None:
        """Take out the pieces of groups."""
        for piece in self.of_groups(ids):
            self.here[piece] = 0

    def may_leave(self, gaps: Iterable[int], staying: bytearray, may_follow: _MayFollow) -> bool:
        """Whether the neighbours of each gap may follow one another, if only the ``staying`` pieces stay.

        A gap is given by the piece before it. For the first message after leading instructions, that is the start of the view.
        """
        opening = staying.find(1, self._leading)
        while opening >= 0 and self.is_system(opening):
            opening = staying.find(1, opening + 1)
        start = len(self.groups) if opening < 0 else opening
        return all(may_follow(None if gap < start else self.end(gap), self.first(staying.find(1, gap + 1))) for gap in gaps)


@attrs.define(eq=False)
class _Block:
    """Units, with their numbers, that cannot be removed by themselves, and the gaps they leave. Holds state."""

    units: list[tuple[int, list[int]]]
    gaps: set[int] = attrs.Factory(set[int])  # the staying piece before each


class _Pass:
    """One pass over the units with one rule for which message may follow which. Holds state: the units that it holds.

    A unit that cannot be removed yet is held. Held units whose pieces touch form one block, which is removed as soon as a
    further unit makes its neighbours fit: of ``user, call, call, user`` both calls, when the second is added.
    """

    def __init__(self, pieces: _Pieces, may_follow: _MayFollow) -> None:
        self._pieces = pieces
        self._may_follow = may_follow
        self._staying = pieces.here.copy()  # the pieces that are neither taken out nor held
        self._blocks: dict[int, _Block] = {}  # by each of their gaps

    def cuts(self, units: Iterable[list[int]]) -> Iterator[list[int]]:
        """Add one unit after the other, and yield every cut that can then be removed."""
        pieces = self._pieces
        waiting = [*enumerate(units)][::-1]
        while waiting:
            number, unit = waiting.pop()
            own = pieces.of_groups(unit)
            block = self._hold(_Block([(number, unit)]), own)
            if pieces.may_leave(block.gaps, self._staying, self._may_follow):
                self._release(block)
                cut = [id for _, other in sorted(block.units) for id in other]
                pieces.take_out(cut)
                yield cut
            elif len(block.units) > 1 and self._left_alone(own):
                self._release(block)
                others = [other for other in block.units if other[0] != number]
                for piece in pieces.of_groups(id for _, other in others for id in other):
                    self._staying[piece] = 1
                waiting += sorted(others, reverse=True)  # they are tried again, beside their new neighbours
                yield unit

    def held(self) -> list[list[int]]:
        """Return the units that could not be removed, in order."""
        units = {number: unit for block in self._blocks.values() for number, unit in block.units}
        return [units[number] for number in sorted(units)]

    def _hold(self, block: _Block, own: Iterable[int]) -> _Block:
        """Hold the pieces of a new block, merge it with the blocks that they touch, and return the result."""
        for piece in own:
            self._staying[piece] = 0
            gap = self._staying.rfind(1, 0, piece)
            for touching in (gap, piece):  # the gaps that the piece ended and began
                if (other := self._blocks.get(touching, block)) is not block:
                    if len(block.units) + len(block.gaps) < len(other.units) + len(other.gaps):
                        block, other = other, block  # the smaller is merged into the larger
                    block.units += other.units
                    block.gaps |= other.gaps
                    self._blocks.update(dict.fromkeys(other.gaps, block))
            block.gaps.discard(piece)
            self._blocks.pop(piece, None)
            block.gaps.add(gap)
            self._blocks[gap] = block
        return block

    def _left_alone(self, own: Sequence[int]) -> bool:
        """Take the pieces of a unit out if it can be removed without those held with it; return whether it was."""
        here = self._pieces.here
        for piece in own:
            here[piece] = 0
        if self._pieces.may_leave({here.rfind(1, 0, piece) for piece in own}, here, self._may_follow):
            return True
        for piece in own:
            here[piece] = 1
        return False

    def _release(self, block: _Block) -> None:
        for gap in block.gaps:
            del self._blocks[gap]


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
