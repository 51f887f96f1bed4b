"""Agent Framework's messages as a wire format: every content type kept whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_framework import Content, Message

from compaction import MessageIndex
from compaction.errors import InvalidMessage
from compaction.integrations.agent_framework import agent_framework
from compaction.messages import Media, Other, Reasoning, Text, ToolCall, ToolResult

CONTENTS: dict[str, tuple[Any, type]] = {
    "text": (Content.from_text("hello", additional_properties={"x": 1}), Text),
    "text_reasoning": (Content.from_text_reasoning(text="hm", protected_data="sig"), Reasoning),
    "data": (Content.from_data(b"\x89PNG", "image/png"), Media),
    "uri": (Content.from_uri("https://example.com/a.mp3", media_type="audio/mpeg"), Media),
    "error": (Content.from_error(message="no", error_code="E1"), Other),
    "function_call": (Content.from_function_call("c1", "look_up", arguments='{"a": 1}'), ToolCall),
    "function_result": (Content.from_function_result("c1", result="18"), ToolResult),
    "usage": (Content.from_usage({"input_token_count": 3}), Other),
    "hosted_file": (Content.from_hosted_file("file_1"), Other),
    "hosted_vector_store": (Content.from_hosted_vector_store("vs_1"), Other),
    "mcp_server_tool_call": (Content.from_mcp_server_tool_call("m1", "search", server_name="s", arguments={"q": 1}), ToolCall),
    "mcp_server_tool_result": (Content.from_mcp_server_tool_result("m1", output=[Content.from_text("found")]), ToolResult),
    "code_interpreter_tool_call": (
        Content.from_code_interpreter_tool_call(call_id="i1", inputs=[Content.from_text("1 + 1")]),
        ToolCall,
    ),
    "code_interpreter_tool_result": (
        Content.from_code_interpreter_tool_result(call_id="i1", outputs=[Content.from_text("2")]),
        ToolResult,
    ),
    "shell_tool_call": (Content.from_shell_tool_call(call_id="s1", commands=["ls"]), ToolCall),
    "image_generation_tool_call": (Content.from_image_generation_tool_call(image_id="g1"), Other),
}


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_content_type_is_kept_whole(kind: str) -> None:
    """It is read as what it is, comes out as the same object, and survives JSON."""
    content, part = CONTENTS[kind]
    role = "tool" if "result" in kind else "assistant"
    raw = Message(role, [content], author_name="Shop", additional_properties={"y": 2})
    message = agent_framework.read(raw)
    assert [type(each) for each in message.parts] == [part]
    assert message.raw is raw
    restored = agent_framework.from_wire(json.loads(json.dumps(agent_framework.to_wire(raw))))
    assert restored.contents[0].to_dict() == content.to_dict()
    assert restored.author_name == "Shop"


def test_a_changed_result_keeps_the_rest() -> None:
    """A shorter result keeps its id and properties; the original is as it was."""
    raw = Message("tool", [Content.from_function_result("c1", result="long " * 50, additional_properties={"x": 1})])
    changed = agent_framework.read(raw).evolve(text="short").raw
    assert (changed.contents[0].result, changed.contents[0].call_id) == ("short", "c1")
    assert changed.contents[0].additional_properties == {"x": 1}
    assert raw.contents[0].result == "long " * 50


def test_a_hosted_call_and_its_result_stay_together() -> None:
    """Both in one message are one whole, which no edit can part."""
    call, result = CONTENTS["mcp_server_tool_call"][0], CONTENTS["mcp_server_tool_result"][0]
    message = agent_framework.read(Message("assistant", [call, result]))
    assert [type(part) for part in message.parts] == [Other, Other]


def test_several_results_in_one_message() -> None:
    """Parallel calls answered in one message are one group, and valid."""
    calls = [Content.from_function_call(f"c{n}", "look_up", arguments="{}") for n in range(2)]
    results = [Content.from_function_result(f"c{n}", result=str(n)) for n in range(2)]
    messages = [Message("user", ["hi"]), Message("assistant", calls), Message("tool", results), Message("user", ["and?"])]
    index = MessageIndex(messages, format=agent_framework, counter="chars/4")
    assert [len(group.messages) for group in index.included_groups] == [1, 2, 1]
    assert agent_framework.validate(messages) == []
    assert [problem.where for problem in agent_framework.validate(messages[2:])] == ["messages[0]", "messages[0]"]
    assert agent_framework.repair(messages[2:]).messages == messages[3:]


def test_what_is_no_message() -> None:
    """The error names the place and the remedy."""
    with pytest.raises(InvalidMessage, match=r"messages\[1\].*agent_framework.Message"):
        MessageIndex([Message("user", ["hi"]), {"role": "user"}], format=agent_framework, counter="chars/4")
