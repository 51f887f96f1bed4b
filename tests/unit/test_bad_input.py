"""Bad input raises a typed error that names place, field and remedy, or the message is kept unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import CompactionSession, MessageIndex, Pipeline, compact_sync, nothing, repair, validate
from compaction.errors import CompactionError, InputError, InvalidMessage
from compaction.strategies import Clear, Collapse, Dedupe, HeadTail, SlidingWindow, ToolResult, Truncation
from tests.support.chats import assistant, call, indexed, result, system, turns, user
from tests.support.wires import STRATEGIES


class TestNoConversation:
    @pytest.mark.parametrize("messages", ["text", b"bytes", user("one message"), {}, None, 7, 1.5, object()])
    @pytest.mark.parametrize(
        "take",
        [
            lambda messages: MessageIndex(messages, counter="chars/4"),
            lambda messages: indexed([]).append(messages),
            lambda messages: indexed([]).sync(messages),
            lambda messages: compact_sync(messages, Pipeline(), counter="chars/4"),
            lambda messages: CompactionSession(Pipeline(), counter="chars/4").view_sync(messages),
            validate,
            repair,
        ],
    )
    def test_what_is_no_list_of_messages(self, take: Callable[[Any], object], messages: Any) -> None:
        with pytest.raises(InputError, match=r"^messages: a conversation is a list of messages; wrap a single message in one$"):
            take(messages)


class TestNoMessage:
    @pytest.mark.parametrize(
        ("bad", "where", "rule"),
        [
            ("text", "messages[1]", "a chat message is a mapping with 'role' and 'content' (got str)"),
            (None, "messages[1]", "a chat message is a mapping with 'role' and 'content' (got NoneType)"),
            (["user", "text"], "messages[1]", "a chat message is a mapping with 'role' and 'content' (got list)"),
            ({}, "messages[1].role", "a message needs a role that is a non-empty string (got None)"),
            ({"content": "text"}, "messages[1].role", "a message needs a role that is a non-empty string (got None)"),
            ({"role": "", "content": "x"}, "messages[1].role", "a message needs a role that is a non-empty string (got '')"),
            ({"role": 7, "content": "x"}, "messages[1].role", "a message needs a role that is a non-empty string (got 7)"),
        ],
    )
    def test_place_rule_and_remedy(self, bad: Any, where: str, rule: str) -> None:
        with pytest.raises(InvalidMessage) as caught:
            indexed([user(), bad])
        assert (caught.value.where, caught.value.rule) == (where, rule)
        assert caught.value.remedy
        assert str(caught.value) == f"{where}: {rule}; {caught.value.remedy}"
        assert isinstance(caught.value, CompactionError)


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": None, "type": "function", "function": {"name": None}}]},
        {"role": "user", "content": "x", "name": 7},
    ],
    ids=["a call without a name", "a name that is not a string"],
)
def test_odd_messages_are_kept_as_they_are(odd: dict[str, Any]) -> None:
    index = indexed([system(), user(), odd, assistant()])
    assert index.messages()[2] is odd
    assert all(group.tokens > 0 for group in index.included_groups)


class TestSizes:
    def test_an_empty_conversation(self) -> None:
        for strategy in STRATEGIES:
            done = compact_sync([], strategy, counter="chars/4")
            assert (done.messages, done.edits, done.refused) == ([], (), ())
        assert [problem.rule for problem in validate([])] == ["no-messages"]
        assert repair([]).messages == []
        assert indexed([]).included.tokens == 0

    def test_a_message_of_fifty_megabytes(self) -> None:
        huge = "0123456789" * 5_000_000
        messages = [user("q"), call("1", arguments=huge), result("1", huge), assistant("a"), user("r")]
        for style in (Collapse(), Clear(), HeadTail(), Dedupe()):
            done = compact_sync(messages, ToolResult(style, keep=nothing), counter="chars/4")
            if style != Dedupe():
                assert (done.before.bytes, done.outcome) == (100_000_000 + len("q" + "look" + "a" + "r"), "compacted")
        assert compact_sync(messages, SlidingWindow(), counter="chars/4").messages == messages[-1:]

    def test_many_small_messages(self) -> None:
        done = compact_sync(turns(10_000), Truncation(keep=nothing), counter="chars/4")
        assert (len(done.messages), len(done.edits)) == (2, 9_999)
