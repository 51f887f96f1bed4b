"""Steps: which groups may be removed while the rest stays valid, mostly in a format whose answers follow only the user."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from compaction import Drop, MessageIndex, Replace
from compaction.formats import openai_chat
from compaction.index.marks import marked
from tests.support.chats import index_of_roles
from tests.support.letters import lettered

Raw: TypeAlias = dict[str, Any]


@pytest.mark.parametrize(
    ("roles", "free", "steps"), [("uusa", [1, 3], [[1, 3]]), ("uss", [0, 1, 2], [[0], [1, 2]])], ids=["a turn", "instructions"]
)
def test_steps_where_turns_go_at_once(roles: str, free: list[int], steps: list[list[int]]) -> None:
    """The groups of a turn are one step, even if others stay between them; instructions belong to no turn and are one step."""
    index = index_of_roles(roles)
    assert list(index.steps(free, together=lambda one, other: index.columns.turn(one) == index.columns.turn(other))) == steps


@pytest.mark.parametrize(
    ("roles", "free", "preferred", "others"),
    [
        ("uuu", [0, 1], [[0], [1]], []),
        ("suaauau", [1, 2, 3, 4, 5], [[2], [1, 3], [4, 5]], []),
        ("suasuau", [1, 2, 4], [[1, 2]], [[4]]),
        ("suaau", [1, 2], [[2]], [[1]]),
        ("uaau", [1, 2], [[1], [2]], []),
        ("uaau", [2, 1, 0, 2], [[2], [1], [0]], []),
        ("saaua", [1, 2], [[1], [2]], []),
        ("saaua", [2], [[2]], []),
    ],
)
def test_steps_where_only_the_beginning_matters(
    roles: str, free: list[int], preferred: list[list[int]], others: list[list[int]]
) -> None:
    """A user message that opens the view is dropped with the rest of its turn, or last; other groups one by one."""
    index = index_of_roles(roles, openai_chat)
    assert list(index.steps(free, preferred_only=True)) == preferred
    assert list(index.steps(free)) == [*preferred, *others]
    assert list(index.steps(free, replaced=True)) == [[id] for id in dict.fromkeys(free)]


@pytest.mark.parametrize(("role", "steps"), [("user", [[1], [0, 2]]), ("assistant", [[1], [2], [0]])])
def test_a_summary_opens_the_view_if_the_user_says_it(role: str, steps: list[list[int]]) -> None:
    said: list[Raw] = [{"role": "user", "content": "a"}, *[{"role": "assistant", "content": "b"}] * 2]
    messages = [*said, {"role": role, "content": marked("so far", by="X")}, *said]
    assert list(MessageIndex(messages, counter="chars/4", format=openai_chat).steps([0, 1, 2])) == steps


@pytest.mark.parametrize(
    ("letters", "forbidden", "free", "steps"),
    [
        ("uabtv", "ub ut", [1, 2, 3], [[1, 2, 3]]),
        ("uabtvabtu", "ub ut vb vt", [1, 2, 3, 5, 6, 7], [[1, 2, 3], [5, 6, 7]]),
        ("uacrbv", "uc ub", [1, 2, 4], [[1, 2, 4]]),
        ("uabtv", "ub uv", [1, 2, 3], [[1, 2]]),
    ],
)
def test_a_gap_is_left_from_its_oldest_group_on(letters: str, forbidden: str, free: list[int], steps: list[list[int]]) -> None:
    """The first step reaches from the oldest group to a valid end, though a group in the middle could be dropped alone."""
    index = lettered(letters, forbidden)
    assert list(index.steps(free)) == steps


def test_no_steps_of_what_is_not_there() -> None:
    index = index_of_roles("uuuu", openai_chat)
    assert list(index.steps([], replaced=True)) == []
    index = lettered("uabau", "")
    assert index.apply(Drop(1))
    assert list(index.steps([1])) == []
    assert list(index.steps([1, 2])) == [[2]]


def test_a_summary_of_two_messages_opens_the_view_by_its_first() -> None:
    index = index_of_roles("uaau", openai_chat)
    assert index.apply(Replace(1, [openai_chat.new("assistant", "a"), openai_chat.new("user", "b")]))
    assert list(index.steps([0, 2])) == [[2], [0]]
