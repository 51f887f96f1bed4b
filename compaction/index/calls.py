"""Tool calls: which calls each group made, and which group a result answers."""

from __future__ import annotations

from typing import TypeAlias

_Open: TypeAlias = "tuple[int, _Open | None]"
"""The latest group with an open call of some id, and, if the id was used before, the earlier ones."""


class ToolCalls:
    """The tool calls of a conversation. Holds state."""

    def __init__(self) -> None:
        # the call ids of a group, in order; a group without calls is missing
        self.ids: dict[int, tuple[str, ...] | list[str]] = {}
        self.waiting: dict[int, int] = {}  # the number of calls of such a group that have no result yet
        self.pending: int | None = None  # the group that may still get results, because only results follow it
        self._open: dict[str, _Open] = {}
        self._made: set[tuple[int, str]] = set()  # each group with each of its calls, because a group may have thousands

    def make(self, group: int, calls: tuple[str, ...]) -> None:
        """Add the calls that the newest message of a group makes."""
        known = self.ids.setdefault(group, calls)
        if known is not calls:
            if isinstance(known, list):
                known += calls
            else:
                self.ids[group] = [*known, *calls]
        self.waiting[group] = self.waiting.get(group, 0) + len(calls)
        for call_id in calls:
            self._open[call_id] = group, self._open.get(call_id)
            self._made.add((group, call_id))
        self.pending = group

    def answer(self, call_id: str) -> int | None:
        """Close the latest open call with this id, and return its group; ``None`` if there is none."""
        found = self._open.pop(call_id, None)
        if found is None:
            return None
        group, earlier = found
        if earlier is not None:
            self._open[call_id] = earlier
        left = self.waiting[group] = self.waiting[group] - 1
        if not left and self.pending == group:
            self.pending = None
        return group

    def made(self, group: int, call_id: str) -> bool:
        """Whether a group made a call with this id."""
        return (group, call_id) in self._made
