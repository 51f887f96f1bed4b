"""The subjects of the measurement: each brings a conversation down to a budget, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from compaction import GroupKind, MessageIndex, last, presets, run_sync
from compaction.strategies import SlidingWindow, Strategy, Summarization, Truncation
from compaction.summarizers import DigestSummarizer, FactSummarizer, Summarizer, SummaryBudget
from compaction.tokens import TokenCounter
from compaction.triggers import tokens_exceed

from .planted import Conversation, Planted
from .wording import ITEMS

Messages: TypeAlias = list[dict[str, Any]]

Subject: TypeAlias = Callable[[Conversation, int, TokenCounter], Sequence[Mapping[str, Any]]]
"""Returns the messages to send, within so many tokens. Only the oracle may look at what was planted."""

_FRAME: Final = 130
_KEPT: Final = 0.4
_LEAST: Final = 24


def _compacted(make: Callable[[int], Strategy], conversation: Conversation, budget: int, counter: TokenCounter) -> Messages:
    index = MessageIndex(list(conversation.messages), counter=counter)
    run_sync(index, make(budget))
    return list(index.messages())


def _truncation(budget: int) -> Strategy:
    return Truncation(trigger=tokens_exceed(budget), keep=last(groups=1))


def _window(budget: int) -> Strategy:
    return SlidingWindow(trigger=tokens_exceed(budget))


def summarized(summarizer: Summarizer, conversation: Conversation, budget: int, counter: TokenCounter) -> Messages:
    """Return the newest messages in two fifths of the budget, and a summary of the others in what they leave.

    A summary that came out too long for the budget is written again with less room, and where none fits, the oldest groups are
    dropped: so the budget is a fair one, whatever the frame of a summary takes.
    """
    original = MessageIndex(list(conversation.messages), counter=counter)
    keep = last(tokens=int(budget * _KEPT))
    newest = keep(original)
    kept = sum(group.tokens for group in original.included_groups if group.kind is GroupKind.SYSTEM or group.id in newest)
    room = budget - kept - _FRAME
    while room >= _LEAST:
        index = MessageIndex(list(conversation.messages), counter=counter)
        limit = SummaryBudget(ratio=1.0, floor=1, ceiling=room, room_ratio=1.0)
        run_sync(index, Summarization(summarizer, keep=keep, budget=limit, user_tokens=0))
        if index.tokens <= budget:
            return list(index.messages())
        room -= max(8, index.tokens - budget)
    return _compacted(_truncation, conversation, budget, counter)


def user_messages(conversation: Conversation, budget: int, counter: TokenCounter) -> Messages:
    """Return what the user said, the newest messages that fit: the rule that needs no summary and no calls."""
    system = [each for each in conversation.messages if each["role"] == "system"]
    view: Messages = []
    for message in reversed(conversation.messages):
        if message["role"] == "user" and MessageIndex([*system, message, *view], counter=counter).tokens <= budget:
            view.insert(0, message)
    return [*system, *view]


def oracle(conversation: Conversation, budget: int, counter: TokenCounter) -> Messages:
    """Return a line for each item, and the newest messages in what they leave: it knows what was planted."""
    system, *_, final = conversation.messages
    lines = "\n".join(_line(each) for each in conversation.planted if each.kind in ITEMS)
    view = [system, {"role": "user", "content": lines}, {"role": "assistant", "content": "OK."}, final]
    for place in range(len(conversation.messages) - 2, 0, -1):
        message = conversation.messages[place]
        if message["role"] == "tool":
            continue
        newer = [*view[:3], *conversation.messages[place:]]
        if MessageIndex(newer, counter=counter).tokens > budget:
            break
        view = newer
    return view


def _line(planted: Planted) -> str:
    """Return the words of an item, those without which it is not understood first."""
    words = (*planted.meaning, *planted.core)
    return " ".join(dict.fromkeys(group[0] for group in words))


SUBJECTS: Final[Mapping[str, Subject]] = {
    "token_budget": partial(_compacted, presets.token_budget),
    "digest": partial(summarized, DigestSummarizer()),
    "digest, full": partial(summarized, DigestSummarizer(growth=1.0)),
    "facts": partial(summarized, FactSummarizer()),
    "truncation": partial(_compacted, _truncation),
    "window": partial(_compacted, _window),
    "user messages": user_messages,
    "oracle": oracle,
}
