"""The subjects: each is given a conversation request by request, and returns what to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from compaction import CompactionSession, MessageIndex, last, presets, run_sync
from compaction.strategies import Strategy, Truncation
from compaction.tokens import TokenCounter
from compaction.triggers import tokens_below, tokens_exceed

from .conversations import Conversation

_ONE_SHOT: Final = (0.25, 0.5, 0.75, 1.0)  # of the requests: a one-shot call reads the whole list each time

Subject: TypeAlias = Callable[[Conversation, int, TokenCounter], Iterator[tuple[int, list[Any]]]]
"""Yields the requests for a window: how many messages were said until then, and what is sent."""


def _in_session(
    make: Callable[[int], Strategy], said: Conversation, window: int, counter: TokenCounter
) -> Iterator[tuple[int, list[Any]]]:
    session = CompactionSession(make(window), counter=counter, window=window)
    for count in said.requests:
        yield count, session.view_sync(said.messages[:count])


def _at_once(
    make: Callable[[int], Strategy], said: Conversation, window: int, counter: TokenCounter
) -> Iterator[tuple[int, list[Any]]]:
    for share in _ONE_SHOT:
        count = said.requests[max(0, int(len(said.requests) * share) - 1)]
        index = MessageIndex(list(said.messages[:count]), counter=counter)
        yield count, run_sync(index, make(window)).messages


def _truncation(window: int) -> Strategy:
    return Truncation(trigger=tokens_exceed(int(window * 0.95)), target=tokens_below(int(window * 0.5)), keep=last(groups=1))


def _people(said: Conversation, window: int, counter: TokenCounter) -> Iterator[tuple[int, list[Any]]]:
    """Yield the system message and only what people said, newest first while it fits."""
    tokens = [MessageIndex([each], counter=counter).tokens for each in said.messages]
    for count in said.requests:
        view: list[Any] = []
        room = window - tokens[0]
        for at in range(count - 1, 0, -1):
            if said.messages[at]["role"] == "user" and tokens[at] <= room:
                view.insert(0, said.messages[at])
                room -= tokens[at]
        yield count, [said.messages[0], *view]


PLAIN_RULES: Final = ("people", "truncation")
SUBJECTS: Final[Mapping[str, Subject]] = {
    "adaptive": partial(_in_session, presets.adaptive),
    "context_window": partial(_in_session, presets.context_window),
    "hermes": partial(_in_session, presets.hermes),
    "token_budget": partial(_at_once, presets.token_budget),
    "people": _people,
    "truncation": partial(_in_session, _truncation),
}
"""Every subject by its name; `PLAIN_RULES` are there to compare with. `token_budget` reads the whole list at four requests."""
