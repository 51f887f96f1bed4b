"""The cost of a turn: two messages are added to 10,000, and the strategy runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import median
from time import process_time
from typing import Any

import agent_framework as af

from compaction import MessageIndex, last, run_sync
from compaction.strategies import SlidingWindow, Strategy, TokenBudgetComposed, Truncation
from compaction.triggers import tokens_below, tokens_exceed

from .conversation import conversation, peer_messages, rebuilt
from .cpu import collector
from .peer import COUNTER, Theirs, our_tokens, their_tokens
from .tables import Claim, Section, spoken, table

MESSAGES = 10_000
TURNS = 40


def turns_section(say: Callable[[str], None]) -> Section:
    """Measure turns on 10,000 messages on both sides, with the collector off."""
    messages = conversation(MESSAGES)
    ours, theirs = our_tokens(messages), their_tokens(messages)
    idle, window = TokenBudgetComposed([], budget=2 * ours), SlidingWindow(keep=last(groups=20))
    half = Truncation(trigger=tokens_exceed(ours * 3 // 4), target=tokens_below(ours // 2), keep=last(groups=1))
    say("turns, theirs")
    waited = _theirs(af.TokenBudgetComposedStrategy(token_budget=2 * theirs, tokenizer=COUNTER, strategies=[]))
    slid = _theirs(af.SlidingWindowStrategy(keep_last_groups=20))
    say("turns, ours")
    view = _index(messages, half).messages()
    kept = _index(messages, window).messages()
    figures: list[tuple[str, float, float, int | None, float]] = [
        ("nothing to do, appended", waited, _by_append(messages, idle), 1_000, _copied(messages)),
        ("sliding window of 20 groups, appended", slid, _by_append(messages, window), None, _copied(kept)),
    ]
    for what, strategy, known, asked in (
        ("nothing to do, the full list", idle, messages, (200, 20)),
        ("cut to half before, the full list", half, messages, (None, None)),
        ("cut to half before, the last view", half, view, (None, None)),
    ):
        for name, given, limit in (("same objects", list[Any], asked[0]), ("rebuilt", rebuilt, asked[1])):
            ours_took, floor = _by_sync(messages, strategy, known, given), _compared(known, given)
            figures.append((f"{what}, {name}", waited, ours_took, limit, floor))
    rows = [
        [
            what,
            *map(spoken, (they, we, floor)),
            f"{they / we:,.0f}x",
            "" if limit is None else f"{limit:,}x",
            f"{we / floor:.1f}x",
        ]
        for what, they, we, limit, floor in figures
    ]
    heads = ["turn of two messages", "theirs", "ours", "the floor", "theirs / ours", "target", "ours / floor"]
    claims = [Claim(f"a turn on 10,000 messages: {what}", limit, they / we) for what, they, we, limit, _ in figures if limit]
    return Section("turns", table(heads, rows), tuple(claims))


def _index(messages: list[dict[str, Any]], strategy: Strategy) -> MessageIndex:
    """Return an index of the conversation on which the strategy has run once."""
    index = MessageIndex(messages, counter="chars/4")
    run_sync(index, strategy)
    return index


def _coming() -> Iterator[list[dict[str, Any]]]:
    """Yield the two messages of each turn."""
    return (conversation(2, start=MESSAGES + 2 * turn) for turn in range(TURNS))


def _median(turn: Callable[[Any], object], given: Iterable[Any]) -> float:
    """Return the CPU seconds of the median turn; the input of a turn is made outside the measured time."""
    took: list[float] = []
    with collector(on=False):
        for each in given:
            start = process_time()
            turn(each)
            took.append(process_time() - start)
    return median(took)


def _by_append(messages: list[dict[str, Any]], strategy: Strategy) -> float:
    """Measure turns that append the two messages."""
    index = _index(messages, strategy)

    def turn(new: list[dict[str, Any]]) -> list[Any]:
        index.append(new)
        return run_sync(index, strategy).messages

    return _median(turn, _coming())


def _by_sync(
    messages: list[dict[str, Any]], strategy: Strategy, known: list[Any], given: Callable[[list[Any]], list[Any]]
) -> float:
    """Measure turns that pass the whole list: ``known`` and all later messages, as ``given`` copies them."""
    index = _index(messages, strategy)

    def lists() -> Iterator[list[Any]]:
        full = known
        for new in _coming():
            full = [*full, *new]
            yield given(full)

    def turn(full: list[Any]) -> list[Any]:
        index.sync(full)
        return run_sync(index, strategy).messages

    return _median(turn, lists())


def _copied(view: list[Any]) -> float:
    """Measure the floor of a turn that appends: the view is returned as a new list."""
    return _median(lambda new: [*view, *new], _coming())


def _compared(known: list[Any], given: Callable[[list[Any]], list[Any]]) -> float:
    """Measure the floor of a turn that passes the whole list: it is compared with the last one, and copied."""

    def pairs() -> Iterator[tuple[list[Any], list[Any]]]:
        full = known
        for new in _coming():
            before, full = full, [*full, *new]
            yield before, given(full)

    def turn(pair: tuple[list[Any], list[Any]]) -> list[Any]:
        before, full = pair
        if before != full[: len(before)]:
            raise RuntimeError("the lists differ")
        return full.copy()

    return _median(turn, pairs())


def _theirs(strategy: Any) -> float:
    """Measure turns of Agent Framework that add the two messages and run the strategy again."""
    side = Theirs(conversation(MESSAGES), strategy)
    side.run()

    def turn(new: list[Any]) -> list[Any]:
        side.messages.extend(new)
        return side.run()

    return _median(turn, map(peer_messages, _coming()))
