"""The columns of an index, and what stands in them: messages that come in, and groups that edits insert."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import attrs

from ..messages import Message, Outline


@attrs.frozen
class Metrics:
    """How large a conversation is.

    Args:
        tokens: Tokens of its messages by the index's counter, per-message overhead included.
        bytes: UTF-8 bytes of its texts, and of data carried in it.
        messages: Messages.
        groups: Groups, of every kind.
        turns: User turns of which at least one group is there.
        tool_calls: Tool calls.
    """

    tokens: int = 0
    bytes: int = 0
    messages: int = 0
    groups: int = 0
    turns: int = 0
    tool_calls: int = 0


class Tally:
    """Running sums over a changing set of groups. Holds state; every operation is O(1)."""

    __slots__ = ("_turn_groups", "bytes", "groups", "messages", "tokens", "tool_calls", "turns")

    def __init__(self) -> None:
        self.tokens = 0
        self.bytes = 0
        self.messages = 0
        self.groups = 0
        self.turns = 0
        self.tool_calls = 0
        self._turn_groups: dict[int, int] = {}

    def add(self, tokens: int, size: int, messages: int, tool_calls: int, turn: int | None) -> None:
        """Add a group's sums."""
        self.tokens += tokens
        self.bytes += size
        self.messages += messages
        self.groups += 1
        self.tool_calls += tool_calls
        if turn:
            self._enter(turn)

    def remove(self, tokens: int, size: int, messages: int, tool_calls: int, turn: int | None) -> None:
        """Subtract a group's sums; the inverse of `add`."""
        self.tokens -= tokens
        self.bytes -= size
        self.messages -= messages
        self.groups -= 1
        self.tool_calls -= tool_calls
        if turn:
            self._leave(turn)

    def change_turn(self, left: int | None, entered: int | None) -> None:
        """Move a group from one turn to another."""
        if left:
            self._leave(left)
        if entered:
            self._enter(entered)

    def enter(self, turns: Iterable[int | None]) -> None:
        """Count groups to their turns, whose other sums are counted already."""
        for turn, count in Counter(turns).items():
            self.groups += count
            if turn:
                self._enter(turn, count)

    def _enter(self, turn: int, count: int = 1) -> None:
        here = self._turn_groups.get(turn, 0)
        self._turn_groups[turn] = here + count
        if not here:
            self.turns += 1

    def _leave(self, turn: int) -> None:
        here = self._turn_groups[turn] - 1
        self._turn_groups[turn] = here
        if not here:
            self.turns -= 1

    def grow(self, tokens: int, size: int, messages: int) -> None:
        """Add a change within a group."""
        self.tokens += tokens
        self.bytes += size
        self.messages += messages

    def metrics(self) -> Metrics:
        """Return the sums as a value."""
        return Metrics(self.tokens, self.bytes, self.messages, self.groups, self.turns, self.tool_calls)


@attrs.define(eq=False)
class Fresh:
    """Messages that are not added yet, as columns.

    Args:
        raws: The caller's objects.
        reads: What was read of each: all of it, or its outline.
        tokens: The tokens of each.
        bytes: The bytes of each.
        pinned: The places, from 0, of those whose groups must stay as they are.
    """

    raws: list[Any]
    reads: list[Outline | Message]
    tokens: list[int]
    bytes: list[int]
    pinned: list[int] = attrs.Factory(list[int])

    def __getitem__(self, part: slice) -> Fresh:
        start, end, _ = part.indices(len(self.raws))
        pinned = [place - start for place in self.pinned if start <= place < end]
        return Fresh(self.raws[part], self.reads[part], self.tokens[part], self.bytes[part], pinned)

    def __add__(self, other: Fresh) -> Fresh:
        pinned = self.pinned + [place + len(self.raws) for place in other.pinned]
        return Fresh(
            self.raws + other.raws, self.reads + other.reads, self.tokens + other.tokens, self.bytes + other.bytes, pinned
        )


@attrs.define(eq=False)
class Inserted:
    """A summary group that an edit inserted. Holds state: whether the view shows it.

    Args:
        id: Its id, below 0.
        messages: Its messages.
        anchor: The ordinal of the source message it stands directly before.
        replaces: Ids of the groups it stands for.
        tokens: Its tokens.
        bytes: Its bytes.
        made_by: The strategy that wrote it.
        excluded: Whether it is out of the view.
    """

    id: int
    messages: tuple[Message, ...]
    anchor: int
    replaces: tuple[int, ...]
    tokens: int
    bytes: int
    made_by: str | None
    excluded: bool = False
