"""Sizes of a conversation, kept up to date edit by edit so that asking costs nothing."""

from __future__ import annotations

import attrs

from .groups import GroupRecord

__all__ = ["Metrics", "Tally"]


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

    def add(self, record: GroupRecord) -> None:
        """Count a group in."""
        self.tokens += record.tokens
        self.bytes += record.bytes
        self.messages += record.messages
        self.groups += 1
        if record.call_ids is not None:
            self.tool_calls += len(record.call_ids)
        if record.turn:
            self._enter(record.turn)

    def remove(self, record: GroupRecord) -> None:
        """Count a group out; the inverse of `add`."""
        self.tokens -= record.tokens
        self.bytes -= record.bytes
        self.messages -= record.messages
        self.groups -= 1
        if record.call_ids is not None:
            self.tool_calls -= len(record.call_ids)
        if record.turn:
            self._leave(record.turn)

    def turn_over(self, record: GroupRecord, left: int) -> None:
        """Count a group, which is counted in, to the turn it has now and no more to the one it left."""
        if left:
            self._leave(left)
        if record.turn:
            self._enter(record.turn)

    def _enter(self, turn: int) -> None:
        here = self._turn_groups.get(turn, 0)
        self._turn_groups[turn] = here + 1
        if not here:
            self.turns += 1

    def _leave(self, turn: int) -> None:
        here = self._turn_groups[turn] - 1
        self._turn_groups[turn] = here
        if not here:
            self.turns -= 1

    def grow(self, tokens: int, size: int, messages: int) -> None:
        """Count a change within a group that is counted in."""
        self.tokens += tokens
        self.bytes += size
        self.messages += messages

    def metrics(self) -> Metrics:
        """The sums as a value."""
        return Metrics(self.tokens, self.bytes, self.messages, self.groups, self.turns, self.tool_calls)
