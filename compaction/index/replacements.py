"""Replacements: which groups one message can replace, and between which neighbours it then stands.

The message takes the place of the last group, but never stands after words of the user that are newer than those in it: a model
would read them, and a later run would summarize them, in the wrong order (see `place_of`). If other groups stay between the
replaced ones, there are several *gaps*. The message fills only one, so the neighbours of every other gap must fit without it.
For example, where an answer of the assistant (``a``) should follow a message of the user (``u``)::

    view    u0  a1  u2  a3  u4  a5  u6      offered: 0, 2, 4 and 5

    0       cannot be replaced: the view would begin with a1
    2       cannot be replaced: a3 would follow a1
    4 5     is the last gap: the message stands between a3 and u6

    >>> from compaction import MessageIndex
    >>> messages = [{"role": {"u": "user", "a": "assistant"}[who], "content": who} for who in "uauauau"]
    >>> index = MessageIndex(messages, format="anthropic", counter="chars/4")
    >>> replaceable(index.columns, [0, 2, 4, 5])
    [4, 5]
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, groupby

from ..errors import StrategyError
from ..messages import Message
from .columns import Columns
from .cuts import CutPlanner, Pieces
from .groups import GroupKind


def place_of(columns: Columns, ids: Collection[int]) -> int:
    """Return the group whose place a message takes that replaces these groups. O(messages from the first to the last).

    It is the last one before the first message of the user that stays and is newer than the user's words in the replaced
    groups: the last group in which the user says something, or, if there is none, the first summary::

        view    u0  a1  u2  a3  a4      0, 1 and 3 are replaced: the message takes the place of 1, before u2
                                        1 and 3 are replaced: it takes the place of 3
    """
    in_order = sorted(ids, key=columns.anchor)
    first, last = columns.anchor(in_order[0]), columns.anchor(in_order[-1])
    between = dict.fromkeys(columns.grouping.group_of[first:last]).keys() - {*ids}
    stay = sorted([id for id in between if columns.is_included(id) and _is_spoken(columns, id)])
    if not stay:
        return in_order[-1]
    words = [id for id in in_order if _is_spoken(columns, id)][-1:] or [id for id in in_order if _has_words(columns, id)]
    newer = [id for id in stay if words and id >= columns.anchor(words[0])]
    return [id for id in in_order if not newer or columns.anchor(id) <= newer[0]][-1]


def _is_spoken(columns: Columns, id: int) -> bool:
    """Return whether the user says something in a group of the source."""
    kind = columns.kind(id)
    return kind is GroupKind.USER or (kind is GroupKind.TOOL_CALL and columns.snapshot(id).is_spoken)


def _has_words(columns: Columns, id: int) -> bool:
    """Return whether a group is a summary that may quote the user: not of a provider, beside which the user's messages stay."""
    is_summary = columns.kind(id) is GroupKind.SUMMARY and not columns.is_collapsed(id)
    return is_summary and not columns.at(id, end=False).holds_history


def neighbours(columns: Columns, gone: Collection[int]) -> tuple[Message | None, Message | None]:
    """Return the messages before and after the message that would replace these groups. O(messages).

    Instructions that open the view do not count as a neighbour: to a provider, the message after them is the first one.
    """
    pieces = Pieces(columns)
    replaced = [id for id in gone if id in pieces.of_group]
    if not replaced:
        raise StrategyError(f"summary of groups {sorted(gone)}: none of them is in the view; pass groups of included_groups")
    place = pieces.of_group[place_of(columns, replaced)][-1]
    left = [piece for piece, id in enumerate(pieces.groups[:place]) if id not in gone]
    right = next((piece for piece, id in enumerate(pieces.groups) if piece > place and id not in gone), len(pieces.groups))
    return None if all(map(pieces.is_system, left)) else pieces.last(left[-1]), pieces.first(right)


def interleaved(columns: Columns) -> set[int]:
    """Return the groups with other groups' messages between their own, and those other groups; O(messages)."""
    if not columns.format.judges_joins:
        return set()
    pieces = Pieces(columns)
    apart = pieces.of_group.keys() - pieces.whole()
    return apart | _within(pieces, apart)


def replaceable(columns: Columns, ids: Sequence[int]) -> list[int]:
    """Return those of these groups that one message can replace, in the given order; O(messages)."""
    if not columns.format.judges_joins:
        return list(ids)
    pieces = Pieces(columns)
    chosen = [*ids]
    while True:  # again, since a message that stays after all may decide where the replacement stands
        offered = chosen
        left = _leaving(columns, offered)
        left -= _within(pieces, pieces.of_group.keys() - left)  # a group that stays is never separated by the replacement
        chosen = [id for id in offered if id in left]
        if not chosen or place_of(columns, chosen) == place_of(columns, offered):
            return chosen


def _leaving(columns: Columns, ids: Sequence[int]) -> set[int]:
    """Return those of these groups that can leave: all groups of the gap that the message fills, and some of the others.

    Only a *whole* group can leave, which has no other group's messages between its own. If such messages leave, it becomes
    whole; so there are several rounds. Each adds groups to those that leave, or is the last. For example, r3 is the result of
    c1, and 1 and 2 are offered::

        view        u0  c1  a2  r3  u4

        round 1     0, 2 and 4 are whole        the message fills the gap of 2
        round 2     without 2, 1 is whole, too  it fills that of 1 and 2; all groups are whole, so no round can find more
    """
    gone, inside = set[int](), set[int]()  # the groups that leave: outside the gap that the message fills, and inside
    while True:
        pieces = Pieces(columns, gone)
        whole = (Pieces(columns, gone | inside) if inside else pieces).whole() | inside
        filled, others = _gaps(columns, pieces, whole.intersection(ids), gone)
        planned = CutPlanner(pieces).from_oldest([[id] for id in others], columns.format.prefers, behind_instructions=False)
        leaving = {*chain(*planned)}
        can_find_more = not inside.issuperset(filled) and whole != pieces.of_group.keys()
        if not leaving and not can_find_more:
            return gone.union(filled)
        gone |= leaving
        inside.update(filled)


def _gaps(columns: Columns, pieces: Pieces, free: set[int], gone: set[int]) -> tuple[list[int], list[int]]:
    """Return the groups of the gap that a message fills which replaces these groups, and those of the other gaps."""
    gaps = [list(run) for is_free, run in groupby(pieces.groups, key=free.__contains__) if is_free]
    place = place_of(columns, gone | free) if gaps else None
    filled = next((gap for gap in gaps if place in gap), list[int]())
    return filled, [id for gap in gaps if gap is not filled for id in gap]


def _within(pieces: Pieces, groups: Collection[int]) -> set[int]:
    """Return the ids of the groups with a message between the messages of one of these groups."""
    within: set[int] = set()
    end = -1
    for piece, id in enumerate(pieces.groups):
        if piece < end:
            within.add(id)
        if id in groups:
            end = max(end, pieces.of_group[id][-1])
    return within
