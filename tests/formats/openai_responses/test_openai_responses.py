"""The Responses format: what its examples do not show, and the laws where calls of one answer are separate items."""

from __future__ import annotations

import pytest
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText, ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from compaction import GroupKind, compact_sync, kinds, last
from compaction.formats import openai_responses
from compaction.messages import ReasoningPart, TextPart, ToolCallPart
from compaction.selectors import Selector
from compaction.strategies import Pipeline, SlidingWindow, ToolResult
from compaction.testing import check_strategy
from tests.formats.openai_responses.examples import ANSWER, CALL, CUSTOM, OUTPUT, READ, THOUGHT, USER, call, output


def test_objects() -> None:
    made = ResponseFunctionToolCall(type="function_call", call_id="a", name="now", arguments="{}", id="fc_1")
    thought = ResponseReasoningItem(type="reasoning", id="rs_1", summary=[Summary(type="summary_text", text="hm")])
    text = ResponseOutputText(type="output_text", text="hi", annotations=[])
    said = ResponseOutputMessage(type="message", id="msg_1", role="assistant", status="completed", content=[text])
    parts = [ToolCallPart("a", "now", "{}"), ReasoningPart("hm"), TextPart("hi")]
    assert [openai_responses.read(raw).parts for raw in (made, thought, said)] == [(part,) for part in parts]
    new = {"type": "output_text", "text": "new", "annotations": []}
    assert openai_responses.read(said).evolve(text="new").raw["content"] == [new]
    assert openai_responses.to_wire(made) == call(id="a") | {"id": "fc_1"}
    assert openai_responses.validate([thought, made, OUTPUT, said]) == []


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
    asked = {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "output": "found " * 50}
    image = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "AAAA" * 50}
    assert "found found" in openai_responses.read(asked).parts[0].text  # type: ignore[union-attr]
    assert "AAAA" not in openai_responses.read(image).parts[0].text  # type: ignore[union-attr]


def test_the_items_of_an_answer_continue_each_other() -> None:
    for role, rows in READ.items():
        for raw, _ in rows.values():
            assert openai_responses.read(raw).continues is (role == "assistant")


@pytest.mark.parametrize("keep", [last(turns=1), last(groups=1), last(groups=3), kinds(GroupKind.TOOL_CALL)], ids=repr)
def test_calls_that_interleave_go_with_their_turns(keep: Selector) -> None:
    """Calls separated by a user message belong to different turns, and strategies on such a list keep the laws."""
    outputs = [output("a", output="ok " * 90), output("b", output="ok " * 90)]
    messages = [call("a"), USER, call("b"), *outputs, ANSWER, USER]
    assert openai_responses.validate(messages) == []
    for strategy in (SlidingWindow(keep=keep), Pipeline(ToolResult(keep=last(groups=1)), SlidingWindow(keep=keep))):
        check_strategy(strategy, messages=messages, format=openai_responses)
    assert compact_sync(messages, SlidingWindow(), counter="chars/4").messages == [USER]
