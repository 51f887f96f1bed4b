"""Reading Responses items into parts, and writing changed items."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText, ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import openai_responses
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

Raw = dict[str, Any]

WORDS: Raw = {"type": "input_text", "text": "hi", "x": 1}
SAID: Raw = {"type": "output_text", "text": "hi", "annotations": []}
PICTURE: Raw = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
PAPER: Raw = {"type": "input_file", "filename": "a.pdf", "file_data": "AAAA"}
CALL: Raw = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "now", "arguments": "{}", "status": "completed"}
CUSTOM: Raw = {"type": "custom_tool_call", "call_id": "b", "name": "sql", "input": "select 1"}
OUTPUT: Raw = {"type": "function_call_output", "call_id": "a", "output": "noon", "x": 1}
THOUGHT: Raw = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "x",
}


def message(role: str, content: Any, **fields: Any) -> Raw:
    """Return a message item."""
    return {"type": "message", "role": role, "content": content, **fields}


@pytest.mark.parametrize(
    ("raw", "role", "continues", "parts"),
    [
        pytest.param({"role": "user", "content": "hi", "x": 1}, "user", False, [TextPart("hi")], id="no type"),
        pytest.param(message("developer", [WORDS]), "developer", False, [TextPart("hi")], id="developer"),
        pytest.param(
            message("assistant", [SAID, {"type": "refusal", "refusal": "no"}]),
            "assistant",
            True,
            [TextPart("hi"), TextPart("no")],
            id="answer",
        ),
        pytest.param(message("user", None), "user", False, [], id="null"),
        pytest.param(
            message("user", [WORDS, PICTURE, PAPER, "hi", {"type": "poll"}]),
            "user",
            False,
            [
                TextPart("hi"),
                MediaPart("image", "low", 26),
                MediaPart("file", "", 4),
                TextPart("hi"),
                OtherPart('{"type": "poll"}'),
            ],
            id="parts",
        ),
        pytest.param(CALL, "assistant", True, [ToolCallPart("a", "now", "{}")], id="call"),
        pytest.param(CUSTOM, "assistant", True, [ToolCallPart("b", "sql", "select 1")], id="custom call"),
        pytest.param(
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            "assistant",
            True,
            [ToolCallPart("c", "shell", '{"commands": ["ls"]}')],
            id="shell call",
        ),
        pytest.param(OUTPUT, "tool", False, [ToolResultPart("a", "noon")], id="output"),
        pytest.param(
            {**OUTPUT, "output": [WORDS, PICTURE]},
            "tool",
            False,
            [ToolResultPart("a", "hi", (MediaPart("image", "low", 26),))],
            id="output of parts",
        ),
        pytest.param(
            {"type": "computer_call_output", "call_id": "c", "output": {"image_url": "data:AAAA"}, "x": 1},
            "tool",
            False,
            [ToolResultPart("c", ""), OtherPart('{"x": 1}')],
            id="screenshot",
        ),
        pytest.param(
            {"type": "local_shell_call_output", "id": "c", "output": "done"},
            "tool",
            False,
            [ToolResultPart("c", "done")],
            id="named by id",
        ),
        pytest.param(THOUGHT, "assistant", True, [ReasoningPart("hm")], id="reasoning"),
        pytest.param(
            {"type": "web_search_call", "id": "ws_1"},
            "assistant",
            True,
            [OtherPart('{"type": "web_search_call", "id": "ws_1"}')],
            id="hosted",
        ),
        pytest.param(
            {"type": "item_reference", "id": "x"},
            "assistant",
            True,
            [OtherPart('{"type": "item_reference", "id": "x"}')],
            id="reference",
        ),
        pytest.param(
            {"type": "compaction", "encrypted_content": "x"},
            "compaction",
            False,
            [OtherPart('{"type": "compaction"}')],
            id="compaction",
        ),
    ],
)
def test_what_is_read(raw: Raw, role: str, continues: bool, parts: list[Part]) -> None:
    """Each item is read with its role, its parts and whether it continues an answer; ``raw`` is the caller's object."""
    read = openai_responses.read(raw)
    assert (read.role, read.continues, list(read.parts)) == (role, continues, parts)
    assert read.raw is raw


def test_objects() -> None:
    """Items may be objects of the openai package; a changed copy is a dictionary."""
    call = ResponseFunctionToolCall(type="function_call", call_id="a", name="now", arguments="{}", id="fc_1")
    thought = ResponseReasoningItem(type="reasoning", id="rs_1", summary=[Summary(type="summary_text", text="hm")])
    text = ResponseOutputText(type="output_text", text="hi", annotations=[])
    said = ResponseOutputMessage(type="message", id="msg_1", role="assistant", status="completed", content=[text])
    assert [openai_responses.read(raw).parts for raw in (call, thought, said)] == [
        (ToolCallPart("a", "now", "{}"),),
        (ReasoningPart("hm"),),
        (TextPart("hi"),),
    ]
    assert openai_responses.read(said).evolve(text="new").raw["content"] == [
        {"type": "output_text", "text": "new", "annotations": []}
    ]
    assert openai_responses.to_wire(call) == {
        "type": "function_call",
        "call_id": "a",
        "name": "now",
        "arguments": "{}",
        "id": "fc_1",
    }
    assert openai_responses.validate([thought, call, OUTPUT, said]) == []


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ("hi", "messages[3]"),
        ({"content": "hi"}, "messages[3].type"),
        ({"type": 5}, "messages[3].type"),
        (message("", "x"), "messages[3].role"),
    ],
)
def test_what_is_no_item_is_refused(raw: Any, where: str) -> None:
    """A value without a type or a role raises ``InvalidMessage``, and the error names its place."""
    with pytest.raises(InvalidMessage) as caught:
        openai_responses.read(raw, 3)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("raw", "changes", "changed"),
    [
        pytest.param(message("user", "hi", x=1), {"text": "new"}, message("user", "new", x=1), id="string"),
        pytest.param(
            message("user", [WORDS, PICTURE]), {"text": "new"}, message("user", [{**WORDS, "text": "new"}, PICTURE]), id="part"
        ),
        pytest.param(
            message("assistant", [{"type": "refusal", "refusal": "no"}]),
            {"text": "new"},
            message("assistant", [{"type": "refusal", "refusal": "new"}]),
            id="refusal",
        ),
        pytest.param(CALL, {"arguments": '{"a": 1}'}, {**CALL, "arguments": '{"a": 1}'}, id="arguments"),
        pytest.param(
            CUSTOM,
            {"arguments": "select 2", "id": "c", "name": "db"},
            {**CUSTOM, "input": "select 2", "call_id": "c", "name": "db"},
            id="custom",
        ),
        pytest.param(OUTPUT, {"text": "new"}, {**OUTPUT, "output": "new"}, id="output"),
        pytest.param(OUTPUT, {"call_id": "b"}, {**OUTPUT, "call_id": "b"}, id="other call"),
        pytest.param(
            {**OUTPUT, "output": [PICTURE, WORDS, WORDS]},
            {"text": "new", "media": ()},
            {**OUTPUT, "output": [{**WORDS, "text": "new"}]},
            id="parts",
        ),
        pytest.param(
            {**OUTPUT, "output": [PICTURE]},
            {"text": "new"},
            {**OUTPUT, "output": [{"type": "input_text", "text": "new"}, PICTURE]},
            id="picture",
        ),
    ],
)
def test_changed_parts(raw: Raw, changes: Raw, changed: Raw) -> None:
    """Changes are written, every other field is kept, and the original item is not changed."""
    before = copy.deepcopy(raw)
    read = openai_responses.read(raw)
    assert read.evolve(parts=[attrs.evolve(read.parts[0], **changes), *read.parts[1:]]).raw == changed
    assert raw == before


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        pytest.param(THOUGHT, [ReasoningPart("other")], id="other thoughts"),
        pytest.param(THOUGHT, [], id="no thoughts"),
        pytest.param(message("user", "hi"), [MediaPart("image")], id="new image"),
        pytest.param(OUTPUT, [TextPart("noon")], id="words for an output"),
        pytest.param(
            {"type": "computer_call_output", "call_id": "c", "output": {}},
            [ToolResultPart("c", "new")],
            id="an output that is no text",
        ),
        pytest.param({"type": "shell_call", "call_id": "c", "action": {}}, [ToolCallPart("c", "shell", "x")], id="an action"),
    ],
)
def test_what_cannot_be_written_is_refused(raw: Raw, parts: list[Part]) -> None:
    """A ``ConfigurationError`` is raised for parts that cannot be written, such as new reasoning and new media."""
    with pytest.raises(ConfigurationError, match="parts: "):
        openai_responses.read(raw).evolve(parts=parts)


def test_reasoning_stays_with_what_is_known_by_an_id() -> None:
    """Reasoning may not be removed from before an item with an id that the provider knows, but may before one without."""
    known = [openai_responses.read(raw) for raw in (THOUGHT, CALL, OUTPUT)]
    bare = [openai_responses.read(raw) for raw in (THOUGHT, CUSTOM, {**OUTPUT, "call_id": "b"})]
    assert openai_responses.rewrite_problem(known, [None, *known[1:]], current=False) is not None
    assert openai_responses.rewrite_problem(bare, [None, *bare[1:]], current=True) is None
    assert openai_responses.rewrite_problem(known, known, current=True) is None


def test_what_a_shell_wrote_is_read_and_can_be_shortened() -> None:
    """The text of a shell's output joins its two streams; shortened, it is one chunk with the last chunk's outcome."""
    done = {"type": "exit", "exit_code": 1}
    chunks = [{"stdout": "one", "stderr": "", "outcome": done}, {"stdout": "two", "stderr": "oh", "outcome": done}]
    message = openai_responses.read({"type": "shell_call_output", "call_id": "a", "output": chunks})
    assert message.text == "one\ntwo\noh"
    assert message.evolve(text="o...").raw["output"] == [{"stdout": "o...", "stderr": "", "outcome": done}]


def test_what_a_server_answered_counts() -> None:
    """The output of an MCP server's tool is part of the text that the model reads; a generated image is not."""
    call = {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "output": "found " * 50}
    image = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "AAAA" * 50}
    assert "found found" in openai_responses.read(call).parts[0].text  # type: ignore[union-attr]
    assert "AAAA" not in openai_responses.read(image).parts[0].text  # type: ignore[union-attr]
