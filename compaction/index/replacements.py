"""Replacements: which groups one message can replace, and between which neighbours it then stands.

The message takes the place of the last group. If other groups stay between the replaced ones, there are several *gaps*. The
message fills only the last one, so the neighbours of every other gap must fit without it. For example, where an answer of the
assistant (``a``) should follow a message of the user (``u``)::

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


def neighbours(columns: Columns, gone: Collection[int]) -> tuple[Message | None, Message | None]:
    """Return the messages before and after the message that would replace these groups. O(messages).

    Instructions that open the view do not count as a neighbour: to a provider, the message after them is the first one.
    """
    pieces = Pieces(columns)
    places = pieces.of_groups(gone)
    if not places:
        raise StrategyError(f"summary of groups {sorted(gone)}: none of them is in the view; pass groups of included_groups")
    place = max(places)
    left = [piece for piece, id in enumerate(pieces.groups[:place]) if id not in gone]
    return None if all(map(pieces.is_system, left)) else pieces.last(left[-1]), pieces.first(place + 1)


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
    earlier, last_gap = _gaps(columns, ids)
    pieces, chosen = Pieces(columns), earlier.union(last_gap)
    chosen -= _within(pieces, pieces.of_group.keys() - chosen)  # a group that stays is never separated by the replacement
    return [id for id in ids if id in chosen]


def _gaps(columns: Columns, ids: Sequence[int]) -> tuple[set[int], list[int]]:
    """Return those of these groups that can leave the earlier gaps, and all groups of the last gap."""
    gone: set[int] = set()
    while True:  # again, since a removed group may have separated the messages of another
        pieces = Pieces(columns, gone)
        free = pieces.whole().intersection(ids)
        gaps = [list(run) for is_free, run in groupby(pieces.groups, key=free.__contains__) if is_free]
        last_gap = gaps.pop() if gaps else []
        units = [[id] for gap in gaps for id in gap]
        earlier = [*chain(*CutPlanner(pieces).from_oldest(units, columns.format.prefers, behind_instructions=False))]
        if not earlier:
            return gone, last_gap
        gone.update(earlier)


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
