"""Chat-completions rules: each finds its faults and no others, and a repair leaves only faults that it cannot repair."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function

from compaction.formats import openai_chat
from compaction.formats.openai_chat.rules import RULES
from compaction.formats.pairing import NOT_RECORDED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "validity.md"
PAIRING = {
    "call-without-id",
    "call-without-result",
    "duplicate-call-id",
    "duplicate-result",
    "function-without-call",
    "result-without-call",
    "result-without-id",
}
ALWAYS_REPAIRED = PAIRING | {"empty-assistant", "no-content", "reasoning-only"}

Raw = dict[str, Any]


def rules(messages: list[Any]) -> list[str]:
    """Return the names of the rules that the list breaks."""
    return [problem.rule for problem in openai_chat.validate(messages)]


def places(messages: list[Any]) -> list[tuple[str, str]]:
    """Return the place and name of each broken rule."""
    return [(problem.where, problem.rule) for problem in openai_chat.validate(messages)]


def call(identifier: Any = "a", name: Any = "now", arguments: Any = "{}") -> Raw:
    """Return an element of ``tool_calls``."""
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(*calls: Any, **fields: Any) -> Raw:
    """Return an assistant message that makes these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def answer(identifier: Any = "a", content: Any = "noon") -> Raw:
    """Return a tool message."""
    return {"role": "tool", "tool_call_id": identifier, "content": content}


USER: Raw = {"role": "user", "content": "hi"}
BUT_NO_IDENTIFIER: Raw = {"role": "tool", "content": "noon"}
CUSTOM: Raw = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
IMAGE: Raw = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FUNCTION_CALL: Raw = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([{"role": "assistant", "content": "hi"}], id="assistant alone"),
        pytest.param([USER, USER, {"role": "system", "content": "be brief"}, USER], id="no alternation"),
        pytest.param([asked(call(arguments="{not json")), answer()], id="arguments that are no JSON"),
        pytest.param([asked(call(arguments="")), answer()], id="empty arguments"),
        pytest.param([asked(CUSTOM), answer()], id="custom call"),
        pytest.param([asked({"id": "a", "function": {"name": "now", "arguments": "{}"}}), answer()], id="call without type"),
        pytest.param([{**asked(call()), "content": "let me see"}, answer()], id="content and calls"),
        pytest.param([asked(call(), function_call=None, audio=None, refusal=None), answer()], id="null fields"),
        pytest.param([{**USER, "tool_calls": None, "x_trace": 7}], id="unknown and null fields on a user message"),
        pytest.param([{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}], id="audio alone"),
        pytest.param([{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}], id="thinking part"),
        pytest.param([asked(call()), answer(content=[{"type": "text", "text": "noon"}, IMAGE])], id="image in a result"),
        pytest.param(
            [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}], id="field on a part"
        ),
        pytest.param([{"role": "user", "content": ({"type": "text", "text": "hi"},)}], id="tuples are lists"),
        pytest.param([{**asked(), "tool_calls": (call(),)}, answer()], id="tuple of calls"),
        pytest.param([FUNCTION_CALL, USER], id="legacy call without a result"),
        pytest.param([{**USER, "tool_calls": [call(""), call("a"), call("a")]}, USER], id="calls that are not the assistant's"),
        pytest.param([{**asked(call()), **FUNCTION_CALL, "tool_calls": [call()]}, answer()], id="both kinds of calls"),
        pytest.param([{"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}], id="source for a body"),
        pytest.param([ChatCompletionMessage(role="assistant", content="hi")], id="object of the openai package"),
    ],
)
def test_what_the_api_takes_is_no_problem(messages: list[Any]) -> None:
    """Unusual messages that providers accept break no rule, and a repair returns the same objects."""
    assert places(messages) == []
    repaired = openai_chat.repair(messages)
    assert [id(message) for message in repaired.messages] == [id(message) for message in messages]
    assert (repaired.changes, repaired.remaining) == ((), ())


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([None], [("messages[0]", "unreadable-message")], id="null"),
        pytest.param([{}], [("messages[0].role", "missing-role")], id="empty object"),
        pytest.param([{"role": ["user"], "content": "hi"}], [("messages[0].role", "missing-role")], id="list as a role"),
        pytest.param([{"role": "system"}], [("messages[0].content", "no-content")], id="content missing"),
        pytest.param([asked(call()), answer(content=None)], [("messages[1].content", "no-content")], id="null result"),
        pytest.param([{**USER, "content": 5}], [("messages[0].content", "malformed-content")], id="number"),
        pytest.param([{**USER, "content": {"a": 1}}], [("messages[0].content", "malformed-content")], id="object"),
        pytest.param(
            [{**USER, "content": [{"type": "text", "text": "hi"}, None, {"text": "hi"}, {"type": "text"}, {"type": "file"}]}],
            [(f"messages[0].content[{n}]", "malformed-part") for n in (1, 2, 3, 4)],
            id="parts",
        ),
        pytest.param(
            [{"role": "system", "content": [IMAGE]}, {**USER, "content": [{"type": "tool_use"}]}],
            [("messages[0].content[0]", "part-not-allowed"), ("messages[1].content[0]", "part-not-allowed")],
            id="parts of other roles and formats",
        ),
        pytest.param(
            [{"role": "assistant", "content": None, "refusal": "", "reasoning": ""}],
            [("messages[0].content", "empty-assistant")],
            id="empty fields stand for nothing",
        ),
        pytest.param(
            [{"role": "assistant", "tool_calls": []}],
            [("messages[0].content", "empty-assistant"), ("messages[0].tool_calls", "malformed-tool-calls")],
            id="no calls and nothing else",
        ),
        pytest.param(
            [{"role": "assistant", "tool_calls": call()}],
            [("messages[0].tool_calls", "malformed-tool-calls")],
            id="calls that are no list",
        ),
        pytest.param(
            [asked("now", {"id": "b"}, call("c", name=""), call("d", arguments={})), answer("b"), answer("c"), answer("d")],
            [
                ("messages[0].tool_calls[0]", "malformed-tool-calls"),
                ("messages[0].tool_calls[1].function", "malformed-tool-calls"),
                ("messages[0].tool_calls[2].function.name", "malformed-tool-calls"),
                ("messages[0].tool_calls[3].function.arguments", "malformed-tool-calls"),
            ],
            id="calls that are none",
        ),
        pytest.param(
            [asked({**CUSTOM, "custom": {"name": "sql"}}), answer()],
            [("messages[0].tool_calls[0].custom.input", "malformed-tool-calls")],
            id="custom call without input",
        ),
        pytest.param(
            [{"role": "assistant", "function_call": {"arguments": "{}"}}],
            [("messages[0].function_call.name", "malformed-tool-calls")],
            id="legacy call without a name",
        ),
        pytest.param(
            [asked(call(""), call(None)), USER],
            [("messages[0].tool_calls[0].id", "call-without-id"), ("messages[0].tool_calls[1].id", "call-without-id")],
            id="ids that are none",
        ),
        pytest.param(
            [asked(call("a"), call("b")), answer("b"), USER, answer("a")],
            [("messages[0].tool_calls[0]", "call-without-result"), ("messages[3]", "result-without-call")],
            id="late result",
        ),
        pytest.param(
            [asked(call()), {"role": "system", "content": "be brief"}, answer()],
            [("messages[0].tool_calls[0]", "call-without-result"), ("messages[2]", "result-without-call")],
            id="system message between",
        ),
        pytest.param(
            [asked(call()), None, answer()],
            [
                ("messages[0].tool_calls[0]", "call-without-result"),
                ("messages[1]", "unreadable-message"),
                ("messages[2]", "result-without-call"),
            ],
            id="unreadable message between",
        ),
        pytest.param(
            [asked(call()), answer("b")],
            [("messages[0].tool_calls[0]", "pending-call"), ("messages[1]", "result-without-call")],
            id="result of another call",
        ),
        pytest.param(
            [asked(call()), {"role": "function", "name": "a", "content": "noon"}],
            [("messages[0].tool_calls[0]", "pending-call"), ("messages[1]", "function-without-call")],
            id="a function message answers no tool call",
        ),
        pytest.param(
            [{"role": "function", "content": "x"}], [("messages[0].name", "result-without-id")], id="nameless function"
        ),
        pytest.param(
            [USER, {"role": "host"}, asked(call()), USER],
            [("messages[1].role", "unknown-role"), ("messages[2].tool_calls[0]", "call-without-result")],
            id="a call without a result is found late, and told of in its place",
        ),
    ],
)
def test_every_fault_has_its_place(messages: list[Any], expected: list[tuple[str, str]]) -> None:
    """All faults of a list are found in one pass, each at its place, in the order of the messages."""
    assert places(messages) == expected


def test_a_problem_says_what_is_wrong_and_what_to_do() -> None:
    """A problem prints in one line its place, the fault, the rule and what to do."""
    [problem] = openai_chat.validate([USER, answer("gone")])
    assert str(problem) == (
        "messages[1]: no open call 'gone' is directly before it [result-without-call]; "
        "put it directly after the assistant message that makes the call, or leave it out"
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (None, "a message is an object with a role (got null)"),
        (7, "a message is an object with a role (got int)"),
        ({"role": "assistant", "content": "", "tool_calls": {}}, "calls are a list (got dict)"),
        ({"role": "assistant", "content": "", "tool_calls": []}, "the list of calls is empty"),
    ],
    ids=["null", "number", "no list", "empty list"],
)
def test_a_problem_names_what_it_got(message: Any, text: str) -> None:
    """A problem names the type of the wrong value, or says that the value is missing."""
    assert [problem.message for problem in openai_chat.validate([message])] == [text]


def test_objects_are_read_at_every_level() -> None:
    """A message, its calls and their bodies may each be an object of the openai package."""
    function = Function(name="now", arguments="{}")
    made = ChatCompletionMessageFunctionToolCall(id="a", type="function", function=function)
    whole = ChatCompletionMessage(role="assistant", content=None, tool_calls=[made])
    assert places([whole, answer()]) == []
    assert places([asked(made), answer()]) == []
    assert places([asked({"id": "a", "type": "function", "function": function}), answer()]) == []
    assert places([whole]) == [("messages[0].tool_calls[0]", "pending-call")]


class Unserializable:
    """Has ``model_dump`` like a pydantic object, but is not one."""

    role = "user"

    def model_dump(self) -> dict[str, Any]:
        return {"role": self.role}


def test_what_only_looks_like_an_object_is_unreadable() -> None:
    """A class, or an object that only resembles a pydantic object, is an unreadable message and raises no exception."""
    assert rules([Unserializable(), ChatCompletionMessage]) == ["unreadable-message", "unreadable-message"]


STUB = answer(content=NOT_RECORDED)


@pytest.mark.parametrize(
    ("messages", "repaired", "changed"),
    [
        pytest.param(
            [asked(call("a"), call("b")), answer("b"), USER],
            [asked(call("a"), call("b")), answer("b"), STUB, USER],
            [("messages[0].tool_calls[0]", "call-without-result")],
            id="stub after the run",
        ),
        pytest.param(
            [asked(call("a"), call("b")), answer("b"), USER, asked(call("c")), answer("c"), answer("a")],
            [asked(call("a"), call("b")), answer("b"), answer("a"), USER, asked(call("c")), answer("c")],
            [("messages[5]", "result-without-call")],
            id="late result",
        ),
        pytest.param(
            [asked(call()), USER, asked(call()), USER, answer()],
            [asked(call()), STUB, USER, asked(call()), answer(), USER],
            [("messages[0].tool_calls[0]", "call-without-result"), ("messages[4]", "result-without-call")],
            id="late result of a reused id: its latest open call",
        ),
        pytest.param(
            [asked(call()), USER, asked(call()), answer(), answer(content="again")],
            [asked(call()), STUB, USER, asked(call()), answer()],
            [("messages[0].tool_calls[0]", "call-without-result"), ("messages[4]", "duplicate-result")],
            id="a second result is no late one",
        ),
        pytest.param(
            [asked(call()), answer(), USER, answer(content="again")],
            [asked(call()), answer(), USER],
            [("messages[3]", "result-without-call")],
            id="nor is one that comes later",
        ),
        pytest.param(
            [asked(call(), call(None)), answer(), USER, BUT_NO_IDENTIFIER],
            [asked(call(), call("call_0_1")), answer(), answer("call_0_1", NOT_RECORDED), USER],
            [
                ("messages[0].tool_calls[1].id", "call-without-id"),
                ("messages[0].tool_calls[1]", "call-without-result"),
                ("messages[3].tool_call_id", "result-without-id"),
            ],
            id="a late result without an id answers nothing",
        ),
        pytest.param(
            [answer(), asked(call())], [asked(call())], [("messages[0]", "result-without-call")], id="result before call"
        ),
        pytest.param(
            [asked(call("a"), call("a")), answer(), answer(), USER],
            [asked(call("a")), answer(), USER],
            [("messages[0].tool_calls[1].id", "duplicate-call-id"), ("messages[2]", "duplicate-result")],
            id="the same call twice",
        ),
        pytest.param(
            [asked(call("a"), call("a", name="date"), call("call_0_1"))],
            [asked(call("a"), call("call_0_1_", name="date"), call("call_0_1"))],
            [("messages[0].tool_calls[1].id", "duplicate-call-id")],
            id="a new id is no other call's",
        ),
        pytest.param(
            [asked(call("a"), call("a", name="date")), answer(), answer(content="May"), USER],
            [asked(call("a"), call("call_0_1", name="date")), answer(), answer("call_0_1", "May"), USER],
            [("messages[0].tool_calls[1].id", "duplicate-call-id"), ("messages[2].tool_call_id", "duplicate-call-id")],
            id="different calls with one id",
        ),
        pytest.param(
            [asked(call(""), call(None)), BUT_NO_IDENTIFIER, {**BUT_NO_IDENTIFIER, "content": "May"}, USER],
            [asked(call("call_0_0"), call("call_0_1")), answer("call_0_0"), answer("call_0_1", "May"), USER],
            [
                ("messages[0].tool_calls[0].id", "call-without-id"),
                ("messages[0].tool_calls[1].id", "call-without-id"),
                ("messages[1].tool_call_id", "result-without-id"),
                ("messages[2].tool_call_id", "result-without-id"),
            ],
            id="no ids at all: in order",
        ),
        pytest.param(
            [asked(call("a"), call("b")), BUT_NO_IDENTIFIER, answer("a"), USER],
            [asked(call("a"), call("b")), answer("b"), answer("a"), USER],
            [("messages[1].tool_call_id", "result-without-id")],
            id="one result without an id, one open call",
        ),
        pytest.param(
            [asked(call("a"), call("b")), BUT_NO_IDENTIFIER, USER],
            [asked(call("a"), call("b")), STUB, answer("b", NOT_RECORDED), USER],
            [
                ("messages[0].tool_calls[0]", "call-without-result"),
                ("messages[0].tool_calls[1]", "call-without-result"),
                ("messages[1].tool_call_id", "result-without-id"),
            ],
            id="one result without an id, two open calls",
        ),
        pytest.param(
            [FUNCTION_CALL, USER, {"role": "function", "name": "now", "content": "noon"}],
            [FUNCTION_CALL, USER],
            [("messages[2]", "function-without-call")],
            id="late function message: removed",
        ),
        pytest.param(
            [FUNCTION_CALL, {"role": "function", "content": "noon"}],
            [FUNCTION_CALL, {"role": "function", "name": "now", "content": "noon"}],
            [("messages[1].name", "result-without-id")],
            id="nameless function message",
        ),
        pytest.param(
            [USER, asked(call("a"), call("b")), answer("b")],
            [USER, asked(call("a"), call("b")), answer("b")],
            [],
            id="calls at the very end stay open",
        ),
        pytest.param(
            [{"role": "assistant", "content": "hi", "function_call": {"name": "", "arguments": ""}, "audio": {"id": ""}}],
            [{"role": "assistant", "content": "hi", "audio": {"id": ""}}],
            [("messages[0].function_call.name", "malformed-tool-calls")],
            id="legacy call that says nothing",
        ),
        pytest.param(
            [USER, {"role": "assistant", "content": None, "tool_calls": []}],
            [USER, {"role": "assistant", "content": ""}],
            [("messages[1].content", "empty-assistant"), ("messages[1].tool_calls", "malformed-tool-calls")],
            id="empty list of calls",
        ),
        pytest.param(
            [{"role": "assistant", "content": None, "tool_calls": call(arguments={"a": 1})}, answer()],
            [asked(call(arguments='{"a": 1}')), answer()],
            [
                ("messages[0].tool_calls", "malformed-tool-calls"),
                ("messages[0].tool_calls[0].function.arguments", "malformed-tool-calls"),
            ],
            id="a lone call with arguments as an object",
        ),
        pytest.param(
            [asked({"id": "a", "name": "now", "arguments": "{}", "x": 1}), answer()],
            [asked({**call(), "x": 1}), answer()],
            [("messages[0].tool_calls[0].function", "malformed-tool-calls")],
            id="name and arguments without a function",
        ),
        pytest.param(
            [asked({"id": "a", "function": {"name": "now"}}), answer()],
            [asked({"id": "a", "function": {"name": "now", "arguments": "{}"}}), answer()],
            [("messages[0].tool_calls[0].function.arguments", "malformed-tool-calls")],
            id="no arguments",
        ),
        pytest.param(
            [{**FUNCTION_CALL, "function_call": {"name": "now", "arguments": {}}}],
            [FUNCTION_CALL],
            [("messages[0].function_call.arguments", "malformed-tool-calls")],
            id="legacy arguments as an object",
        ),
        pytest.param(
            [{**USER, "content": ["hi", None, {"text": "you", "x": 1}]}],
            [{**USER, "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "you", "x": 1}]}],
            [(f"messages[0].content[{n}]", "malformed-part") for n in range(3)],
            id="parts",
        ),
        pytest.param(
            [{**USER, "content": [None]}, {**USER, "content": 5}, {**USER, "content": {"type": "text", "text": "hi"}}],
            [{**USER, "content": ""}, {**USER, "content": "5"}, {**USER, "content": [{"type": "text", "text": "hi"}]}],
            [
                ("messages[0].content[0]", "malformed-part"),
                ("messages[0].content", "malformed-content"),
                ("messages[1].content", "malformed-content"),
                ("messages[2].content", "malformed-content"),
            ],
            id="contents",
        ),
        pytest.param(
            [asked(call()), answer(content={"hour": 12})],
            [asked(call()), answer(content='{"hour": 12}')],
            [("messages[1].content", "malformed-content")],
            id="a result that is an object",
        ),
    ],
)
def test_repair(messages: list[Any], repaired: list[Any], changed: list[tuple[str, str]]) -> None:
    """Each fault is repaired in its place, and every change is reported with its place in the input and its rule."""
    result = openai_chat.repair(messages)
    assert result.messages == repaired
    assert [(change.where, change.rule) for change in result.changes] == changed


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("hello", "unreadable-message"),
        ({"role": "human", "content": "hi"}, "unknown-role"),
        ({"role": "assistant", "content": [IMAGE]}, "part-not-allowed"),
        ({"role": "user", "content": {1, 2}}, "malformed-content"),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, "malformed-part"),
        ({"role": "assistant", "tool_calls": "now"}, "malformed-tool-calls"),
        (asked({"id": "a", "function": {"arguments": "{}"}}), "malformed-tool-calls"),
        (asked(call(arguments={1: {2}})), "malformed-tool-calls"),
    ],
)
def test_repair_invents_nothing(message: Any, rule: str) -> None:
    """A fault that only a guess could repair is listed in ``remaining``, at its place in the new list."""
    result = openai_chat.repair([answer("gone"), USER, message, answer("a"), USER])
    assert any(found is message for found in result.messages)
    assert {problem.rule for problem in result.remaining} == {rule}
    assert {problem.where.split("]")[0] for problem in result.remaining} == {"messages[1"}


def test_repair_lists_what_is_pending() -> None:
    """Unanswered calls at the end of the list get no result, and are listed in ``remaining``."""
    result = openai_chat.repair([USER, asked(call("a"), call("b")), answer("b")])
    assert [(problem.where, problem.rule) for problem in result.remaining] == [("messages[1].tool_calls[0]", "pending-call")]


def test_repair_of_an_object_is_a_dictionary() -> None:
    """A repaired object of the openai package becomes a dictionary; an object without faults is returned unchanged."""
    good = ChatCompletionMessage(role="assistant", content="hi")
    bad = ChatCompletionMessage(role="assistant", content=None, tool_calls=[])
    result = openai_chat.repair([good, bad])
    assert result.messages == [good, {"content": "", "role": "assistant"}]
    assert result.messages[0] is good


NAMES = st.sampled_from(["a", "b", "c"])
KEYS = st.sampled_from(["id", "type", "text", "name"])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", "text"]) | st.just(b"a") | st.just((1,)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "text", "name"]), inner, max_size=3)
    ),
    max_leaves=5,
)
BODIES = st.fixed_dictionaries({"name": NAMES, "arguments": st.sampled_from(["{}", "{", ""]) | JUNK}) | JUNK
CALLS = st.fixed_dictionaries({}, optional={"id": NAMES | JUNK, "type": st.just("function"), "function": BODIES}) | JUNK
PARTS = (
    st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", "refusal"])}, optional={"text": NAMES | JUNK}) | JUNK
)
CONTENTS = NAMES | st.none() | st.lists(PARTS, max_size=3) | JUNK
GOOD = (
    st.builds(lambda ids: asked(*map(call, ids)), st.lists(NAMES, min_size=1, max_size=3))
    | st.builds(answer, NAMES)
    | st.sampled_from([USER, {"role": "assistant", "content": "hi"}, FUNCTION_CALL])
    | st.builds(lambda name: {"role": "function", "name": name, "content": "noon"}, st.just("now") | NAMES)
)
BAD = (
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "tool", "function", "human"]) | JUNK},
        optional={"content": CONTENTS, "tool_call_id": NAMES | JUNK, "name": NAMES | JUNK},
    )
    | st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": CONTENTS,
            "tool_calls": st.lists(CALLS, max_size=3) | JUNK,
            "function_call": BODIES,
            "refusal": JUNK,
            "reasoning": JUNK,
        },
    )
    | JUNK
)
SOUP = st.lists(GOOD | BAD, max_size=12)
PAIRS = st.lists(GOOD, max_size=16)


@given(SOUP)
@example([[], {"role": {}}, {"role": "tool", "tool_call_id": []}])
def test_nothing_raises(messages: list[Any]) -> None:
    """Whatever stands in the list, validating it gives problems with a known rule, places in order, and no exception."""
    problems = openai_chat.validate(messages)
    indices = [int(found[1]) for problem in problems if (found := re.match(r"messages\[(\d+)\]", problem.where))]
    assert [problem.rule for problem in problems if problem.rule not in RULES] == []
    assert indices == sorted(indices)


@given(SOUP)
@example([asked({}), {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "a"}], "content": None}, answer(), answer()])
def test_a_repaired_list_breaks_only_what_remains(messages: list[Any]) -> None:
    """``remaining`` is all that is wrong with the new list, and never a matter of pairs, but for calls at the very end."""
    result = openai_chat.repair(messages)
    assert tuple(openai_chat.validate(result.messages)) == result.remaining
    assert [problem for problem in result.remaining if problem.rule in ALWAYS_REPAIRED] == []


@given(PAIRS)
def test_well_formed_messages_are_made_valid(messages: list[Any]) -> None:
    """Of messages that are good in themselves, in any order, nothing remains but pending calls or an empty list."""
    result = openai_chat.repair(messages)
    assert {problem.rule for problem in result.remaining} <= {"pending-call", "no-messages"}


@given(SOUP)
def test_repair_is_idempotent(messages: list[Any]) -> None:
    """Repairing the new list changes nothing: the same objects, no changes."""
    once = openai_chat.repair(messages)
    twice = openai_chat.repair(once.messages)
    assert [id(message) for message in twice.messages] == [id(message) for message in once.messages]
    assert twice.changes == ()


@given(SOUP)
def test_repair_leaves_the_input_alone(messages: list[Any]) -> None:
    """The list and everything in it stay as they were, and a list without problems comes back as it was."""
    before = copy.deepcopy(messages)
    result = openai_chat.repair(messages)
    assert messages == before
    assert bool(result.changes) == (result.messages != messages)


@given(SOUP)
def test_repair_reports_every_message_it_removed_or_added(messages: list[Any]) -> None:
    """The reports account for the difference in length; whatever is not reported is the same object."""
    result = openai_chat.repair(messages)
    removed = sum(change.remedy == "the message was removed" for change in result.changes)
    added = sum(change.remedy.startswith("a result was added") for change in result.changes)
    reported = {change.where.split("]")[0] for change in result.changes}
    kept = {id(message) for message in result.messages}
    assert len(result.messages) == len(messages) - removed + added
    assert [n for n, message in enumerate(messages) if id(message) not in kept and f"messages[{n}" not in reported] == []


@pytest.mark.parametrize(
    ("name", "found", "remaining"),
    [
        ("tau_airline", set[str](), set[str]()),
        ("tau_long", set[str](), set[str]()),
        ("whowhen_multiagent", set[str](), set[str]()),
        ("acebench_zh", set[str](), set[str]()),
        ("coding_long", set[str](), set[str]()),
        ("openhands", {"pending-call"}, {"pending-call"}),
        ("sweagent_demos", {"pending-call"}, {"pending-call"}),
        ("cassettes", {"malformed-content", "malformed-tool-calls", "pending-call"}, {"pending-call"}),  # empty lists and names
        ("inspect_logs", {"result-without-call"}, {"no-messages"}),  # one log contains only results
    ],
)
def test_recorded_conversations(
    corpus: Callable[[str], list[dict[str, Any]]], name: str, found: set[str], remaining: set[str]
) -> None:
    """Recorded conversations break only the rules listed here, and only the listed faults remain after a repair."""
    conversations = [conversation["messages"] for conversation in corpus(name)]
    repaired = [openai_chat.repair(messages) for messages in conversations]
    assert {rule for messages in conversations for rule in rules(messages)} == found
    assert {problem.rule for result in repaired for problem in result.remaining} == remaining


def test_what_broken_code_would_miss() -> None:
    """A result without an id is reported at the missing field; ``tool_calls`` of a user message are not checked."""
    lost = [{"role": "user", "content": "q"}, {"role": "tool", "content": "r"}]
    assert [problem.where for problem in openai_chat.validate(lost)] == ["messages[1].tool_call_id"]
    lost[1]["role"] = "function"
    assert [problem.where for problem in openai_chat.validate(lost)] == ["messages[1].name"]
    assert openai_chat.validate([{"role": "user", "content": "q", "tool_calls": "none of its business"}]) == []
    assert openai_chat.validate([{"role": "user", "content": "q", "tool_calls": [call()]}, USER]) == []
