"""Responses rules: each finds its faults and no others."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import openai_responses
from tests.support.rulebook import places

Raw = dict[str, Any]


USER: Raw = {"role": "user", "content": "hi"}
REASONING: Raw = {"type": "reasoning", "id": "rs_1", "summary": []}
SAID: Raw = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}


def call(id: Any = "a", **fields: Any) -> Raw:
    """Return a call of a function."""
    return {"type": "function_call", "call_id": id, "name": "now", "arguments": "{}", **fields}


def output(id: Any = "a", **fields: Any) -> Raw:
    """Return the output of a function."""
    return {"type": "function_call_output", "call_id": id, "output": "noon", **fields}


def test_calls_of_one_id_need_an_output_each() -> None:
    """With two calls of one id, one output answers only the later call; the earlier call is reported as unanswered."""
    assert places(openai_responses, [call(), call(), output(), USER]) == [
        ("messages[0]", "call-without-result"),
        ("messages[1].call_id", "duplicate-call-id"),
    ]
    assert places(openai_responses, [call(), call(), output(), output()]) == [("messages[1].call_id", "duplicate-call-id")]


def test_only_calls_of_the_last_answer_wait() -> None:
    """Whatever follows an output is a new answer, which the provider gives when it has the outputs of all earlier calls."""
    both = [call("a"), call("b"), output("b")]
    assert places(openai_responses, both) == [("messages[0]", "pending-call")]
    assert places(openai_responses, [call("a"), SAID]) == [("messages[0]", "pending-call")]
    assert places(openai_responses, [*both, SAID]) == [("messages[0]", "call-without-result")]
    assert places(openai_responses, [*both, call("c"), SAID]) == [
        ("messages[0]", "call-without-result"),
        ("messages[3]", "pending-call"),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([call(), USER, output()], id="output after the user"),
        pytest.param([REASONING, call(), SAID, output()], id="words after the call"),
        pytest.param(
            [REASONING, {**REASONING, "id": "rs_2"}, call("a"), call("b"), output("b"), output("a")],
            id="two thoughts, any order",
        ),
        pytest.param(
            [call(arguments="{not json"), output(output=[{"type": "input_text", "text": "x"}])], id="no JSON; output of parts"
        ),
        pytest.param(
            [{"type": "tomorrow", "x": 1}, {"type": "compaction", "encrypted_content": "x"}, USER], id="types nobody knows"
        ),
        pytest.param(
            [{"type": "mcp_approval_request", "id": "m", "name": "x", "arguments": "{}"}, USER], id="approval not given"
        ),
        pytest.param(
            [
                {"type": "local_shell_call", "id": "l", "call_id": "a", "action": {}},
                {"type": "local_shell_call_output", "id": "a", "output": ""},
            ],
            id="an output that names its call by id",
        ),
        pytest.param(
            [
                {"type": "local_shell_call", "id": "l", "call_id": "a", "action": {}},
                {"type": "local_shell_call_output", "id": "a", "output": ""},
                {"type": "local_shell_call", "id": "k", "call_id": "a", "action": {}},
                {"type": "local_shell_call_output", "id": "a", "output": ""},
            ],
            id="an id that names a call is not the output's own",
        ),
        pytest.param([{**REASONING, "summary": ()}, SAID], id="a tuple for a list"),
        pytest.param([{"type": "web_search_call", "id": "ws_1", "status": "completed"}, SAID], id="hosted tool"),
    ],
)
def test_what_the_api_takes_is_no_problem(messages: list[Any]) -> None:
    """Unusual items that the provider accepts break no rule."""
    assert places(openai_responses, messages) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [output(), call()], [("messages[0]", "result-without-call"), ("messages[1]", "pending-call")], id="output first"
        ),
        pytest.param(
            [REASONING, output()],
            [("messages[0]", "reasoning-without-item"), ("messages[1]", "result-without-call")],
            id="reasoning before an output",
        ),
        pytest.param([USER, REASONING], [("messages[1]", "reasoning-without-item")], id="reasoning last"),
        pytest.param(
            [call("a"), call("b"), output("b"), None],
            [("messages[0]", "call-without-result"), ("messages[3]", "unreadable-message")],
            id="no item at the end",
        ),
        pytest.param(
            [call(), REASONING, output(), SAID],
            [("messages[1]", "reasoning-without-item")],
            id="an output where an item was due",
        ),
        pytest.param(
            [REASONING, USER, SAID], [("messages[0]", "reasoning-without-item")], id="the user speaks where its item was due"
        ),
        pytest.param(
            [REASONING, None, SAID, output("gone")],
            [
                ("messages[0]", "reasoning-without-item"),
                ("messages[1]", "unreadable-message"),
                ("messages[3]", "result-without-call"),
            ],
            id="nothing readable where its item was due",
        ),
        pytest.param(
            [{**call("a"), "id": "one"}, {**output("a"), "id": "one"}],
            [("messages[1].id", "duplicate-item-id")],
            id="an output has an id of its own",
        ),
        pytest.param(
            [call("a"), output("a", output=5), {"type": "custom_tool_call_output", "call_id": "b", "output": 5}],
            [
                ("messages[1].output", "malformed-content"),
                ("messages[2].output", "malformed-content"),
                ("messages[2]", "result-without-call"),
            ],
            id="an output that is a number",
        ),
        pytest.param(
            [{**REASONING, "summary": "thought"}, call(arguments=[]), USER],
            [
                ("messages[0].summary", "malformed-item"),
                ("messages[1].arguments", "malformed-item"),
                ("messages[1]", "call-without-result"),
            ],
            id="a text for a list, a list for a text",
        ),
    ],
)
def test_every_fault_has_its_place(messages: list[Any], expected: list[tuple[str, str]]) -> None:
    """All faults of a list are found in one pass, each at its place."""
    assert places(openai_responses, messages) == expected


def test_a_call_is_told_whether_its_output_may_still_come() -> None:
    """A missing output is reported as pending at the end of the list, and as missing once another item follows."""
    assert [problem.message for problem in openai_responses.validate([call()])] == ["the call 'a' has no result yet"]
    assert [problem.message for problem in openai_responses.validate([call(), USER])] == ["the call 'a' has no result"]


@pytest.mark.parametrize("part", [{"text": "no type"}, {"type": "input_text", "text": 5}, {"type": "input_text"}, "bare", None])
def test_parts_without_type_or_text(part: Any) -> None:
    """A content part without a type or without its text is malformed."""
    problems = openai_responses.validate([{"type": "message", "role": "user", "content": [part]}])
    assert [problem.rule for problem in problems] == ["malformed-part"]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_parts_of_chat_completions_are_refused(role: str) -> None:
    """Content parts of the type ``text`` are refused."""
    messages = [{"role": role, "content": [{"type": "text", "text": "hi"}]}]
    assert places(openai_responses, messages) == [("messages[0].content[0]", "part-not-allowed")]
