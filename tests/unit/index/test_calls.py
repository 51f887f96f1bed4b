"""Calls and results that are hard to match: many in one message, ids used again, answers resumed later."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import MessageIndex, Replace
from compaction.messages import Outline
from tests.support.chats import call, indexed, result, user
from tests.support.letters import Letters

Raw = dict[str, Any]


def layout(index: MessageIndex) -> list[list[int]]:
    return [index.ordinals(group) for group in index.included_groups]


@pytest.mark.parametrize("count", [3, 16, 17, 40])
def test_a_result_that_comes_twice(count: int) -> None:
    """It belongs to the calls directly before it, if one of them has its id, however many they are."""
    ids = [f"c{number}" for number in range(count)]
    index = indexed([user(), call(*ids), *map(result, ids), result(ids[-1]), result("other"), user()])
    assert layout(index) == [[0], list(range(1, count + 3)), [count + 3], [count + 4]]


def test_a_result_of_calls_that_came_later_comes_twice() -> None:
    format, first, second = Letters(), [f"c{number}" for number in range(20)], ["d0", "d1"]

    def results(ids: list[str]) -> list[Raw]:
        return [{"role": "tool", "text": "r", "answers": id} for id in ids]

    messages: list[Raw] = [
        {"role": "user", "text": "u"},
        {"role": "assistant", "text": "c", "calls": first, "begins": ["x"]},
        *results([*first, "c3"]),
        {"role": "assistant", "text": "c", "calls": second, "resumes": ["x"]},
        *results([*second, "d1", "c3"]),
    ]
    index = MessageIndex(messages, counter="chars/4", format=format)
    assert layout(index) == [[0], list(range(1, len(messages)))]


RESUMED: list[Raw] = [
    {"role": "user", "text": "u0"},
    {"role": "assistant", "text": "a1 word word word", "begins": ["x"]},
    {"role": "user", "text": "u2"},
    {"role": "assistant", "text": "c3", "calls": ["k"]},
]


def test_a_call_after_an_answer_that_was_resumed_is_its_own_group() -> None:
    more = [{"role": "assistant", "text": "a3", "resumes": ["x"]}, {"role": "assistant", "text": "c4", "calls": ["k"]}]
    index = MessageIndex([*RESUMED[:3], *more], counter="chars/4", format=Letters())
    assert layout(index) == [[0], [1, 3], [2], [4]]


def test_a_call_waits_no_longer_once_an_earlier_answer_calls() -> None:
    index = MessageIndex(RESUMED, counter="chars/4", format=Letters())

    def answers() -> list[tuple[str, bool]]:
        return [(group.kind.value, group.pending) for group in index.included_groups][1::2]

    assert answers() == [("assistant", False), ("tool_call", True)]
    index.append([{"role": "assistant", "text": "c4", "resumes": ["x"], "calls": ["l"]}])
    assert answers() == [("tool_call", True), ("tool_call", False)]


def test_a_summary_at_the_place_of_a_call_that_waits() -> None:
    """A summary before a restored pending call may be dropped; the groups after the call may not."""
    index = MessageIndex([*RESUMED[:3], {"role": "assistant", "text": "a3"}], counter="chars/4", format=Letters())
    assert index.apply(Replace(1, [index.format.new("assistant", "a")]))
    index.append([{"role": "assistant", "text": "c4", "resumes": ["x"], "calls": ["l"]}])
    assert index.included_ids == [0, -1, 1, 2, 3]
    assert index.removable_ids() == [0, -1]
    assert [id for id in index.included_ids if index.is_removable(id)] == [0, -1]
    assert index.apply(Replace(-1, [index.format.new("user", "u")]))


def test_results_with_words_that_come_late_move_their_group_to_a_new_turn() -> None:
    index = MessageIndex(RESUMED[:1] + RESUMED[3:], counter="chars/4", format=Letters())
    assert (index.total.turns, index.group(1).turn) == (1, 1)
    index.append([{"role": "user", "text": "w", "answers": "k"}, {"role": "user", "text": "u"}])
    assert (index.included.turns, index.total.turns, index.group(1).turn) == (3, 3, 2)


class Glanced(Letters):
    """The format in which plain messages and calls are read only when needed."""

    def outline(self, raw: Any) -> Outline | None:
        if raw.keys() - {"role", "text", "calls"}:
            return None
        return raw["role"], raw["text"], tuple([(call, "look", "{}") for call in raw.get("calls", ())]), None, None


@pytest.mark.parametrize("format", [Letters(), Glanced()], ids=["read", "outlined"])
def test_an_answer_that_goes_on(format: Letters) -> None:
    """The continuation joins the call or text before it; at the start, after the user or a result it is a separate group."""
    more: Raw = {"role": "assistant", "text": "a", "continues": True}
    found: Raw = {"role": "tool", "text": "r", "answers": "k"}
    said: Raw = {"role": "assistant", "text": "a"}
    messages = [more, RESUMED[2], more, RESUMED[2], said, more, *RESUMED[2:], more, found, more]
    index = MessageIndex(messages, counter="chars/4", format=format)
    assert layout(index) == [[0], [1], [2], [3], [4, 5], [6], [7, 8, 9], [10]]
