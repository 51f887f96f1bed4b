"""Anthropic rules: each finds its faults and no others."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat.chat_completion_message_function_tool_call import Function

from compaction.formats import anthropic
from tests.support.rulebook import places

Raw = dict[str, Any]


TEXT: Raw = {"type": "text", "text": "hi"}
USER: Raw = {"role": "user", "content": "hi"}
THOUGHT: Raw = {"type": "thinking", "thinking": "", "signature": "c2ln"}


def call(id: Any = "a", **fields: Any) -> Raw:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": id, "name": "now", "input": {}, **fields}


def result(id: Any = "a", content: Any = "noon") -> Raw:
    """Return a block with a tool's result."""
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def user(*blocks: Any) -> Raw:
    """Return a user message with these blocks."""
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> Raw:
    """Return an assistant message with these blocks."""
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([answer(TEXT), USER], id="answer first"),
        pytest.param([USER, USER, answer(TEXT), answer(TEXT)], id="roles that do not alternate"),
        pytest.param(
            [USER, answer(THOUGHT, TEXT), answer(call()), user(result())], id="an answer without thoughts after one with"
        ),
        pytest.param(
            [answer(call()), user(result(content=[TEXT, {"type": "image", "source": {"type": "file", "file_id": "f"}}]))],
            id="nested",
        ),
        pytest.param([answer(call()), user(result(content=None))], id="result without content"),
        pytest.param([answer(call()), user(result(content=""))], id="empty result"),
        pytest.param([answer({"type": "compaction", "content": "so far"}), USER], id="compaction block"),
        pytest.param([USER, answer(call(), {"type": "unheard_of"}), user(result())], id="unknown block after a call"),
        pytest.param([answer(THOUGHT, TEXT), USER, answer(TEXT)], id="thoughts first, an answer last"),
        pytest.param([USER, {"role": "assistant", "content": ""}], id="an answer to be written"),
        pytest.param([{**USER, "x_trace": 7}, {"role": "system", "content": "be kind"}], id="system at the end, unknown field"),
        pytest.param(
            [answer(*[call(str(n)) for n in range(9)]), user(*[result(str(n)) for n in reversed(range(9))])], id="any order"
        ),
    ],
)
def test_what_the_api_takes_is_no_problem(messages: list[Any]) -> None:
    """Unusual messages that the provider accepts break no rule."""
    assert places(anthropic, messages) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [answer(call("a"), call("b")), user(result("b")), user(result("a"))],
            [("messages[0].content[0]", "call-without-result"), ("messages[2].content[0]", "result-without-call")],
            id="results in two messages",
        ),
        pytest.param(
            [answer(call()), answer(TEXT), user(result())],
            [("messages[0].content[0]", "call-without-result"), ("messages[2].content[0]", "result-without-call")],
            id="an answer between",
        ),
        pytest.param(
            [answer(call("a"), call("b")), user(result("a"))], [("messages[0].content[1]", "pending-call")], id="one waits"
        ),
        pytest.param(
            [answer(call("a"), call("b")), user(result("a"), TEXT)],
            [("messages[0].content[1]", "call-without-result")],
            id="the user went on",
        ),
        pytest.param(
            [user({"type": "tool_result", "tool_use_id": "a", "content": [result()]}), USER],
            [("messages[0].content[0].content[0]", "block-not-allowed"), ("messages[0].content[0]", "result-without-call")],
            id="result in a result",
        ),
        pytest.param(
            [answer(call()), user(result(content=[TEXT, {"type": "image"}]))],
            [("messages[1].content[0].content[1].source", "malformed-block")],
            id="a result's block without its field",
        ),
        pytest.param(
            [user({"type": "text"}, None, {"type": "image"})],
            [
                ("messages[0].content[0].text", "malformed-block"),
                ("messages[0].content[1]", "malformed-block"),
                ("messages[0].content[2].source", "malformed-block"),
            ],
            id="blocks without their fields",
        ),
        pytest.param(
            [{"role": "system", "content": [{"type": "image", "source": {}}]}, USER],
            [("messages[0].content[0]", "block-not-allowed")],
            id="image in instructions",
        ),
        pytest.param(
            [answer(call()), None, user(result())],
            [
                ("messages[0].content[0]", "call-without-result"),
                ("messages[1]", "unreadable-message"),
                ("messages[2].content[0]", "result-without-call"),
            ],
            id="nothing readable between",
        ),
        pytest.param(
            [answer(call()), {"role": "user", "content": 5}, {"role": "assistant", "content": 5}],
            [
                ("messages[0].content[0]", "call-without-result"),
                ("messages[1].content", "malformed-content"),
                ("messages[2].content", "malformed-content"),
            ],
            id="contents that are numbers",
        ),
        pytest.param(
            [{"role": "assistant", "content": ""}, {"role": "user", "content": ""}],
            [("messages[0].content", "empty-content"), ("messages[1].content", "empty-content")],
            id="nothing is said, but in the last answer",
        ),
        pytest.param([{"role": "user", "content": " "}], [("messages[0].content", "empty-text")], id="blanks alone"),
        pytest.param([answer(TEXT, THOUGHT)], [("messages[0].content[1]", "ends-with-thinking")], id="a thought at the end"),
        pytest.param(
            [user(), {"role": "host", "content": "x"}, answer(call()), {"role": "system", "content": "s"}],
            [
                ("messages[0].content", "empty-content"),
                ("messages[1].role", "unknown-role"),
                ("messages[2].content[0]", "call-without-result"),
                ("messages[3]", "misplaced-system"),
            ],
            id="in order of place, whenever it is found",
        ),
    ],
)
def test_every_fault_has_its_place(messages: list[Any], expected: list[tuple[str, str]]) -> None:
    """All faults of a list are found in one pass, each at its place."""
    assert places(anthropic, messages) == expected


def test_a_call_is_told_whether_its_result_may_still_come() -> None:
    """A missing result is reported as pending at the end of the list, and as missing once another message follows."""
    assert [problem.message for problem in anthropic.validate([answer(call())])] == ["the call 'a' has no result yet"]
    missing = "the call 'a' has no result directly after it"
    assert [problem.message for problem in anthropic.validate([answer(call()), USER])] == [missing]


@pytest.mark.parametrize(
    "message",
    [
        user(call()),
        user(THOUGHT),
        user({"type": "redacted_thinking", "data": "x"}),
        user({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        user({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
        answer(result()),
        answer({"type": "image", "source": {}}),
        answer({"type": "document", "source": {}}),
        {"role": "system", "content": [call()]},
    ],
    ids=lambda message: f"{message['role']}: {message['content'][0]['type']}",
)
def test_who_says_what(message: Raw) -> None:
    """Blocks in the wrong role are refused: calls and thinking from a user, results and media from the assistant."""
    assert places(anthropic, [message])[0] == ("messages[0].content[0]", "block-not-allowed")


def test_a_field_may_be_an_object_of_a_package_where_it_holds_fields() -> None:
    """``input`` may be an object with attributes; a ``text`` that is an object is malformed."""
    asked = answer(call(input=Function(name="x", arguments="")))
    assert places(anthropic, [asked]) == [("messages[0].content[0]", "pending-call")]
    assert places(anthropic, [user({"type": "text", "text": {}})]) == [("messages[0].content[0].text", "malformed-block")]


@pytest.mark.parametrize("block", [{"text": "no type"}, {"type": ""}, {"type": 5}, "bare", None], ids=repr)
def test_a_block_has_a_type(block: Any) -> None:
    """A block that is not an object with a type is malformed in every role."""
    for message in (user(block), answer(block)):
        assert places(anthropic, [message]) == [("messages[0].content[0]", "malformed-block")]


ASKED = {"role": "user", "content": "q"}
SAID = {"role": "assistant", "content": "a"}
TOLD = {"role": "system", "content": "s"}
CALLED = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
ANSWER = {"type": "tool_result", "tool_use_id": "a"}
SEARCHED = [
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": {"type": "web_search_tool_result_error"}},
    {"type": "text", "text": "It did not work."},
]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([ASKED, SAID, TOLD, SAID], ["misplaced-system"]),
        ([ASKED, TOLD, ASKED], ["misplaced-system"]),
        ([ASKED, TOLD, SAID], []),
        ([ASKED, CALLED, {"role": "user", "content": [{**ANSWER, "content": 5}]}], ["malformed-content"]),
        ([ASKED, CALLED, {"role": "user", "content": [{**ANSWER, "content": [ANSWER]}]}], ["block-not-allowed"]),
        ([ASKED, {"role": "assistant", "content": SEARCHED}], []),
    ],
    ids=range(6),
)
def test_what_broken_code_would_miss(messages: list[Any], expected: list[str]) -> None:
    """Messages that distinguish the rules from slightly wrong versions of them give exactly these problems."""
    assert [problem.rule for problem in anthropic.validate(messages)] == expected


def test_a_call_of_the_providers_may_wait() -> None:
    """A provider call may wait for its result at the end or after tool results, but not after the user's words."""
    fetch = {"type": "server_tool_use", "id": "f", "name": "web_fetch", "input": {}}
    call = {"type": "tool_use", "id": "a", "name": "now", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "noon"}]}
    assert anthropic.validate([{"role": "assistant", "content": [fetch]}]) == []
    assert anthropic.validate([{"role": "assistant", "content": [fetch, call]}, result]) == []
    assert [
        problem.rule
        for problem in anthropic.validate([{"role": "assistant", "content": [fetch]}, {"role": "user", "content": "well?"}])
    ] == ["server-call-without-result"]


def test_a_last_answer_without_a_content() -> None:
    """A last answer may be empty, but its ``content`` field is required."""
    messages = [ASKED, {"role": "assistant", "content": None}]
    assert places(anthropic, messages) == [("messages[1].content", "empty-content")]
