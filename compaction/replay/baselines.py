"""The baselines of a replay.

They are not strategies of this package and do not go through its index. They keep whole groups, the newest that fit, and
nothing else. A group that does not fit is dropped even if it is the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..index import Grouping
from ..messages import Message
from ..tokens import MessageMeter
from .candidates import Candidate, CandidateAction, CandidateSession, CandidateSetting


def _send_all(setting: CandidateSetting) -> Callable[[list[Any]], list[Any]]:
    return list


class KeepNewest(CandidateSession):
    """A session that keeps the system messages, the last user message and the newest groups that fit, and drops the rest.

    Holds state: the groups so far, and those kept. A call costs O(kept and new messages).

    Above ``threshold``, a share of the window, it cuts to ``target``, another share; below, it only appends.
    With both shares at 1 it does what most applications do first: it keeps the newest messages that fit and cuts again at
    almost every call. With .8 and .5 it is the baseline to beat: about half the cost of sending everything, never over the
    window, always valid.
    """

    def __init__(self, threshold: float, target: float, setting: CandidateSetting) -> None:
        self._threshold = int(threshold * setting.window) - setting.overhead_tokens
        self._target = int(target * setting.window) - setting.overhead_tokens
        self._format = setting.format
        self._measure = MessageMeter(setting.counter).measure
        self._grouping = Grouping()
        self._read = 0
        self._tokens: dict[int, int] = {}  # of the groups that are kept
        self._shown: list[tuple[Message, int]] = []
        self._dropped: set[int] = set()
        self._dropped_now: list[int] = []

    def view(self, messages: list[Any]) -> list[Any]:
        for ordinal in range(self._read, len(messages)):
            message = self._format.read(messages[ordinal], ordinal)
            group = self._grouping.add(message, 0)
            if group not in self._dropped:
                self._tokens[group] = self._tokens.get(group, 0) + self._measure(message)[0]
                self._shown.append((message, group))
        self._read = len(messages)
        self._dropped_now = []
        if sum(self._tokens.values()) > self._threshold:
            self._cut()
        return [message.raw for message, _ in self._shown]

    def _cut(self) -> None:
        heads = {group: message for message, group in reversed(self._shown)}  # the first message of each group
        fixed = [group for group in self._tokens if group == self._grouping.newest.user or heads[group].is_system]
        others = [group for group in self._tokens if group not in fixed]
        fitting = self._newest_that_fit(others, self._target - sum(self._tokens[group] for group in fixed))
        while fitting:
            earlier = [heads[group] for group in fixed if group < fitting[0] and not heads[group].is_system]
            if self._format.prefers(earlier[-1] if earlier else None, heads[fitting[0]]):
                break
            fitting = fitting[1:]  # it may not follow what is before it
        self._dropped_now = others[: len(others) - len(fitting)]
        self._dropped.update(self._dropped_now)
        for group in self._dropped_now:
            del self._tokens[group]
        self._shown = [(message, group) for message, group in self._shown if group not in self._dropped]

    def _newest_that_fit(self, groups: Sequence[int], room: int) -> Sequence[int]:
        start = len(groups)
        while start and self._tokens[groups[start - 1]] <= room:
            start -= 1
            room -= self._tokens[groups[start]]
        return groups[start:]

    def actions(self) -> Sequence[CandidateAction]:
        ordinals = tuple(sorted(at for group in self._dropped_now for at in self._grouping.ordinals(group)))
        return (CandidateAction("KeepNewest", "drop", "the oldest go first", ordinals),) if ordinals else ()


BASELINES = {
    "none": Candidate("none", _send_all, "baseline"),
    "truncate": Candidate("truncate", partial(KeepNewest, 1.0, 1.0), "baseline"),
    "hysteresis": Candidate("hysteresis", partial(KeepNewest, 0.8, 0.5), "baseline"),
}
"""The baselines by name."""
