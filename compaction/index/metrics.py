"""Sizes of a conversation, kept up to date edit by edit so that asking costs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

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
