"""A turn: two messages come to 10,000, and the strategy is asked whether there is anything to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import agent_framework as af

from compaction import MessageIndex, compact_sync, last, run_sync
from compaction.strategies import SlidingWindow, Strategy, TokenBudgetComposed, Truncation
from compaction.triggers import tokens_exceed

from .conversation import conversation, rebuilt
from .cpu import seconds
from .peer import COUNTER, Theirs, our_tokens, their_tokens
from .tables import Claim, Section, spoken, table

__all__ = ["turns_section"]

MESSAGES = 10_000
TURNS = 20


def _grown() -> Iterator[list[dict[str, Any]]]:
    """The two messages of each turn."""
    for turn in range(TURNS):
        yield conversation(2, start=MESSAGES + 2 * turn)


def _by_append(index: MessageIndex, strategy: Strategy) -> float:
    """The median of turns in which the two messages are handed over."""

    def turn(new: list[dict[str, Any]]) -> list[Any]:
        index.append(new)
        return run_sync(index, strategy).messages

    return median([seconds(turn, new)[0] for new in _grown()])


def _by_sync(index: MessageIndex, strategy: Strategy, given: Callable[[list[Any]], list[Any]], known: list[Any]) -> float:
    """The median of turns in which the whole list is handed over, as ``given`` makes it."""

    def turn(full: list[Any]) -> list[Any]:
        index.sync(full)
        return run_sync(index, strategy).messages

    took: list[float] = []
    for new in _grown():
        known = [*known, *new]
        took.append(seconds(turn, given(known))[0])
    return median(took)


def _theirs(strategy: Any) -> float:
    """The median of turns in which the two messages are added to the list and the strategy runs again."""
    side = Theirs(conversation(MESSAGES), strategy)
    side.run()

    def turn(new: list[Any]) -> list[Any]:
        side.messages.extend(new)
        return side.run()

    return median([seconds(turn, Theirs(new, strategy).messages)[0] for new in _grown()])


def turns_section(say: Callable[[str], None]) -> Section:
    """Turns on 10,000 messages, both sides; collector off."""
    messages = conversation(MESSAGES)
    ours, theirs = our_tokens(messages), their_tokens(messages)
    idle, window = TokenBudgetComposed([], budget=2 * ours), SlidingWindow(keep=last(groups=20))
    say("turns, theirs")
    waited = _theirs(af.TokenBudgetComposedStrategy(token_budget=2 * theirs, tokenizer=COUNTER, strategies=[]))
    slid = _theirs(af.SlidingWindowStrategy(keep_last_groups=20))
    say("turns, ours")
    half = Truncation(trigger=tokens_exceed(ours * 3 // 4), target=~tokens_exceed(ours // 2), keep=last(groups=1))

    def fresh() -> MessageIndex:
        return MessageIndex(messages, counter="chars/4")

    def cut() -> MessageIndex:
        index = fresh()
        run_sync(index, half)
        return index

    view = compact_sync(messages, half, counter="chars/4").messages
    figures = [
        ("nothing to do, appended", waited, _by_append(fresh(), idle), 1_000),
        ("nothing to do, full list of the same objects", waited, _by_sync(fresh(), idle, list, messages), 200),
        ("nothing to do, full list of rebuilt objects", waited, _by_sync(fresh(), idle, rebuilt, messages), 20),
        ("after a cut, full list of the same objects", waited, _by_sync(cut(), half, list, messages), None),
        ("after a cut, full list of rebuilt objects", waited, _by_sync(cut(), half, rebuilt, messages), None),
        ("after a cut, the last view fed back", waited, _by_sync(cut(), half, list, view), None),
        ("after a cut, the last view fed back, rebuilt", waited, _by_sync(cut(), half, rebuilt, view), None),
        ("sliding window of 20 groups, appended", slid, _by_append(fresh(), window), None),
    ]
    rows = [
        [what, spoken(they), spoken(we), f"{they / we:,.0f}x", "" if asked is None else f"{asked:,}x"]
        for what, they, we, asked in figures
    ]
    claims = [
        Claim(f"a turn of two messages on 10,000: {what}", asked, they / we) for what, they, we, asked in figures if asked
    ]
    return Section("turns", table(["turn", "theirs", "ours", "ratio", "asked"], rows), tuple(claims))
