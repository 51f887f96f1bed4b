"""The data types of an index's columns: sizes, messages about to be added, and groups that edits insert."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import attrs

from ..messages import Message, Outline


@attrs.frozen
class Metrics:
    """Sizes of a conversation.

    Args:
        tokens: Tokens of its messages by the index's counter, per-message overhead included.
        bytes: Bytes of its texts in UTF-8, and of the data in it.
        messages: The number of messages.
        groups: The number of groups of every kind.
        turns: The number of user turns with at least one group.
        tool_calls: The number of tool calls.
    """

    tokens: int = 0
    bytes: int = 0
    messages: int = 0
    groups: int = 0
    turns: int = 0
    tool_calls: int = 0


GroupSums: TypeAlias = tuple[int, int, int, int, int | None]
"""Tokens, bytes, messages, tool calls and turn of a group."""


@attrs.define(eq=False)
class Tally:
    """Running sums over a changing set of groups. Holds state; every operation is O(1)."""

    tokens: int = 0
    bytes: int = 0
    messages: int = 0
    groups: int = 0
    turns: int = 0
    tool_calls: int = 0
    _groups_by_turn: dict[int | None, int] = attrs.Factory(dict[int | None, int])

    def add(self, tokens: int, size: int, messages: int, tool_calls: int, turn: int | None) -> None:
        """Add a group's sums."""
        self.grow(tokens, size, messages)
        self.tool_calls += tool_calls
        self.count_groups(turn, 1)

    def subtract(self, tokens: int, size: int, messages: int, tool_calls: int, turn: int | None) -> None:
        """Subtract a group's sums."""
        self.tokens -= tokens
        self.bytes -= size
        self.messages -= messages
        self.tool_calls -= tool_calls
        self.groups -= 1
        if turn:
            self._groups_by_turn[turn] -= 1
            self.turns -= not self._groups_by_turn[turn]

    def grow(self, tokens: int, size: int, messages: int) -> None:
        """Add a change within a group."""
        self.tokens += tokens
        self.bytes += size
        self.messages += messages

    def count_groups(self, turn: int | None, count: int) -> None:
        """Add to the number of groups of a turn; a turn counts while it has groups."""
        self.groups += count
        if turn:
            before = self._groups_by_turn.get(turn, 0)
            self._groups_by_turn[turn] = before + count
            self.turns += (before + count > 0) - (before > 0)

    def count_new(self, new: Mapping[int | None, int]) -> None:
        """Add the number of new groups of each turn."""
        known = self._groups_by_turn
        self.groups += sum(new.values())
        if not known:
            known.update(new)
            self.turns += len(new) - (None in new) - (0 in new)
            return
        for turn, count in new.items():
            if turn:
                before = known.get(turn, 0)
                known[turn] = before + count
                self.turns += not before

    def metrics(self) -> Metrics:
        """Return the sums as a value."""
        return Metrics(self.tokens, self.bytes, self.messages, self.groups, self.turns, self.tool_calls)


@attrs.define(eq=False)
class Fresh:
    """Messages that were read and measured and can be added to an index, as columns.

    Args:
        raws: The caller's objects.
        reads: Each message as it was read: completely, or its outline only.
        tokens: The tokens of each.
        bytes: The bytes of each.
        pinned: The places, from 0, of the messages whose groups must be kept unchanged.
    """

    raws: list[Any]
    reads: list[Outline | Message]
    tokens: list[int]
    bytes: list[int]
    pinned: list[int] = attrs.Factory(list[int])

    def __add__(self, other: Fresh) -> Fresh:
        pinned = self.pinned + [place + len(self.raws) for place in other.pinned]
        return Fresh(
            self.raws + other.raws, self.reads + other.reads, self.tokens + other.tokens, self.bytes + other.bytes, pinned
        )


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


def calls_in(read: Outline | Message) -> int:
    """Return how many tool calls a message makes."""
    if isinstance(read, tuple):
        return len(read[2])
    return 0 if read.role == "tool" else sum(1 for _ in read.tool_calls())
