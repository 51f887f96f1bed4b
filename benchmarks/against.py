"""Ours against Agent Framework's on the same conversation: whole calls, reading included, and the compaction in them alone."""

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
    """One strategy on one conversation, both sides.

    Args:
        pair: The strategies.
        messages: Messages of the conversation.
        on: Whether the garbage collector was on.
        ours: CPU seconds of a whole call of ours, from a list of dictionaries to the result.
        theirs: Of theirs, from a list of its messages to the view.
        ours_alone: Of our strategy and its edits, on an index that stands.
        theirs_alone: Of their strategy, on messages already grouped and counted.
        we_left: What we left.
        they_left: What they left.
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
    """Both sides on conversations of these sizes; ``slow`` says whether what takes minutes is done too, once, collector off."""
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
    """Both sides in turn, so that whatever else the machine does meets both."""
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
    """One call of theirs: CPU seconds, those of the strategy alone, what it left. Its objects are gone when this returns."""
    side = Theirs(messages, pair.theirs(len(messages), tokens))
    whole, view = seconds(side.run, on=on)
    return whole, side.alone, side.left(view, tokens)


def _alone(messages: list[dict[str, Any]], strategy: Any, *, on: bool) -> float:
    """A strategy of ours on an index that stands, taken back each time."""
    index = MessageIndex(messages, counter="chars/4")

    def rounds() -> Iterator[float]:
        for _ in range(7):
            yield seconds(run_sync, index, strategy, on=on)[0]
            index.rollback(0)

    return min(rounds())


def whole_section(found: Sequence[Compared]) -> Section:
    """Whole calls."""
    heads = ["strategy", "messages", "collector", "theirs", "ours", "ratio", "asked", "they left", "we left"]
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
    claims = [
        Claim(f"{each.pair.name}, {each.messages:,} messages", _limit(each), each.theirs / each.ours)
        for each in found
        if not each.on
    ]
    return Section("against", table(heads, rows), tuple(claims))


def _limit(each: Compared) -> int:
    return each.pair.limits[each.messages > 1_000]


def alone_section(found: Sequence[Compared]) -> Section:
    """The compaction alone."""
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
            f"{each.pair.name}, {each.messages:,} messages, alone on an index that stands",
            1_000,
            each.theirs_alone / each.ours_alone,
        )
        for each in chosen
        if each.pair.limits[1] > 3 and each.messages > 1_000
    ]
    return Section("alone", table(heads, rows), tuple(claims))
