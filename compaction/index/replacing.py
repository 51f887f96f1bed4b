"""Which groups one message can stand for, and between which messages it will stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from ..formats import MessageFormat
from ..messages import Message
from .projection import Projection

_Piece: TypeAlias = tuple[int, Message, Message]
"""Messages of one group that stand together: its id, the first of them, the last."""


def neighbours(projection: Projection, gone: Collection[int]) -> tuple[Message | None, Message | None]:
    """The messages between which a replacement of these groups will stand: where the last of them stands. O(messages).

    Instructions that lead the view are not neighbours: a provider takes what follows them for the first message.
    """
    pieces = _pieces(projection)
    place = max(at for at, (id, _, _) in enumerate(pieces) if id in gone)
    left = [(first, last) for id, first, last in pieces[:place] if id not in gone]
    after = pieces[place + 1][1] if place + 1 < len(pieces) else None
    return None if all(first.is_system and last.is_system for first, last in left) else left[-1][1], after


def interleaved(projection: Projection, format: MessageFormat) -> set[int]:
    """The groups with others between their messages, which do not close up as one, and those others; O(messages).

    None in a format where any message may follow any other.
    """
    if not format.judges_joins:
        return set()
    pieces = _pieces(projection)
    apart = {id for id, _, _ in pieces} - _whole(pieces)
    return apart | _within(pieces, apart)


def replaceable(projection: Projection, format: MessageFormat, ids: Sequence[int]) -> list[int]:
    """Those of these groups that one message can stand for, in the order in which they end; O(messages).

    It will stand in place of the last of them. Where others stay between them, it stands in the last gap alone: what is around
    the other gaps must be able to follow one another once all of them are gone.
    """
    if not format.judges_joins:
        return list(ids)
    free = set(ids)
    gone: set[int] = set()
    while True:  # what is gone may have stood between the messages of a group
        pieces = _pieces(projection, gone)
        closing, last = _gaps(format, pieces, free & _whole(pieces))
        if not closing:
            break
        gone |= closing
    pieces = _pieces(projection)
    ends = {id: place for place, (id, _, _) in enumerate(pieces)}
    chosen = gone | last
    chosen -= _within(pieces, ends.keys() - chosen)  # nothing is written into the middle of what stays
    return sorted((id for id in ids if id in chosen), key=ends.__getitem__)


def _gaps(format: MessageFormat, pieces: Sequence[_Piece], free: set[int]) -> tuple[set[int], set[int]]:
    """The groups whose gaps close by themselves, as far as they do, and those of the last gap."""
    gaps: list[tuple[list[_Piece], int]] = []
    before: Message | None = None
    run: list[_Piece] = []
    for piece in pieces:
        if piece[0] in free:
            run.append(piece)
            continue
        closes = _closing(format, before, [*run, piece])
        if run:
            gaps.append((run, closes))
        before, run = None if before is None and piece[1].is_system and closes == len(run) else piece[2], []
    if run:
        gaps.append((run, len(run)))
    closing = {id for run, closes in gaps[:-1] for id, _, _ in run[:closes]}
    return closing, {id for id, _, _ in gaps[-1][0]} if gaps else set()


def _closing(format: MessageFormat, before: Message | None, run: Sequence[_Piece]) -> int:
    """How many of these pieces may go after a message, at most, the last of them staying."""
    return next((place for place in range(len(run) - 1, 0, -1) if _joins(format, before, run[place][1])), 0)


def _joins(format: MessageFormat, before: Message | None, after: Message | None) -> bool:
    """Whether nothing has to stand between two messages; an instruction keeps what follows it."""
    return (before is None or not before.is_system) and format.prefers(before, after)


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


def _pieces(projection: Projection, gone: Collection[int] = ()) -> list[_Piece]:
    """The view without some groups, as runs of messages of one group each."""
    pieces: list[_Piece] = []
    for message, id, _ in projection.messages():
        if id in gone:
            continue
        if pieces and pieces[-1][0] == id:
            pieces[-1] = (id, pieces[-1][1], message)
        else:
            pieces.append((id, message, message))
    return pieces
