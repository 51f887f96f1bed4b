"""What every strategy is compared with: send everything, and two rules of thumb, as an application would write them.

They are no strategies of this package, and none of its laws helps or binds them: whole groups, the newest that fit, and nothing
else. A group that does not fit at all is dropped, even if it is the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..groups import Grouping, GroupRecord
from ..messages import Message
from ..tokens import MessageMeter
from .contenders import Contender, Deed, Player, Setting

__all__ = ["BASELINES", "KeepNewest", "SendAll"]


@attrs.frozen
class SendAll:
    """Sends the whole history, whatever the window."""

    def __call__(self, setting: Setting) -> Player:
        return _SendAll()


class _SendAll:
    def view(self, messages: list[Any]) -> list[Any]:
        return messages

    def deeds(self) -> Sequence[Deed]:
        return ()

    def unchanged(self) -> list[Any] | None:
        return None


@attrs.frozen
class KeepNewest:
    """Keeps the system messages, the last user message and as many of the newest groups as fit; drops the rest for good.

    Args:
        threshold: Share of the window past which it cuts; until then it only appends.
        target: Share of the window it cuts to.

    With both at 1 it is what most applications do first: keep the last that fits, and cut again whenever it does not. With .8
    and .5 it is the bar to pass: about half the cost of sending everything, never over the window, always valid.
    """

    threshold: float
    target: float

    def __call__(self, setting: Setting) -> Player:
        return _KeepNewest(int(self.threshold * setting.window), int(self.target * setting.window), setting)


class _KeepNewest:
    """Holds state: the groups so far, and what is kept of them. A call costs O(what is kept and what is new)."""

    def __init__(self, threshold: int, target: int, setting: Setting) -> None:
        self._threshold = threshold - setting.overhead_tokens
        self._target = target - setting.overhead_tokens
        self._format = setting.format
        self._measure = MessageMeter(setting.counter).measure
        self._grouping = Grouping()
        self._read = 0
        self._kept: list[GroupRecord] = []
        self._shown: list[tuple[Message, GroupRecord]] = []
        self._dropped_now: list[GroupRecord] = []

    def view(self, messages: list[Any]) -> list[Any]:
        for ordinal in range(self._read, len(messages)):
            message = self._format.read(messages[ordinal], ordinal)
            record = self._grouping.add(ordinal, message)
            record.tokens += self._measure(message)[0]
            if record.id == ordinal:
                self._kept.append(record)
            if not record.excluded:
                self._shown.append((message, record))
        self._read = len(messages)
        self._dropped_now = []
        if sum(record.tokens for record in self._kept) > self._threshold:
            self._cut()
        return [message.raw for message, _ in self._shown]

    def _cut(self) -> None:
        heads = {record.id: message for message, record in reversed(self._shown)}
        fixed = [record for record in self._kept if record is self._grouping.last_user or heads[record.id].is_system]
        newest = [record for record in self._kept if record not in fixed]
        room = self._target - sum(record.tokens for record in fixed)
        start = len(newest)
        while start and newest[start - 1].tokens <= room:
            start -= 1
            room -= newest[start].tokens
        before = heads[fixed[-1].id] if fixed else None
        while start < len(newest) and not self._format.valid_seam(before, heads[newest[start].id]):
            start += 1
        self._dropped_now = newest[:start]
        for record in self._dropped_now:
            record.excluded = True
        self._kept = [record for record in self._kept if not record.excluded]
        self._shown = [(message, record) for message, record in self._shown if not record.excluded]

    def deeds(self) -> Sequence[Deed]:
        ordinals = tuple(sorted(at for record in self._dropped_now for at in record.ordinals))
        return (Deed("KeepNewest", "drop", "the oldest go first", ordinals),) if ordinals else ()

    def unchanged(self) -> list[Any] | None:
        return None


BASELINES = {
    "none": Contender("none", SendAll()),
    "truncate": Contender("truncate", KeepNewest(1.0, 1.0)),
    "hysteresis": Contender("hysteresis", KeepNewest(0.8, 0.5)),
}
"""The baselines by name."""
