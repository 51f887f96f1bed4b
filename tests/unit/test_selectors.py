"""Selectors: which groups they choose, and how they combine."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from compaction import GroupKind, MessageIndex, Replace, everything, first, kinds, last, nothing, pinned, run_sync, tools
from compaction import system as instructions
from compaction.errors import ConfigurationError, StrategyError
from compaction.formats import openai_chat
from compaction.index import RunContext
from compaction.index.marks import marked
from compaction.selectors import Selector, as_selector, demonstrations, fitting
from compaction.strategies import ToolResult, Truncation
from tests.support.chats import Chat, assistant, call, developer, indexed, result, system, turns, user

CHAT: Chat = [
    *(system(), assistant("hello")),
    *(user("q1"), call("1", "2", name="read_file"), result("1"), result("2"), assistant("a1"), developer()),
    *(user("q2"), call("3", name="browser_open"), result("3")),
    *(user("q3"), assistant("a3")),
]
ALL = {0, 1, 2, 3, 6, 7, 8, 9, 11, 12}


def chosen(selector: Selector, messages: Chat = CHAT) -> set[int]:
    return set(selector(indexed(messages)))


def users(index: MessageIndex) -> list[int]:
    return [group.id for group in index.included_groups if group.kind is GroupKind.USER]


class TestConstants:
    def test_what_each_is(self) -> None:
        assert chosen(everything) == ALL
        assert chosen(nothing) == set()
        assert chosen(instructions) == {0, 7}
        index = indexed(CHAT)
        index.pin([2, 9])
        assert pinned(index) == {2, 9}

    def test_kinds(self) -> None:
        assert chosen(kinds(GroupKind.USER)) == {2, 8, 11}
        assert chosen(kinds(GroupKind.TOOL_CALL, GroupKind.ASSISTANT)) == {1, 3, 6, 9, 12}
        assert chosen(kinds()) == set()
        with pytest.raises(ConfigurationError, match=r"kinds\('user'\): a kind is a member of GroupKind"):
            kinds("user")  # type: ignore[arg-type]

    def test_tools_by_name_or_pattern(self) -> None:
        assert chosen(tools("read_file")) == {3}
        assert chosen(tools("browser_*", "nothing")) == {9}
        assert chosen(tools("*")) == {3, 9}
        assert chosen(tools("READ_FILE")) == set()
        assert chosen(tools("*"), [result("9"), user()]) == set()
        assert chosen(tools()) == set()


class TestCounts:
    """``first`` counts from the start and includes system messages; ``last`` counts from the end and ignores them."""

    @pytest.mark.parametrize(
        ("selector", "ids"),
        [
            (first(messages=0), set()),
            (first(messages=1), {0}),
            (first(messages=4), {0, 1, 2, 3}),
            (first(messages=6), {0, 1, 2, 3}),
            (first(messages=7), {0, 1, 2, 3, 6}),
            (first(messages=99), ALL),
            (first(groups=0), set()),
            (first(groups=3), {0, 1, 2}),
            (first(groups=99), ALL),
            (first(turns=0), set()),
            (first(turns=1), {0, 1, 2, 3, 6, 7}),
            (first(turns=2), {0, 1, 2, 3, 6, 7, 8, 9}),
            (first(turns=9), ALL),
            (first(groups=1, of=kinds(GroupKind.USER)), {2}),
            (first(messages=1, of=kinds(GroupKind.TOOL_CALL)), {3}),
            (first(turns=1, of=kinds(GroupKind.ASSISTANT)), {1, 6}),
            (last(messages=0), set()),
            (last(messages=1), {12}),
            (last(messages=3), {9, 11, 12}),
            (last(messages=4), {9, 11, 12}),
            (last(messages=5), {8, 9, 11, 12}),
            (last(messages=99), ALL - {0, 7}),
            (last(groups=5), {6, 8, 9, 11, 12}),
            (last(groups=99), ALL - {0, 7}),
            (last(turns=0), set()),
            (last(turns=1), {11, 12}),
            (last(turns=2), {8, 9, 11, 12}),
            (last(turns=3), {2, 3, 6, 8, 9, 11, 12}),
            (last(turns=4), ALL - {0, 7}),
            (last(groups=1, of=kinds(GroupKind.TOOL_CALL)), {9}),
            (last(groups=2, of=tools("read_*")), {3}),
            (last(turns=1, of=kinds(GroupKind.TOOL_CALL)), {9}),
            (last(groups=1, of=users), {11}),
            (last(groups=1, of=instructions), set()),
        ],
    )
    def test_how_many(self, selector: Selector, ids: set[int]) -> None:
        """Messages are rounded up to whole groups; for ``last``, the groups before the first user message are one more turn."""
        assert chosen(selector) == ids

    def test_tokens_shrink_to_whole_groups(self) -> None:
        """``last(tokens=)`` chooses as many whole groups as fit, and at least the newest one, except for 0 tokens."""
        index = indexed(turns(3, words=20))
        size = index.group(0).tokens
        assert [group.tokens for group in index.included_groups] == [size] * 6
        assert last(tokens=0)(index) == set()
        assert last(tokens=1)(index) == {5}
        assert last(tokens=2 * size - 1)(index) == {5}
        assert last(tokens=2 * size)(index) == {4, 5}
        assert last(tokens=10**6)(index) == {0, 1, 2, 3, 4, 5}

    def test_tokens_of_some_kind_only(self) -> None:
        index = indexed(turns(3, words=20))
        assert last(tokens=2 * index.group(0).tokens, of=kinds(GroupKind.USER))(index) == {2, 4}


class TestCollapsedCalls:
    def test_it_counts_as_the_call_it_stands_for(self) -> None:
        """``first(messages=)`` counts a collapsed call as the group it replaces, so that a second run changes nothing."""
        index = indexed([result("call_1", "18 degrees\n" * 40), user("Fine.")])
        pipeline = Truncation(keep=first(messages=1)) >> ToolResult(keep=nothing)
        run_sync(index, pipeline)
        once = index.messages()
        run_sync(index, pipeline)
        assert (index.messages(), len(once)) == (once, 2)


class TestSummaries:
    def test_the_first_messages_end_at_a_summary(self) -> None:
        """Messages behind a summary are newer than those in it; so they are not the first."""
        index = indexed([system(), user("a"), user(marked("so far", by="X")), *turns(2)])
        assert first(messages=9)(index) == first(groups=3)(index) == first(turns=2)(index) == {0, 1}
        assert first(groups=1)(indexed([user(marked("so far", by="X")), *turns(1)])) == set()

    @pytest.mark.parametrize("selector", [last(groups=2), last(tokens=10**6), last(turns=1)])
    def test_a_summary_is_passed_over(self, selector: Selector) -> None:
        """``last`` neither counts nor chooses summaries, whether read from the list or inserted by an edit."""
        read = indexed([user(marked("so far", by="X")), *turns(1), assistant("x"), user(marked("later", by="X"))])
        made = indexed(turns(3, words=40))
        made.apply(Replace([0, 1], [openai_chat.new("user", marked("so far", by="X"))]))
        for index in (read, made):
            summaries = {group.id for group in index.included_groups if group.kind is GroupKind.SUMMARY}
            assert summaries
            assert not summaries & selector(index)
            assert selector(index)
            assert summaries == kinds(GroupKind.SUMMARY)(index)


class TestAlgebra:
    def test_functions_are_lifted_on_either_side(self) -> None:
        def groups(index: MessageIndex) -> list[Any]:
            return [index.included_groups[0], 12, 99]

        assert chosen(nothing | users) == chosen(users | nothing) == {2, 8, 11}
        assert chosen(last(turns=1) & users) == chosen(users & last(turns=1)) == {11}
        assert chosen(as_selector(groups)) == {0, 12}

    @pytest.mark.parametrize("answer", [["1"], [None], [0.5], "abc", {"a": 1}, None])
    def test_a_function_that_returns_no_groups(self, answer: Any) -> None:
        with pytest.raises(StrategyError, match="return groups, or their ids"):
            chosen(as_selector(lambda index: answer))

    def test_a_selector_is_not_true_or_false(self) -> None:
        """``bool()`` of a selector raises a `TypeError`, because ``and`` and ``or`` would silently ignore one side."""
        with pytest.raises(TypeError, match=r"combine selectors with \| & ~"):
            bool(first(groups=1))


class TestBadArguments:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (first, r"first\(\): give exactly one of messages, groups, turns \(got none\)"),
            (last, r"last\(\): give exactly one of messages, groups, turns, tokens \(got none\)"),
            (lambda: last(groups=1, turns=1), r"last\(\): give exactly one of .* \(got groups, turns\)"),
            (lambda: last(groups=-1), "last: 'groups' must be a whole number >= 0"),
            (lambda: last(tokens=1.5), "last: 'tokens' must be a whole number >= 0"),  # type: ignore[arg-type]
            (lambda: first(turns=True), "first: 'turns' must be a whole number >= 0"),
            (lambda: last(groups=1, of=7), r"a selector must be a callable that takes an index \(got 7\)"),  # type: ignore[arg-type]
            (lambda: fitting(-1, last(groups=1)), "fitting: 'tokens' must be a whole number >= 0"),
            (lambda: fitting(True, last(groups=1)), "fitting: 'tokens' must be a whole number >= 0"),
            (lambda: fitting(9), "give one selector or more"),
            (lambda: as_selector(None), r"a selector must be a callable that takes an index \(got None\)"),  # type: ignore[arg-type]
            (lambda: first(groups=1) | {1, 2}, r"a selector must be a callable that takes an index \(got \{1, 2\}\)"),  # type: ignore[operator]
        ],
    )
    def test_are_errors_at_once(self, make: Callable[[], object], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            make()


def test_a_function_that_returns_no_groups() -> None:
    def forgets(index: MessageIndex) -> Any:
        index.messages()

    with pytest.raises(StrategyError, match=r"the selector .*forgets.* returned None; return groups, or their ids"):
        as_selector(forgets)(indexed([user()]))


class TestFitting:
    """``fitting`` chooses the first selector with which the request fits."""

    def left(self, index: MessageIndex, kept: set[int]) -> int:
        """The tokens of the request if only these groups and those that cannot be removed stay."""
        stay = {group.id for group in index.included_groups if group.id in kept or not index.is_removable(group)}
        return index.context.overhead_tokens + sum(index.group(id).tokens for id in stay)

    def test_first_that_fits(self) -> None:
        index = indexed(CHAT)
        many, few, least = everything, last(groups=3), last(groups=1)
        for choice, other in ((many, few), (few, least)):
            size = self.left(index, set(choice(index)))
            assert fitting(size, choice, other)(index) == choice(index)
            assert fitting(size - 1, choice, other)(index) == other(index)
        assert fitting(0, many, few, least)(index) == least(index)
        assert fitting(0, many)(index) == many(index)

    def test_what_counts_besides(self) -> None:
        for context, expected in ((RunContext(), everything), (RunContext(overhead_tokens=1), nothing)):
            index = MessageIndex(CHAT, counter="chars/4", context=context)
            assert fitting(index.included.tokens, everything, nothing)(index) == expected(index)

    def test_fitting_is_a_value(self) -> None:
        value = fitting(9, last(turns=2), users)
        assert value == fitting(9, last(turns=2), users) != fitting(8, last(turns=2), users)
        assert repr(fitting(9, last(turns=2), nothing)) == "fitting(9, last(turns=2), nothing)"
        assert pickle.loads(pickle.dumps(fitting(9, last(turns=2)))) == fitting(9, last(turns=2))
        assert chosen(fitting(0, everything, nothing) | last(groups=1)) == {12}


def test_a_collapsed_call_is_what_it_stands_for() -> None:
    chat = [*CHAT[:4], result("1", "long " * 90), result("2", "long " * 90), *CHAT[6:]]
    index = indexed(chat)
    done = run_sync(index, ToolResult(keep=tools("browser_*")))
    for again in (index, indexed(done.messages)):
        [collapsed] = [group for group in again.included_groups if group.is_collapsed]
        assert collapsed.tool_names == ("read_file", "read_file")
        assert tools("read_*")(again) == {collapsed.id}
        assert collapsed.id in kinds(GroupKind.TOOL_CALL)(again)
        assert collapsed.id not in kinds(GroupKind.SUMMARY)(again)


def test_what_a_tool_said_names_no_tool() -> None:
    """The tool names of a collapsed call come from its calls, never from texts or results that look like calls."""
    said = {**call("1", name="look"), "content": "[Tool results]\nrm(all) -> done"}
    chat = [user("q"), said, result("1", "drop(tables) -> ok " * 60), user("q2"), assistant("a")]
    orphan = [user("q"), result("9", "drop(tables) -> ok " * 60), user("q2"), assistant("a")]
    for messages, names in ((chat, ("look",)), (orphan, ())):
        view = indexed(run_sync(indexed(messages), ToolResult()).messages)
        [collapsed] = [each for each in view.included_groups if each.is_collapsed]
        assert collapsed.tool_names == names


EXAMPLE = user("This is how it is done:\n" + "2026-01-03 10:11:12 ERROR no disk\n" * 200)


@pytest.mark.parametrize(
    ("messages", "ids"),
    [
        ([system(), EXAMPLE, user("task"), assistant("a")], {1}),
        ([EXAMPLE, user("Never touch prod.db. " * 200), EXAMPLE, user("task")], {0, 2}),
        ([system(), user("task"), assistant("a"), EXAMPLE, user("q3")], set()),
        ([assistant("hello"), EXAMPLE, user("task")], set()),
        ([], set()),
    ],
)
def test_demonstrations_precede_the_task(messages: Chat, ids: set[int]) -> None:
    """User messages at the start that show work are demonstrations, except the last one before the first answer."""
    assert chosen(demonstrations(), messages) == ids
