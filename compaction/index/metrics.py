"""Sizes of a conversation: `Metrics`, and the running sums from which the index makes them."""

from __future__ import annotations

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


@attrs.define(eq=False)
class Tally:
    """Running sums over a changing set of groups. Holds state; every operation is O(1)."""

    tokens: int = 0
    bytes: int = 0
    messages: int = 0
    groups: int = 0
    tool_calls: int = 0
    _groups_by_turn: dict[int, int] = attrs.Factory(dict[int, int])  # of the turns that have groups

    def grow(self, tokens: int, size: int, messages: int, tool_calls: int = 0) -> None:
        """Add sizes, which may be negative."""
        self.tokens += tokens
        self.bytes += size
        self.messages += messages
        self.tool_calls += tool_calls

    def count_groups(self, turn: int | None, count: int) -> None:
        """Add to the number of groups of a turn; 0 is the time before the first one."""
        self.groups += count
        if turn:
            left = self._groups_by_turn[turn] = self._groups_by_turn.get(turn, 0) + count
            if not left:
                del self._groups_by_turn[turn]

    @property
    def turns(self) -> int:
        """The number of turns with groups."""
        return len(self._groups_by_turn)

    def metrics(self) -> Metrics:
        """Return the sums as a value."""
        return Metrics(self.tokens, self.bytes, self.messages, self.groups, self.turns, self.tool_calls)
