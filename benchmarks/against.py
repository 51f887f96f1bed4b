"""Comparison with Agent Framework on the same conversation: whole calls including reading, and the compaction alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from compaction import MessageIndex, run_sync

from .conversation import conversation
from .cpu import fastest, seconds
from .peer import PAIRS, Left, Pair, Theirs, compacted, our_tokens, their_tokens
from .tables import Claim, Section, spoken, table


@attrs.frozen(kw_only=True)
class Compared:
    """The measurements of one strategy on one conversation, for both sides.

    Args:
        pair: The strategies.
        messages: Number of messages of the conversation.
        on: Whether the garbage collector was on.
        ours: CPU seconds of a whole call of this package, from a list of dictionaries to the result.
        theirs: CPU seconds of a whole call of Agent Framework, from a list of its message objects to the view.
        ours_alone: CPU seconds of our strategy and its edits on an existing index.
        theirs_alone: CPU seconds of their strategy on messages that are already grouped and counted.
        we_left: The size of our result.
        they_left: The size of their result.
    """

    pair: Pair
    messages: int
    on: bool
    ours: float
    theirs: float
    ours_alone: float
    theirs_alone: float
    we_left: Left
    they_left: Left


def compare(sizes: Sequence[int], *, slow: bool, say: Callable[[str], None]) -> list[Compared]:
    """Measure both sides on conversations of these sizes.

    With ``slow``, measurements that take minutes are included; they run once, with the collector off.
    """
    found: list[Compared] = []
    for size in sizes:
        messages = conversation(size)
        totals = our_tokens(messages), their_tokens(messages)
        for pair in PAIRS:
            minutes = pair.slow and size > 1_000
            for on in (False,) if minutes else (False, True):
                if slow or not minutes:
                    say(f"{pair.name}, {size:,} messages, collector {'on' if on else 'off'}")
                    found.append(_compared(pair, messages, totals, on=on, rounds=1 if minutes else 3))
    return found


def _compared(pair: Pair, messages: list[dict[str, Any]], totals: tuple[int, int], *, on: bool, rounds: int) -> Compared:
    """Measure both sides in turn, so that other load on the machine affects both."""
    ours, theirs = list[float](), list[tuple[float, float, Left]]()
    strategy = pair.ours(len(messages), totals[0])
    for _ in range(rounds):
        ours.append(fastest(compacted, messages, strategy, rounds=5, on=on))
        theirs.append(_their_call(pair, messages, totals[1], on=on))
    return Compared(
        pair=pair,
        messages=len(messages),
        on=on,
        ours=min(ours),
        theirs=min(whole for whole, _, _ in theirs),
        ours_alone=_alone(messages, strategy, on=on),
        theirs_alone=min(alone for _, alone, _ in theirs),
        we_left=compacted(messages, strategy),
        they_left=theirs[0][2],
    )


def _their_call(pair: Pair, messages: list[dict[str, Any]], tokens: int, *, on: bool) -> tuple[float, float, Left]:
    """Return the CPU seconds of one call of Agent Framework, those of its strategy alone, and the size of the result."""
    side = Theirs(messages, pair.theirs(len(messages), tokens))
    whole, view = seconds(side.run, on=on)
    return whole, side.alone, side.left(view, tokens)


def _alone(messages: list[dict[str, Any]], strategy: Any, *, on: bool) -> float:
    """Return the CPU seconds of our strategy on an existing index, which is rolled back after each round."""
    index = MessageIndex(messages, counter="chars/4")

    def rounds() -> Iterator[float]:
        for _ in range(7):
            yield seconds(run_sync, index, strategy, on=on)[0]
            index.rollback(0)

    return min(rounds())


def whole_section(found: Sequence[Compared]) -> Section:
    """Return the table of whole calls."""
    heads = ["strategy", "messages", "collector", "theirs", "ours", "ratio", "target", "they left", "we left"]
    rows = [
        [
            each.pair.name,
            f"{each.messages:,}",
            "on" if each.on else "off",
            spoken(each.theirs),
            spoken(each.ours),
            f"{each.theirs / each.ours:,.0f}x" if each.theirs / each.ours >= 10 else f"{each.theirs / each.ours:.1f}x",
            f"{_limit(each):,}x",
            str(each.they_left),
            str(each.we_left),
        ]
        for each in found
    ]
    largest = {each.pair.name: each for each in sorted(found, key=lambda each: each.messages) if not each.on}
    claims = [
        Claim(f"{name}, {each.messages:,} messages", _limit(each), each.theirs / each.ours) for name, each in largest.items()
    ]
    return Section("against", table(heads, rows), tuple(claims), in_page=False)


def _limit(each: Compared) -> int:
    return each.pair.limits[each.messages > 1_000]


def alone_section(found: Sequence[Compared]) -> Section:
    """Return the table of the compaction alone."""
    chosen = [each for each in found if not each.on]
    heads = ["strategy", "messages", "theirs", "ours", "ratio"]
    rows = [
        [
            each.pair.name,
            f"{each.messages:,}",
            spoken(each.theirs_alone),
            spoken(each.ours_alone),
            f"{each.theirs_alone / each.ours_alone:,.0f}x",
        ]
        for each in chosen
    ]
    claims = [
        Claim(
            f"{each.pair.name}, {each.messages:,} messages, compaction alone",
            1_000,
            each.theirs_alone / each.ours_alone,
        )
        for each in chosen
        if each.pair.limits[1] > 3 and each.messages > 1_000
    ]
    return Section("alone", table(heads, rows), tuple(claims), in_page=False)
