"""Which groups one message can replace, and which may leave together, mostly where answers follow only the user."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from compaction import Drop, GroupKind, MessageGroup, MessageIndex, Replace, kinds, last
from compaction.errors import StrategyError
from compaction.formats import anthropic, openai_chat
from compaction.index.marks import marked
from compaction.index.replacements import neighbours
from compaction.strategies import Summarization, ToolResult
from compaction.testing import check_strategy
from tests.support.chats import ROLES, call, index_of_roles, indexed, result, user
from tests.support.letters import lettered

Raw: TypeAlias = dict[str, Any]


def chosen(index: MessageIndex, ids: list[int]) -> list[MessageGroup]:
    return [group for group in index.included_groups if group.id in ids]


def test_where_any_message_may_follow_any_other() -> None:
    index = indexed([call("t"), user(), result("t"), user()])
    assert index.interleaved() == set()
    assert [group.id for group in index.replaceable(index.included_groups)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("roles", "gone", "before", "after"),
    [
        ("suauau", {3, 4}, 2, 5),
        ("suauau", {1, 2}, None, 3),
        ("usau", {2}, 1, 3),
        ("uau", {0, 2}, 1, None),
        ("uauaau", {0, 1, 3, 4}, None, 2),
        ("uauaau", {1, 3, 4}, 2, 5),
        ("uauauau", {0, 1, 4, 5}, 3, 6),
    ],
)
def test_neighbours(roles: str, gone: set[int], before: int | None, after: int | None) -> None:
    index = index_of_roles(roles)
    found = [None if message is None else index.messages().index(message.raw) for message in neighbours(index.columns, gone)]
    assert found == [before, after]


@pytest.mark.parametrize(
    ("roles", "gone", "view"),
    [
        ("uauaa", [0, 1, 3], "S u2 a4"),  # u2 is newer than u0
        ("uauaa", [1, 3], "u0 u2 S a4"),  # it does not stand for words of the user
        ("uauauau", [0, 1, 3, 4, 5], "u2 S u6"),  # u2 is pinned: it is older than u4
        ("uuuuaa", [0, 1, 4], "S u2 u3 a5"),
    ],
)
def test_no_newer_words_of_the_user_stand_before_a_summary(roles: str, gone: list[int], view: str) -> None:
    index = index_of_roles(roles, format=openai_chat)
    assert index.apply(Replace(gone, [index.format.read({"role": "user", "content": "S"})]))
    assert " ".join(message["content"].split()[0] for message in index.messages()) == view


def test_a_summary_counts_as_words_of_the_user() -> None:
    """A later summary stands before them too, in the same index and in one of the view alone."""
    index = index_of_roles("uauaaa", format=openai_chat)
    index.apply(Replace([0, 1, 3], index.summary("first", [0, 1, 3], by="S")))
    for each in (index, MessageIndex(index.messages(), counter="chars/4")):
        ids = each.included_ids
        assert each.apply(Replace([ids[0], ids[2]], each.summary("then", [ids[0], ids[2]], by="S")), by="S")
        assert [group.kind.value for group in each.included_groups] == ["summary", "user", "assistant"]


def test_groups_may_be_given_by_id() -> None:
    """A summary needs a group of the view, whose place it takes."""
    index = index_of_roles("uauau")
    assert index.replaceable([1, 2]) == [1, 2]
    by_id, by_group = index.summary("said", [1, 2], by="S"), index.summary("said", chosen(index, [1, 2]), by="S")
    assert [message.raw for message in by_id] == [message.raw for message in by_group]
    with pytest.raises(StrategyError, match=r"summary of groups \[\]: none of them is in the view"):
        index.summary("said", [], by="S")


@pytest.mark.parametrize(
    ("roles", "free", "fitting"),
    [
        ("uauauau", [0, 2, 4, 5], [4, 5]),
        ("uauauau", [0, 1, 3, 5], [0, 1, 3, 5]),
        ("suauau", [1, 2, 4], [1, 2, 4]),
        ("usauauau", [2, 3, 5, 6], [5, 6]),
        ("uau", [], []),
        ("uauau", [1, 2, 4], [1, 2, 4]),
        ("usauaua", [0, 2, 4, 5], [0, 2, 4, 5]),
        ("usauaua", [2, 4, 5], [4, 5]),
        ("usa", [0, 1], [0, 1]),
        ("uas", [0], [0]),
    ],
)
def test_what_one_message_may_stand_for(roles: str, free: list[int], fitting: list[int]) -> None:
    """The message fills the last gap; other gaps must close by themselves, and the message after an instruction stays."""
    index = index_of_roles(roles)
    assert [group.id for group in index.replaceable(chosen(index, free))] == fitting


def test_a_group_that_stands_apart_may_go_with_what_is_between() -> None:
    """Removed groups no longer separate a group's messages."""
    call: Raw = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}
    result: Raw = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    said: list[Raw] = [{"role": role, "content": "x"} for role in ("user", "user", "user", "assistant", "user")]
    index = MessageIndex([said[0], call, said[1], result, *said[2:]], counter="chars/4", format=anthropic)
    assert [group.id for group in index.replaceable(chosen(index, [1, 2, 5]))] == [1, 2, 5]
    assert [group.id for group in index.replaceable(chosen(index, [1, 5]))] == [5]


def test_a_call_whose_result_stands_elsewhere_is_not_collapsed() -> None:
    """Without its result, two answers would be neighbours, and reasoning would follow the wrong answer."""
    thoughts: Raw = {"type": "thinking", "thinking": "hm " * 40, "signature": "c2ln"}
    calls: list[Raw] = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ("a", "b")]
    messages: list[Raw] = [
        {"role": "assistant", "content": [thoughts, calls[0]]},
        {"role": "assistant", "content": [calls[1]]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]},
        {"role": "assistant", "content": [thoughts, {"type": "text", "text": "done"}]},
    ]
    assert MessageIndex(messages, counter="chars/4", format=anthropic).interleaved() == {0, 1}
    check_strategy(ToolResult(keep=last(groups=1)), messages=messages, format=anthropic)


def test_nothing_is_written_into_the_middle_of_an_answer() -> None:
    search: Raw = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found: Raw = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    stray: Raw = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "word " * 90}
    messages: list[Raw] = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [search]},
        {"role": "user", "content": [stray]},
        {"role": "assistant", "content": [found, {"type": "text", "text": "done"}]},
        {"role": "user", "content": "and?"},
        {"role": "assistant", "content": "so"},
    ]
    index = MessageIndex(messages, counter="chars/4", format=anthropic)
    assert [group.id for group in index.included_groups] == [0, 1, 2, 4, 5]
    assert index.interleaved() == {1, 2}
    assert index.replaceable(chosen(index, [2])) == []
    for strategy in (ToolResult(keep=last(groups=1)), Summarization(keep=last(groups=2) | kinds(GroupKind.ASSISTANT))):
        check_strategy(strategy, messages=messages, format=anthropic)


def test_a_summary_of_two_messages_is_read_as_one_group() -> None:
    """The acknowledgement after a summary belongs to it and starts no turn; elsewhere it is a user message."""
    index = index_of_roles("usauau")
    answer = anthropic.summary(marked("what was said", by="Summarization"), index.included_groups[1].messages[0], None)
    assert [message.role for message in answer] == ["assistant", "user"]
    assert index.apply(Replace([2, 3], answer))
    again = MessageIndex(index.messages(), counter="chars/4", format=anthropic)
    kinds = [(group.kind.value, len(group.messages), group.turn) for group in again.included_groups]
    assert kinds == [("user", 1, 1), ("system", 1, None), ("summary", 2, None), ("assistant", 1, 1), ("user", 1, 2)]
    assert again.included.tokens == index.included.tokens
    alone = MessageIndex([answer[1].raw], counter="chars/4", format=anthropic)
    assert alone.included_groups[0].kind.value == "user"


def test_a_gap_closes_as_far_as_it_can() -> None:
    """Before the last gap so much may go that what stays follows what is before; a call counts by its first message."""
    index = index_of_roles("uauauaua")
    assert [group.id for group in index.replaceable(chosen(index, [2, 3, 4, 6]))] == [2, 3, 6]
    said: list[Raw] = [{"role": ROLES[role], "content": f"{role} " * 20 + "."} for role in "uauau"]
    call: Raw = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}
    result: Raw = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    index = MessageIndex([*said, call, result, said[1], said[0], said[1]], counter="chars/4", format=anthropic)
    assert [group.id for group in index.included_groups] == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert [group.id for group in index.replaceable(chosen(index, [2, 3, 4, 5, 8]))] == [2, 3, 8]


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
