"""`Drops`: many drops that the index applies in one loop, or that a strategy around them sees one by one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from compaction import Drop, MessageIndex
from compaction.index import PASS_ON, Drops, relay
from compaction.strategies import Truncation
from tests.support.chats import indexed, shown, system, turns, user


def drops(index: MessageIndex, steps: Sequence[Sequence[int]], until: int = 0) -> Drops:
    """Return the drops of these groups, until the view has so many messages."""
    return Drops(steps, "a test", lambda: len(index.messages()) <= until)


def test_the_target_sees_every_drop() -> None:
    index = indexed(turns(4))
    index.begin_step(Truncation())
    index.apply_all(drops(index, [[0, 1], [2], [3], [4]], until=5))
    assert shown(index.messages()) == ["a2", "q3", "a3", "q4", "a4"]
    assert index.edits == (Drop([0, 1], "a test"), Drop([2], "a test"))
    assert [applied.by for applied in index.journal] == ["Truncation", "Truncation"]


@pytest.mark.parametrize("bad", [[], [0], [1, 1], [9], [3], [1, 2, 3]])
def test_each_drop_is_checked(bad: list[int]) -> None:
    one, other = (indexed([system(), *turns(1), user("last")]) for _ in range(2))
    one.apply_all(drops(one, [bad, [2], [2]]))
    for step in (bad, [2], [2]):
        other.apply(Drop(step, "a test"))
    assert (one.edits, one.refused) == (other.edits, other.refused)
    assert one.included == other.included


def test_a_strategy_around_them_sees_single_drops() -> None:
    """Without ``drop_all``, `relay` answers each drop by itself, and stops when ``until`` says so."""
    index = indexed(turns(3))

    def steps() -> Generator[Any, Any, None]:
        yield drops(index, [[0], [1], [2]])
        yield "the end"

    seen: list[Any] = []

    def applied(item: Any) -> object:
        seen.append(item)
        return isinstance(item, Drop) and index.apply(item)

    assert list(relay(steps(), applied)) == []
    assert seen == [Drop(0, "a test"), Drop(1, "a test"), Drop(2, "a test"), "the end"]
    index.rollback()
    assert list(relay(steps(), lambda _: PASS_ON, until=lambda item: item == seen[1])) == seen[:2]
