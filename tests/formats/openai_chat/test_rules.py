"""Chat-completions rules: each finds its faults and no others."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function

from compaction.formats import openai_chat

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
    """Unusual messages that providers accept break no rule."""
    assert places(messages) == []


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


def test_what_broken_code_would_miss() -> None:
    """A result without an id is reported at the missing field; ``tool_calls`` of a user message are not checked."""
    lost = [{"role": "user", "content": "q"}, {"role": "tool", "content": "r"}]
    assert [problem.where for problem in openai_chat.validate(lost)] == ["messages[1].tool_call_id"]
    lost[1]["role"] = "function"
    assert [problem.where for problem in openai_chat.validate(lost)] == ["messages[1].name"]
    assert openai_chat.validate([{"role": "user", "content": "q", "tool_calls": "none of its business"}]) == []
    assert openai_chat.validate([{"role": "user", "content": "q", "tool_calls": [call()]}, USER]) == []
