"""Sizes of a conversation: `Metrics`, and the running sums from which the index makes them."""

from __future__ import annotations

from typing import TypeAlias

import attrs


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

    def add(self, sums: GroupSums, times: int) -> None:
        """Add a group's sums, once or minus once."""
        tokens, size, messages, tool_calls, turn = sums
        self.grow(times * tokens, times * size, times * messages)
        self.tool_calls += times * tool_calls
        self.count_groups(turn, times)

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

    def metrics(self) -> Metrics:
        """Return the sums as a value."""
        return Metrics(self.tokens, self.bytes, self.messages, self.groups, self.turns, self.tool_calls)
