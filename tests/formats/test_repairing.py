"""Repair: empty messages, wrong starts, repeated ids, calls and results without each other; all else is reported and kept."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, target
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from compaction.errors import InputError
from compaction.formats import FORMATS, MessageFormat, anthropic, bedrock, openai_chat, openai_responses
from compaction.formats.rulebook import WireFormat
from tests.formats.anthropic import examples as claude
from tests.formats.bedrock import examples as converse
from tests.formats.openai_chat.examples import USER, answer, asked, call
from tests.support.rulebook import expect_problems_in_order, expect_unrepaired, rules
from tests.support.wires import any_conversation, wrecked

Raw = dict[str, Any]


soups = st.sampled_from(FORMATS).flatmap(lambda format: st.tuples(st.just(format), wrecked(any_conversation(format))))
"""Lists of every format in which messages are missing, moved or repeated, and messages and fields have any value at all."""


@given(soups)
def test_a_repair_is_whole(given: tuple[WireFormat, list[Any]]) -> None:
    """``remaining`` is all that is wrong with the new list; of the rules that are repaired, only joins may be among it.

    Problems come in order and without an exception, the input stays as it was, a second repair does nothing, and where
    results are messages, what no change names is the same object.
    """
    format, messages = given
    for raw in messages:
        with contextlib.suppress(InputError):
            assert format.read(raw).raw is raw
    expect_problems_in_order(format, messages, format.book.rules)
    problems = {problem.rule for problem in format.validate(messages)}
    target(float(len(problems)), label="rules broken")  # leads the search to such lists
    before = copy.deepcopy(messages)
    done = format.repair(messages)
    assert repr(messages) == repr(before)
    target(float(len({change.rule for change in done.changes})), label="rules repaired")
    assert tuple(format.validate(done.messages)) == done.remaining
    assert len(done.remaining) <= len(format.validate(messages))
    assert {format.book.rules[problem.rule].repair for problem in done.remaining} <= {None, "join"}
    expect_unrepaired(format, done.messages)
    if not format.book.pairing.content:  # where results are messages, no other message changes
        named = {int(change.where.split("[")[1].split("]")[0]) for change in done.changes}
        kept = set(map(id, done.messages))
        assert [raw for place, raw in enumerate(messages) if id(raw) not in kept and place not in named] == []


def test_every_call_of_one_id_gets_its_own_result() -> None:
    """When 50 calls share one id, a repair gives each a unique id and pairs the results with them in order."""
    calls = [claude.call(input={"n": n}) for n in range(50)]
    results = [claude.result(content=str(n)) for n in range(50)]
    done = anthropic.repair([claude.answer(*calls), claude.user(*results)])
    ids = {call["id"]: call["input"]["n"] for call in done.messages[0]["content"]}
    assert len(ids) == 50
    assert [ids[result["tool_use_id"]] for result in done.messages[1]["content"]] == list(range(50))
    assert done.remaining == ()


def test_a_new_id_is_not_that_of_another_call() -> None:
    [made] = openai_chat.repair([asked(call("a"), call("a", "date"), call("call_0_1"))]).messages
    assert [call["id"] for call in made["tool_calls"]] == ["a", "call_0_1_", "call_0_1"]


def test_a_block_that_breaks_two_rules_goes_once() -> None:
    """A block that breaks two rules is removed and reported once, and the block after it is unchanged."""
    lost = {"type": "mcp_tool_result", "tool_use_id": "gone", "content": []}
    empty = {"type": "text", "text": ""}
    done = anthropic.repair([USER, claude.answer(lost, empty, claude.TEXT)])
    assert done.messages[1]["content"][0] is claude.TEXT
    assert [change.rule for change in done.changes] == ["server-result-without-call", "empty-text"]


def test_what_cannot_be_joined_stays() -> None:
    odd = {"role": "user", "content": 5}
    done = bedrock.repair([converse.ASKED, odd])
    assert (done.messages, done.changes) == ([converse.ASKED, odd], ())
    assert rules(bedrock, done.messages) == ["malformed-content", "same-role-twice"]


def test_all_else_is_reported() -> None:
    """Faults that only a guess could repair are listed in ``remaining`` at their place in the new list, and nothing changes."""
    odd = [
        "hello",
        {"role": "human", "content": "hi"},
        {"role": "user", "content": {"type": "text", "text": "hi"}},
        {"role": "assistant", "content": "", "tool_calls": "now"},
        answer(None),
        asked(call("")),
    ]
    done = openai_chat.repair([answer("gone"), *odd])
    assert [one is other for one, other in zip(done.messages, odd, strict=True)] == [True] * 6
    remaining = "unreadable-message unknown-role malformed-content malformed-tool-calls result-without-id call-without-id"
    assert " ".join(problem.rule for problem in done.remaining) == remaining
    refused = claude.answer(claude.call("a b")), claude.user(claude.result("a b"))
    assert [problem.rule for problem in anthropic.repair(refused).remaining] == ["malformed-id"]


def test_an_object_becomes_a_dictionary() -> None:
    good = ChatCompletionMessage(role="assistant", content="hi")
    done = openai_chat.repair([good, ChatCompletionMessage(role="assistant", content=None)])
    assert done.messages == [good, {"content": "", "role": "assistant"}]
    assert done.messages[0] is good


@pytest.mark.parametrize(
    ("format", "messages", "done"),
    [
        (openai_chat, [USER, answer("gone")], ["messages[1]: the message was removed"]),
        (anthropic, [claude.user(claude.result("gone"), claude.TEXT)], ["messages[0].content[0]: the result was removed"]),
        (openai_responses, [{"type": "computer_call", "call_id": "a"}, USER], ["messages[0]: the call was removed"]),
        (openai_chat, [asked(call()), USER, answer()], ["messages[2]: the result was moved to its call"]),
        (openai_chat, [asked(call()), USER], ["messages[0].tool_calls[0]: a result was added that says it was not recorded"]),
        (
            anthropic,
            [claude.answer(claude.call()), claude.user(claude.result())] * 2,
            [
                f"messages[{place}: it was given the id 'toolu_2_0'"
                for place in ("2].content[0].id", "3].content[0].tool_use_id")
            ],
        ),
    ],
)
def test_the_report_says_what_was_done(format: MessageFormat, messages: list[Any], done: list[str]) -> None:
    """Each change names its place in the input, and what was done."""
    assert [f"{change.where}: {change.remedy}" for change in format.repair(messages).changes] == done


EMPTY_NAMES = {"malformed-content", "malformed-tool-calls", "pending-call"}


@pytest.mark.parametrize(
    ("name", "found", "remaining"),
    [
        *((name, set[str](), set[str]()) for name in ("tau_airline", "whowhen_multiagent", "acebench_zh", "coding_long")),
        *((name, {"pending-call"}, {"pending-call"}) for name in ("openhands", "sweagent_demos")),
        ("cassettes", EMPTY_NAMES, EMPTY_NAMES),
        ("inspect_logs", {"result-without-call"}, {"no-messages"}),  # one log contains only results
    ],
)
def test_recorded_conversations(
    corpus: Callable[[str], list[dict[str, Any]]], name: str, found: set[str], remaining: set[str]
) -> None:
    """Recorded conversations break only the rules listed here, and only the listed faults remain after a repair."""
    conversations = [conversation["messages"] for conversation in corpus(name)]
    repaired = [openai_chat.repair(messages) for messages in conversations]
    assert {rule for messages in conversations for rule in rules(openai_chat, messages)} == found
    assert {problem.rule for result in repaired for problem in result.remaining} == remaining
