"""Planning replacements: the groups that one message can replace, and the messages it will be between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from ..formats import MessageFormat
from ..messages import Message
from .projection import Projection

_Run: TypeAlias = tuple[int, Message, Message]
"""Successive messages of one group: the group's id, the first message, the last message."""


def neighbours(projection: Projection, gone: Collection[int]) -> tuple[Message | None, Message | None]:
    """Return the messages before and after the message that would replace these groups. O(messages).

    It takes the place of the last group. Instructions that open the view do not count as a neighbour: to a provider, the
    message after them is the first one.
    """
    pieces = _pieces(projection)
    place = max(at for at, (id, _, _) in enumerate(pieces) if id in gone)
    left = [(first, last) for id, first, last in pieces[:place] if id not in gone]
    after = pieces[place + 1][1] if place + 1 < len(pieces) else None
    return None if all(first.is_system and last.is_system for first, last in left) else left[-1][1], after


def interleaved(projection: Projection, format: MessageFormat) -> set[int]:
    """Return the groups with other groups' messages between their own, and those other groups; O(messages).

    The set is empty for a format in which any message may follow any other.
    """
    if not format.judges_joins:
        return set()
    pieces = _pieces(projection)
    apart = {id for id, _, _ in pieces} - _whole(pieces)
    return apart | _within(pieces, apart)


def replaceable(projection: Projection, format: MessageFormat, ids: Sequence[int]) -> list[int]:
    """Return those of these groups that one message can replace, ordered by their last messages; O(messages).

    The message takes the place of the last group. If other groups stay between the removed ones, there are several gaps, and
    the message fills only the last one: the neighbours of every other gap must be allowed to follow one another.
    """
    if not format.judges_joins:
        return list(ids)
    free = set(ids)
    gone: set[int] = set()
    while True:  # again, since a removed group may have separated the messages of another
        pieces = _pieces(projection, gone)
        closing, last = _gaps(format, pieces, free & _whole(pieces))
        if not closing:
            break
        gone |= closing
    pieces = _pieces(projection)
    ends = {id: place for place, (id, _, _) in enumerate(pieces)}
    chosen = gone | last
    chosen -= _within(pieces, ends.keys() - chosen)  # a replacement never separates the messages of a group that stays
    return sorted((id for id in ids if id in chosen), key=ends.__getitem__)


def _gaps(format: MessageFormat, pieces: Sequence[_Run], free: set[int]) -> tuple[set[int], set[int]]:
    """Return the groups that may be removed from the gaps before the last one, and the groups of the last gap."""
    gaps: list[tuple[list[_Run], int]] = []
    before: Message | None = None
    run: list[_Run] = []
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


def _closing(format: MessageFormat, before: Message | None, run: Sequence[_Run]) -> int:
    """Return how many of these pieces, at most, may be removed after a message; the last piece stays."""
    return next((place for place in range(len(run) - 1, 0, -1) if _joins(format, before, run[place][1])), 0)


def _joins(format: MessageFormat, before: Message | None, after: Message | None) -> bool:
    """Whether one message may follow the other; the message after an instruction stays there."""
    return (before is None or not before.is_system) and format.prefers(before, after)


def _whole(pieces: Sequence[_Run]) -> set[int]:
    """Return the ids of the groups whose messages are not separated by others."""
    return {id for id, count in Counter(id for id, _, _ in pieces).items() if count == 1}


def _within(pieces: Sequence[_Run], groups: Collection[int]) -> set[int]:
    """Return the ids of the groups with a message between the messages of one of these groups."""
    last = {id: place for place, (id, _, _) in enumerate(pieces) if id in groups}
    within: set[int] = set()
    end = -1
    for place, (id, _, _) in enumerate(pieces):
        if place < end:
            within.add(id)
        end = max(end, last.get(id, -1))
    return within


def _pieces(projection: Projection, gone: Collection[int] = ()) -> list[_Run]:
    pieces = projection.pieces(gone)
    return [(id, projection.at(first, end=False), projection.at(last, end=True)) for id, first, last in pieces]
