"""Steps: the smallest runs of groups that may go while what is left still starts and joins as the wire format wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from ..formats import MessageFormat
from ..groups import MessageGroup
from ..index import MessageIndex
from ..messages import Message

__all__ = ["neighbours", "parted", "replaceable", "steps_to_seams"]

_Piece: TypeAlias = tuple[int, Message, Message]
"""Messages of one group that stand together: its id, the first of them, the last."""


def neighbours(index: MessageIndex, gone: set[int]) -> tuple[Message | None, Message | None]:
    """The messages between which a replacement will stand: where the last of the groups that go stands. O(messages).

    System messages at the very start are no neighbours: what follows them is the first message to a provider.

    Args:
        index: The conversation.
        gone: The ids of the groups that go, one at least.
    """
    pieces = _pieces(index)
    place = max(at for at, (id, _, _) in enumerate(pieces) if id in gone)
    left = [last for id, _, last in pieces[:place] if id not in gone]
    after = pieces[place + 1][1] if place + 1 < len(pieces) else None
    return None if all(message.is_system for message in left) else left[-1], after


def parted(index: MessageIndex) -> set[int]:
    """The ids of the groups with others between their messages, which do not close up as one, and of those others; O(messages).

    None in a format where any message may follow any other.
    """
    if type(index.format).valid_seam is MessageFormat.valid_seam:
        return set()
    pieces = _pieces(index)
    apart = {id for id, _, _ in pieces} - _whole(pieces)
    return apart | _within(pieces, apart)


def replaceable(index: MessageIndex, groups: Sequence[MessageGroup]) -> list[MessageGroup]:
    """Those of these groups that one message can stand for, in the order in which they end; O(messages).

    It will stand in place of the last of them. Where others stay between them, it stands in the last gap alone: what is around
    the other gaps must join, as it is once all of them are gone.
    """
    if type(index.format).valid_seam is MessageFormat.valid_seam:
        return list(groups)
    free = {group.id for group in groups}
    gone: set[int] = set()
    while True:  # what is gone may have stood between the messages of a group
        pieces = _pieces(index, gone)
        closing, last = _gaps(index, pieces, free & _whole(pieces))
        if not closing:
            break
        gone |= closing
    pieces = _pieces(index)
    ends = {id: place for place, (id, _, _) in enumerate(pieces)}
    chosen = gone | last
    chosen -= _within(pieces, ends.keys() - chosen)  # nothing is written into the middle of what stays
    return sorted((group for group in groups if group.id in chosen), key=lambda group: ends[group.id])


def _gaps(index: MessageIndex, pieces: Sequence[_Piece], free: set[int]) -> tuple[set[int], set[int]]:
    """The groups whose gaps close by themselves, as far as they do, and those of the last gap."""
    gaps: list[tuple[list[_Piece], int]] = []
    before: Message | None = None
    run: list[_Piece] = []
    for piece in pieces:
        if piece[0] in free:
            run.append(piece)
            continue
        closes = _closing(index, before, [*run, piece])
        if run:
            gaps.append((run, closes))
        before, run = None if before is None and piece[1].is_system and closes == len(run) else piece[2], []
    if run:
        gaps.append((run, len(run)))
    closing = {id for run, closes in gaps[:-1] for id, _, _ in run[:closes]}
    return closing, {id for id, _, _ in gaps[-1][0]} if gaps else set()


def _closing(index: MessageIndex, before: Message | None, run: Sequence[_Piece]) -> int:
    """How many of these pieces may go after a message, at most, the last of them staying."""
    return next((place for place in range(len(run) - 1, 0, -1) if _joins(index, before, run[place][1])), 0)


def _joins(index: MessageIndex, before: Message | None, after: Message | None) -> bool:
    """Whether nothing has to stand between two messages; an instruction keeps what follows it."""
    return (before is None or not before.is_system) and index.format.valid_seam(before, after)


def _apart(one: MessageGroup, other: MessageGroup) -> bool:
    return False


def steps_to_seams(
    index: MessageIndex, groups: Sequence[MessageGroup], together: Callable[[MessageGroup, MessageGroup], bool] = _apart
) -> Iterator[list[int]]:
    """The groups to drop as steps, oldest first; O(messages in the view).

    A step ends where the message before the run and the message after it may follow each other (``format.valid_seam``).
    Groups that reach no such place before the next group that stays are in no step. System messages that nothing is left
    before are as the start of the list.

    Args:
        index: The conversation; each step is to be dropped before the next is asked for.
        groups: What may go, in order.
        together: Says of two neighbours among them that one does not go without the other.
    """
    if type(index.format).valid_seam is MessageFormat.valid_seam:
        yield from _anywhere(groups, together)
        return
    asked: set[int] = set()
    known = -1
    while len(asked) > known:  # what is gone may have stood between the messages of a group, or between it and a seam
        known = len(asked)
        for step in _steps(index, [group for group in groups if group.id not in asked], together):
            asked.update(step)
            yield step


def _anywhere(groups: Sequence[MessageGroup], together: Callable[[MessageGroup, MessageGroup], bool]) -> Iterator[list[int]]:
    """The steps where any message may follow any other: only what goes together matters."""
    step: list[int] = []
    for place, group in enumerate(groups):
        step.append(group.id)
        if place + 1 == len(groups) or not together(group, groups[place + 1]):
            yield step
            step = []


def _steps(
    index: MessageIndex, groups: Sequence[MessageGroup], together: Callable[[MessageGroup, MessageGroup], bool]
) -> Iterator[list[int]]:
    """One pass over the view."""
    pieces = _pieces(index)
    whole = _whole(pieces)
    free = {group.id: place for place, group in enumerate(groups) if group.id in whole}
    seam = index.format.valid_seam
    before, run, stretch = None, list[int](), list[int]()
    for here, (id, first, last) in enumerate(pieces):
        place = free.get(id)
        if place is None:
            if stretch and seam(before, first):
                run += stretch
            leads = before is None and first.is_system and not stretch and not run
            before, stretch = None if leads else last, []
            continue
        stretch.append(id)
        if place + 1 < len(groups) and together(groups[place], groups[place + 1]):
            continue
        after = pieces[here + 1][1] if here + 1 < len(pieces) else None
        if seam(before, after):
            yield run + stretch
            run, stretch = [], []


def _whole(pieces: Sequence[_Piece]) -> set[int]:
    """The ids of the groups whose messages stand together."""
    return {id for id, count in Counter(id for id, _, _ in pieces).items() if count == 1}


def _within(pieces: Sequence[_Piece], groups: Collection[int]) -> set[int]:
    """The ids of the groups with a message between messages of one of these."""
    last = {id: place for place, (id, _, _) in enumerate(pieces) if id in groups}
    within: set[int] = set()
    end = -1
    for place, (id, _, _) in enumerate(pieces):
        if place < end:
            within.add(id)
        end = max(end, last.get(id, -1))
    return within


def _pieces(index: MessageIndex, gone: Collection[int] = ()) -> list[_Piece]:
    """The view without some groups, as runs of messages of one group each."""
    pieces: list[_Piece] = []
    for message, id in index.placed():
        if id in gone:
            continue
        if pieces and pieces[-1][0] == id:
            pieces[-1] = (id, pieces[-1][1], message)
        else:
            pieces.append((id, message, message))
    return pieces
