"""Repair: empty messages, wrong starts, repeated ids, calls and results without each other; all else is reported and kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from compaction.formats import FORMATS, MessageFormat, anthropic, bedrock, gemini, openai_chat, openai_responses
from compaction.formats.pairing import NOT_RECORDED
from compaction.formats.rulebook import WireFormat
from tests.support.fuzzed import spoiled
from tests.support.rulebook import expect_problems_in_order, expect_unrepaired, rules
from tests.support.wires import any_conversation, valid_conversation, wrecked

Raw = dict[str, Any]

# ------------------------------------------------------------------------ laws

soups = st.sampled_from(FORMATS).flatmap(
    lambda format: st.tuples(st.just(format), wrecked(valid_conversation(format)) | spoiled(any_conversation(format)))
)
"""Lists of every format in which messages are missing, moved or repeated, and messages and fields have any value at all."""


@given(soups)
def test_a_repair_is_whole(given: tuple[WireFormat, list[Any]]) -> None:
    """``remaining`` is all that is wrong with the new list; of the rules that are repaired, only joins may be among it.

    Problems come in order and without an exception, the input stays as it was, a second repair does nothing, and where
    results are messages, what no change names is the same object.
    """
    format, messages = given
    expect_problems_in_order(format, messages, format.book.rules)
    before = copy.deepcopy(messages)
    done = format.repair(messages)
    assert repr(messages) == repr(before)
    assert tuple(format.validate(done.messages)) == done.remaining
    assert {format.book.rules[problem.rule].repair for problem in done.remaining} <= {None, "join"}
    expect_unrepaired(format, done.messages)
    if not format.book.pairing.content:  # where results are messages, no other message changes
        named = {int(change.where.split("[")[1].split("]")[0]) for change in done.changes}
        kept = set(map(id, done.messages))
        assert [raw for place, raw in enumerate(messages) if id(raw) not in kept and place not in named] == []


# ------------------------------------------------------------------------ examples

USER: Raw = {"role": "user", "content": "hi"}


def chat_call(*ids: Any, **fields: Any) -> Raw:
    """Return a chat message with calls of these ids; the fields are those of the function."""
    calls = [{"id": id, "type": "function", "function": {"name": "now", "arguments": "{}", **fields}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(id: Any = "a", content: Any = "noon") -> Raw:
    """Return a tool message."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def blocks(*ids: Any, role: str = "assistant", after: tuple[Raw, ...] = (), **fields: Any) -> Raw:
    """Return an Anthropic message with calls of these ids, or in the role ``user`` with their results."""
    made: list[Raw] = [
        {"type": "tool_use", "id": id, "name": "now", "input": {}, **fields}
        if role == "assistant"
        else {"type": "tool_result", "tool_use_id": id, "content": "noon", **fields}
        for id in ids
    ]
    return {"role": role, "content": [*made, *after]}


TEXT: Raw = {"type": "text", "text": "hi"}
MISSING: Raw = {"content": NOT_RECORDED}
LOOK: Raw = {"functionCall": {"name": "look", "args": {}}}
LOOKED: Raw = {"functionResponse": {"name": "look", "response": {"result": "seen"}}}


def content(role: str, *parts: Raw) -> Raw:
    """Return a Gemini content."""
    return {"role": role, "parts": list(parts)}


HI = content("user", {"text": "hi"})
FUNCTION: Raw = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
SEARCH: Raw = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


def turn(role: str, *parts: Raw) -> Raw:
    """Return a Bedrock message."""
    return {"role": role, "content": list(parts)}


def use(id: str = "a", **fields: Any) -> Raw:
    """Return a Bedrock call."""
    return {"toolUse": {"toolUseId": id, "name": "now", "input": {}, **fields}}


def used(id: str = "a", text: str = "noon", **fields: Any) -> Raw:
    """Return a Bedrock result."""
    return {"toolResult": {"toolUseId": id, "content": [{"text": text}], **fields}}


ASKED, SAID = turn("user", {"text": "hi"}), turn("assistant", {"text": "Hello!"})
UNKNOWN = used(text=NOT_RECORDED, status="error")
THOUGHT: Raw = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}


def item(kind: str, **fields: Any) -> Raw:
    """Return an item of the Responses API."""
    return {"type": kind, **fields}


def function(call: str = "a", **fields: Any) -> Raw:
    """Return a call of a function."""
    return item("function_call", call_id=call, name="now", arguments="{}", **fields)


def output(id: str = "a", text: str = "noon") -> Raw:
    """Return the output of a function."""
    return item("function_call_output", call_id=id, output=text)


THINKS = item("reasoning", id="rs_1", summary=[])

CASES: list[tuple[str, MessageFormat, list[Any], list[Any]]] = [
    (
        "a stub after the other results",
        openai_chat,
        [chat_call("a", "b"), answer("b"), USER],
        [chat_call("a", "b"), answer("b"), answer(content=NOT_RECORDED), USER],
    ),
    (
        "a late result",
        openai_chat,
        [chat_call("a", "b"), answer("b"), USER, chat_call("c"), answer("c"), answer("a")],
        [chat_call("a", "b"), answer("b"), answer("a"), USER, chat_call("c"), answer("c")],
    ),
    (
        "a late result of a reused id belongs to the latest open call",
        openai_chat,
        [chat_call("a"), USER, chat_call("a"), USER, answer()],
        [chat_call("a"), answer(content=NOT_RECORDED), USER, chat_call("a"), answer(), USER],
    ),
    (
        "a second result is not late",
        openai_chat,
        [chat_call("a"), USER, chat_call("a"), answer(), answer(content="again")],
        [chat_call("a"), answer(content=NOT_RECORDED), USER, chat_call("a"), answer()],
    ),
    ("a result before its call", openai_chat, [answer(), chat_call("a")], [chat_call("a")]),
    (
        "a call that repeats another",
        openai_chat,
        [chat_call("a", "a"), answer(), answer(), USER],
        [chat_call("a"), answer(), USER],
    ),
    (
        "a late result of a legacy function, whose call needs none",
        openai_chat,
        [FUNCTION, USER, {"role": "function", "name": "now", "content": "noon"}],
        [FUNCTION, USER],
    ),
    (
        "calls at the end may be answered",
        openai_chat,
        [USER, chat_call("a", "b"), answer("b")],
        [USER, chat_call("a", "b"), answer("b")],
    ),
    (
        "an empty answer",
        openai_chat,
        [USER, {"role": "assistant", "reasoning": "hm"}],
        [USER, {"role": "assistant", "reasoning": "hm", "content": ""}],
    ),
    (
        "a stub among the results",
        anthropic,
        [blocks("a", "b"), blocks("b", role="user", after=(TEXT,))],
        [
            blocks("a", "b"),
            {
                "role": "user",
                "content": [*blocks("b", role="user")["content"], *blocks("a", role="user", **MISSING)["content"], TEXT],
            },
        ],
    ),
    ("a stub before the user", anthropic, [blocks("a"), USER], [blocks("a"), blocks("a", role="user", **MISSING), USER]),
    (
        "a late result, and what came with it",
        anthropic,
        [blocks("a", "b"), blocks("b", role="user"), blocks("a", role="user", after=(TEXT,))],
        [blocks("a", "b"), blocks("b", "a", role="user"), {"role": "user", "content": [TEXT]}],
    ),
    (
        "an id that a later call uses again",
        anthropic,
        [blocks("a"), blocks("a", role="user")] * 2,
        [blocks("a"), blocks("a", role="user"), blocks("toolu_2_0"), blocks("toolu_2_0", role="user")],
    ),
    ("an empty message", anthropic, [USER, {"role": "assistant", "content": []}, USER], [USER, USER]),
    (
        "a call of the provider without its result",
        anthropic,
        [{"role": "assistant", "content": [SEARCH, TEXT]}, USER],
        [{"role": "assistant", "content": [TEXT]}, USER],
    ),
    (
        "a stub among the responses",
        gemini,
        [HI, content("model", LOOK), HI],
        [
            HI,
            content("model", LOOK),
            content("user", {"functionResponse": {"name": "look", "response": {"error": NOT_RECORDED}}}),
            HI,
        ],
    ),
    (
        "a late response",
        gemini,
        [HI, content("model", LOOK), HI, content("user", LOOKED)],
        [HI, content("model", LOOK), content("user", LOOKED), HI],
    ),
    (
        "responses in two contents",
        gemini,
        [HI, content("model", LOOK, LOOK), content("user", LOOKED), content("user", LOOKED)],
        [HI, content("model", LOOK, LOOK), content("user", LOOKED, LOOKED)],
    ),
    (
        "a call after several words of the model",
        gemini,
        [HI, content("model", {"text": "0"}), content("model", {"text": "1"}), content("model", LOOK)],
        [HI, content("model", {"text": "0"}, {"text": "1"}, LOOK)],
    ),
    ("a call that nothing precedes", gemini, [content("model", LOOK), content("user", LOOKED), HI], [HI]),
    ("an empty part", gemini, [HI, content("model", {"text": ""}), HI], [HI, HI]),
    ("an answer that nobody asked for", bedrock, [SAID, ASKED, SAID], [ASKED, SAID]),
    (
        "results of one answer in two messages",
        bedrock,
        [ASKED, turn("assistant", use(), use("b")), turn("user", used()), turn("user", used("b"))],
        [ASKED, turn("assistant", use(), use("b")), turn("user", used(), used("b"))],
    ),
    (
        "a late result in a list that alternates",
        bedrock,
        [ASKED, turn("assistant", use()), ASKED, SAID, turn("user", used(), {"text": "late"})],
        [ASKED, turn("assistant", use()), turn("user", used(), {"text": "hi"}), SAID, turn("user", {"text": "late"})],
    ),
    (
        "nothing but a result without a call",
        bedrock,
        [ASKED, SAID, turn("user", used("gone")), turn("assistant", {"text": "so"})],
        [ASKED, turn("assistant", {"text": "Hello!"}, {"text": "so"})],
    ),
    (
        "the thoughts of a second answer, whose signatures do not fit the first",
        bedrock,
        [ASKED, SAID, turn("assistant", THOUGHT, {"text": "again"}, use())],
        [ASKED, turn("assistant", {"text": "Hello!"}, {"text": "again"}, use())],
    ),
    (
        "two calls of one id",
        bedrock,
        [ASKED, turn("assistant", use(), use(name="f")), turn("user", used(), used("a", "2"))],
        [ASKED, turn("assistant", use(), use("tooluse_1_1", name="f")), turn("user", used(), used("tooluse_1_1", "2"))],
    ),
    (
        "a stub says that the tool failed",
        bedrock,
        [ASKED, turn("assistant", use()), ASKED],
        [ASKED, turn("assistant", use()), turn("user", UNKNOWN, {"text": "hi"})],
    ),
    (
        "a stub before a system message",
        bedrock,
        [ASKED, turn("assistant", use()), turn("system", {"text": "be kind"}), SAID],
        [ASKED, turn("assistant", use()), turn("user", UNKNOWN), turn("system", {"text": "be kind"}), SAID],
    ),
    (
        "a stub after the answer",
        openai_responses,
        [function(), function("b"), output("b"), USER],
        [function(), function("b"), output(text=NOT_RECORDED), output("b"), USER],
    ),
    (
        "a call whose output cannot be invented",
        openai_responses,
        [THINKS, item("computer_call", call_id="a", action={}), USER],
        [USER],
    ),
    ("the same answer twice", openai_responses, [function(id="fc_1"), output()] * 2, [function(id="fc_1"), output()]),
    (
        "the id of another item",
        openai_responses,
        [function(id="x"), output(), item("item_reference", id="x"), item("message", role="user", content="hi", id="x")],
        [function(id="x"), output(), item("message", role="user", content="hi")],
    ),
]


@pytest.mark.parametrize(("format", "messages", "repaired"), [pytest.param(*case, id=name) for name, *case in CASES])
def test_repair(format: MessageFormat, messages: list[Any], repaired: list[Any]) -> None:
    """Each fault is repaired, and nothing remains but calls at the end."""
    done = format.repair(messages)
    assert done.messages == repaired
    assert {problem.rule for problem in done.remaining} <= {"pending-call"}
    assert bool(done.changes) == (messages != repaired)


def test_every_call_of_one_id_gets_its_own_result() -> None:
    """When 50 calls share one id, a repair gives each a unique id and pairs the results with them in order."""
    calls = [{"type": "tool_use", "id": "a", "name": "now", "input": {"n": n}} for n in range(50)]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": str(n)} for n in range(50)]
    done = anthropic.repair([{"role": "assistant", "content": calls}, {"role": "user", "content": results}])
    ids = {call["id"]: call["input"]["n"] for call in done.messages[0]["content"]}
    assert len(ids) == 50
    assert [ids[result["tool_use_id"]] for result in done.messages[1]["content"]] == list(range(50))
    assert done.remaining == ()


def test_a_new_id_is_not_that_of_another_call() -> None:
    """A new id is longer where another call has it."""
    twice = [*chat_call("a")["tool_calls"], *chat_call("a", name="date")["tool_calls"], *chat_call("call_0_1")["tool_calls"]]
    [made] = openai_chat.repair([{**chat_call(), "tool_calls": twice}]).messages
    assert [call["id"] for call in made["tool_calls"]] == ["a", "call_0_1_", "call_0_1"]


def test_a_block_that_breaks_two_rules_goes_once() -> None:
    """A block that breaks two rules is removed and reported once, and the block after it is unchanged."""
    lost = {"type": "mcp_tool_result", "tool_use_id": "gone", "content": []}
    empty = {"type": "text", "text": ""}
    done = anthropic.repair([USER, {"role": "assistant", "content": [lost, empty, TEXT]}])
    assert done.messages[1]["content"][0] is TEXT
    assert [change.rule for change in done.changes] == ["server-result-without-call", "empty-text"]


def test_what_cannot_be_joined_stays() -> None:
    """Two messages of one role are not joined if the content of one cannot be understood; both problems remain."""
    odd = {"role": "user", "content": 5}
    done = bedrock.repair([ASKED, odd])
    assert (done.messages, done.changes) == ([ASKED, odd], ())
    assert rules(bedrock, done.messages) == ["malformed-content", "same-role-twice"]


def test_all_else_is_reported() -> None:
    """Faults that only a guess could repair are listed in ``remaining`` at their place in the new list, and nothing changes."""
    odd = [
        "hello",
        {"role": "human", "content": "hi"},
        {"role": "user", "content": {"type": "text", "text": "hi"}},
        {"role": "assistant", "content": "", "tool_calls": "now"},
        answer(None),
        chat_call(""),
    ]
    done = openai_chat.repair([answer("gone"), *odd])
    assert [one is other for one, other in zip(done.messages, odd, strict=True)] == [True] * 6
    assert [problem.rule for problem in done.remaining] == [
        "unreadable-message",
        "unknown-role",
        "malformed-content",
        "malformed-tool-calls",
        "result-without-id",
        "call-without-id",
    ]
    refused = blocks("a b"), blocks("a b", role="user")
    assert [problem.rule for problem in anthropic.repair(refused).remaining] == ["malformed-id"]


def test_an_object_becomes_a_dictionary() -> None:
    """A repaired object of a provider's package becomes a dictionary; one without faults is returned unchanged."""
    good = ChatCompletionMessage(role="assistant", content="hi")
    done = openai_chat.repair([good, ChatCompletionMessage(role="assistant", content=None)])
    assert done.messages == [good, {"content": "", "role": "assistant"}]
    assert done.messages[0] is good


@pytest.mark.parametrize(
    ("format", "messages", "done"),
    [
        (openai_chat, [USER, answer("gone")], ["messages[1]: the message was removed"]),
        (anthropic, [blocks("gone", role="user", after=(TEXT,))], ["messages[0].content[0]: the result was removed"]),
        (openai_responses, [item("computer_call", call_id="a"), USER], ["messages[0]: the call was removed"]),
        (openai_chat, [chat_call("a"), USER, answer()], ["messages[2]: the result was moved to its call"]),
        (openai_chat, [chat_call("a"), USER], ["messages[0].tool_calls[0]: a result was added that says it was not recorded"]),
        (
            anthropic,
            [blocks("a"), blocks("a", role="user")] * 2,
            [
                "messages[2].content[0].id: it was given the id 'toolu_2_0'",
                "messages[3].content[0].tool_use_id: it was given the id 'toolu_2_0'",
            ],
        ),
    ],
)
def test_the_report_says_what_was_done(format: MessageFormat, messages: list[Any], done: list[str]) -> None:
    """Each change names its place in the input, and what was done."""
    assert [f"{change.where}: {change.remedy}" for change in format.repair(messages).changes] == done


@pytest.mark.parametrize(
    ("name", "found", "remaining"),
    [
        ("tau_airline", set[str](), set[str]()),
        ("whowhen_multiagent", set[str](), set[str]()),
        ("acebench_zh", set[str](), set[str]()),
        ("coding_long", set[str](), set[str]()),
        ("openhands", {"pending-call"}, {"pending-call"}),
        ("sweagent_demos", {"pending-call"}, {"pending-call"}),
        (
            "cassettes",
            {"malformed-content", "malformed-tool-calls", "pending-call"},
            {"malformed-content", "malformed-tool-calls", "pending-call"},
        ),  # empty lists and names
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
