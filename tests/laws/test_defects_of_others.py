"""Defects found in other toolkits; each test shows that this package does not have the defect."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from compaction import Drop, Edit, GroupKind, MessageIndex, Replace, Rewrite, compact_sync, last, nothing, presets, run_sync
from compaction.formats import openai_chat
from compaction.index.marks import marked
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Clip,
    Collapse,
    LastResort,
    Pipeline,
    SelectiveToolCall,
    SlidingWindow,
    Steps,
    Strategy,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.triggers import groups_exceed, never, tokens_exceed
from tests.support.chats import Chat, assistant, call, developer, indexed, result, shown, system, tool_turns, turns, user

LONG = "word " * 200

ALL_THEY_CAN: list[Strategy] = [
    Truncation(keep=nothing),
    Truncation(keep=nothing, drop_system=True),
    SlidingWindow(keep=nothing),
    SelectiveToolCall(keep=nothing),
    ClearReasoning(keep=nothing),
    ClearMedia(keep=nothing),
    ToolResult(Collapse(), keep=nothing),
    ToolResult(Clear(min_chars=1), keep=nothing),
    TokenBudgetComposed([], budget=1),
    TokenBudgetComposed([], budget=1, drop_system=True),
    presets.context_window(1, keep_groups=0, keep_tool_groups=0),
]


def calls_in(messages: Chat) -> set[str]:
    return {each["id"] for message in messages for each in message.get("tool_calls") or ()}


def results_in(messages: Chat) -> set[str]:
    return {message["tool_call_id"] for message in messages if message["role"] == "tool"}


def name_of(strategy: Strategy) -> str:
    return strategy.name


class TestNestedTokenStrategies:
    """In other toolkits, a token strategy inside another counts nothing and never runs unless it gets a tokenizer itself."""

    def test_it_counts_wherever_it_is_nested(self) -> None:
        """A truncation makes the same edits alone and inside pipelines, budgets, nested budgets and functions."""
        messages = turns(10, words=100)
        truncation = Truncation(trigger=tokens_exceed(1_000), keep=last(groups=1))

        def wrapped(index: MessageIndex) -> Steps:
            yield from truncation(index)

        alone = compact_sync(messages, truncation, counter="chars/4").edits
        assert alone
        for strategy in (
            Pipeline(Pipeline(truncation)),
            Truncation(trigger=never) >> truncation,
            TokenBudgetComposed([Pipeline(truncation)], budget=1_000),
            TokenBudgetComposed([TokenBudgetComposed([truncation], budget=1_000)], budget=1_000),
            wrapped,
        ):
            assert compact_sync(messages, strategy, counter="chars/4").edits == alone


class TestStaleCounts:
    """In other toolkits, a message changed in place keeps its old count, and a deleted message keeps its group."""

    def test_a_message_edited_in_place_is_counted_anew(self) -> None:
        """``sync(verify=True)`` detects a message that was changed in place, and counts it again."""
        messages = [user("q"), assistant(LONG), user("r")]
        index = indexed(messages)
        messages[1]["content"] = "short"
        index.sync(messages, verify=True)
        assert index.included == indexed(messages).included
        messages[1]["content"] = LONG * 2
        index.sync(messages, verify=True)
        assert index.included == indexed(messages).included

    def test_a_message_deleted_from_the_middle_is_gone(self) -> None:
        """After a message is deleted from the list, the synced index has the same groups and ids as a new index."""
        messages = [system("s"), *turns(3)]
        index = indexed(messages)
        del messages[2]
        index.sync(messages)
        assert [(group.id, group.kind) for group in index.included_groups] == [
            (group.id, group.kind) for group in indexed(messages).included_groups
        ]
        assert index.included == indexed(messages).included

    def test_an_edit_of_ours_is_counted_at_once(self) -> None:
        """The metrics of the view include a rewrite as soon as it is applied."""
        index = indexed([user("q"), call("1"), result("1", LONG), assistant("a")])
        asked, found = index.group(1).messages
        index.apply(Rewrite(1, [asked, found.evolve(text="cut")]))
        assert index.included == indexed(index.messages()).included


class TestPendingCalls:
    """In other toolkits, a call that still waits for its result is collapsed or dropped, and the result is lost."""

    @pytest.mark.parametrize("strategy", ALL_THEY_CAN, ids=name_of)
    @pytest.mark.parametrize(
        "tail",
        [
            [call("1", text=LONG)],
            [{**call("1", "2", text=LONG), "reasoning": LONG}, result("2", LONG)],
            [call("1", text=LONG), result("9", LONG)],
        ],
    )
    def test_a_pending_call_is_never_touched(self, strategy: Strategy, tail: Chat) -> None:
        """A strategy leaves the messages of a pending call unchanged, and its later result joins the same group."""
        index = indexed([system("s"), *tool_turns(2), user("q"), *tail])
        run_sync(index, strategy)
        (waiting,) = [group for group in index.included_groups if group.pending]
        assert [message.raw for message in waiting.messages] == [each for each in tail if each.get("tool_call_id") != "9"]
        index.append([result("1")])
        assert not index.group(waiting.id).open
        assert {"1"} <= calls_in(index.messages()) <= results_in(index.messages())


class TestLateResults:
    """In other toolkits, a result that arrives in a later update is a separate group and is separated from its call."""

    @pytest.mark.parametrize("through_sync", [False, True])
    @pytest.mark.parametrize("strategy", ALL_THEY_CAN, ids=name_of)
    def test_a_late_result_is_never_without_its_call(self, strategy: Strategy, through_sync: bool) -> None:
        """A late result is in the view only together with its call.

        A strategy may have dropped, collapsed or cleared the call before.
        """
        messages = [
            system("s"),
            user("q"),
            call("1", "2", text=LONG),
            result("2", LONG),
            user("never mind"),
            assistant("fine"),
            user("r"),
        ]
        index = indexed(messages)
        run_sync(index, strategy)
        if through_sync:
            index.sync([*messages, result("1")])
        else:
            index.append([result("1")])
        assert calls_in(index.messages()) == results_in(index.messages()) == {"1", "2"}
        run_sync(index, strategy)
        assert calls_in(index.messages()) == results_in(index.messages())


@pytest.mark.parametrize("strategy", ALL_THEY_CAN, ids=name_of)
def test_a_developer_message_is_protected_like_a_system_message(strategy: Strategy) -> None:
    """Strategies keep developer messages as they keep system messages; other toolkits treat them as assistant messages."""
    messages = [developer("d " * 50), *turns(3), developer("e " * 50), *turns(2)]
    index = indexed(messages)
    assert [group.kind for group in index.included_groups].count(GroupKind.SYSTEM) == 2
    run_sync(index, strategy)
    if not getattr(strategy, "drop_system", False):
        assert [message for message in index.messages() if message["role"] == "developer"] == [messages[0], messages[7]]


class TestEmptyPrompts:
    """In other toolkits, every message can be excluded, and the provider rejects the empty list."""

    @pytest.mark.parametrize("strategy", ALL_THEY_CAN, ids=name_of)
    @pytest.mark.parametrize(
        "messages",
        [
            [user(LONG)],
            [assistant(LONG)],
            [system(LONG)],
            [developer(LONG), system(LONG)],
            [call("1"), result("1", LONG)],
            [result("1", LONG)],
            [{"role": "assistant", "content": None, "reasoning": LONG}],
            [user(marked(LONG, by="Summarization"))],
            [{"role": "critic", "content": LONG}],
            turns(5),
        ],
    )
    def test_something_is_always_left(self, strategy: Strategy, messages: Chat) -> None:
        """The newest group, and the last user message: the same object, or shortened by a strategy that clips."""
        done = compact_sync(messages, strategy, counter="chars/4")
        assert done.messages
        users = [message for message in messages if message["role"] == "user"]
        if users and any(isinstance(part, Clip | LastResort) for part in strategy.parts()):
            left = [message for message in done.messages if message["role"] == "user"]
            assert left
            assert len(left[-1]["content"]) <= len(users[-1]["content"])
            assert left[-1]["content"][:5] == users[-1]["content"][:5]
        elif users:
            assert any(message is users[-1] for message in done.messages)

    def test_also_if_a_strategy_of_one_s_own_tries(self) -> None:
        """If a custom strategy drops every group, the index refuses to drop the last user message and the newest group."""

        def drop_all(index: MessageIndex) -> Iterator[Edit]:
            for group in index.included_groups:
                yield Drop(group, "all of it", allow_system=True)

        done = compact_sync([system("s"), *turns(2)], drop_all, counter="chars/4")
        assert shown(done.messages) == ["q2", "a2"]
        assert [refusal.rule for refusal in done.refused] == [
            "the last user message must be kept",
            "the newest group must be kept",
        ]


class TestSummaryCollisions:
    """In other toolkits, two summaries get the same id if the view is passed back each turn, and removed messages return."""

    def summarizing(self, index: MessageIndex) -> Iterator[Edit]:
        """Replace all but the last two groups with a summary that contains their texts."""
        old = index.included_groups[1:-2]
        if len(old) >= 4:
            said = " ".join(message.text.split("\n")[-1] for group in old for message in group.messages)
            body = f"So far: {' '.join(said.replace('So far: ', '').split())}".replace("word ", "")
            yield Replace(old, [openai_chat.new("assistant", marked(body, by="summarizing"))], "old")

    @pytest.mark.parametrize("keep_index", [True, False])
    def test_feeding_the_projection_back_never_brings_a_summary_back(self, keep_index: bool) -> None:
        """If the host passes each view back, the view has at most one summary, which covers every removed turn exactly once.

        The host keeps the index between turns, or builds it again from the view.
        """
        index = indexed([system("s")])
        view: Chat = index.messages()
        for turn in range(1, 14):
            view = [*copy.deepcopy(view), user(f"q{turn} " + "word " * 20), assistant(f"a{turn} " + "word " * 20)]
            if keep_index:
                index.sync(view)
            else:
                index = indexed(view)
            run_sync(index, self.summarizing)
            view = index.messages()
            summaries = [group for group in index.included_groups if group.kind is GroupKind.SUMMARY]
            assert len(summaries) <= 1
            assert len({group.id for group in index.included_groups}) == len(index.included_groups)
        (summary,) = summaries
        told = summary.messages[0].text
        assert [told.count(f"q{turn} ") for turn in range(1, 13)] == [1] * 12
        if keep_index:
            assert [message["content"].split()[0] for message in index.originals(summary)[::2]] == [
                f"q{turn}" for turn in range(1, 13)
            ]

    def test_two_summaries_have_two_ids(self) -> None:
        """Two summaries with equal texts get different ids, also in an index built from the view."""
        index = indexed(turns(4, words=50))
        for group in (0, 2):
            assert index.apply(Replace([group], [openai_chat.new("user", marked("the same text", by="X"))]))
        assert len({group.id for group in index.included_groups}) == 8
        again = indexed(index.messages())
        assert len({group.id for group in again.included_groups}) == 8


def test_a_strategy_never_changes_the_caller_s_messages() -> None:
    """Strategies do not change the caller's messages; other toolkits store state in string keys on them."""
    messages: list[Any] = [system("s"), *tool_turns(5), user("q")]
    before = copy.deepcopy(messages)
    for strategy in ALL_THEY_CAN:
        compact_sync(messages, strategy, counter="chars/4")
    assert messages == before


def test_a_tool_result_that_collapses_is_bounded() -> None:
    """`ToolResult` collapses a huge call and result to fewer than 400 characters.

    Other toolkits insert the full results again.
    """
    messages = [user("q"), call("1", arguments=LONG * 9), result("1", LONG * 99), assistant("a"), user("r")]
    (collapsed,) = [
        message for message in compact_sync(messages, ToolResult(), counter="chars/4").messages if message not in messages
    ]
    assert len(collapsed["content"]) < 400


def test_a_window_of_groups_never_begins_within_one() -> None:
    """A window of groups never starts inside a group; in other toolkits, it may start with results without their calls."""
    messages = [user("q"), call("1"), user("r"), result("1"), assistant("a"), call("2"), result("2")]
    for groups in range(1, 6):
        for strategy in (SlidingWindow(keep=last(groups=groups)), Truncation(trigger=groups_exceed(groups), keep=nothing)):
            left = compact_sync(messages, strategy, counter="chars/4").messages
            assert calls_in(left) == results_in(left)
