"""Agent Framework's messages as a wire format: every content type is kept whole."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from agent_framework import Content, Message
from agent_framework._types import ContentType

from compaction import MessageIndex, compact_sync, last
from compaction.errors import ConfigurationError, InvalidMessage
from compaction.index.keys import message_key
from compaction.integrations.agent_framework import agent_framework
from compaction.messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.strategies import (
    Clear,
    ClearMedia,
    HeadTail,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    Truncation,
)
from compaction.strategies import ToolResult as ShortenResults
from compaction.testing import check_strategy

PICTURE = Content.from_data(b"\x89PNG", "image/png")
STRATEGIES: list[Strategy] = [
    Truncation(keep=last(groups=1)),
    SlidingWindow(keep=last(groups=1)),
    SelectiveToolCall(keep=last(groups=1)),
    Summarization(keep=last(groups=1)),
    ShortenResults(keep=last(groups=1)),
    ShortenResults(Clear(min_chars=1), keep=last(groups=1)),
    ShortenResults(HeadTail(chars=10), keep=last(groups=1)),
    ClearMedia(keep=last(groups=1)),
]
WANTED, HOSTED = (Content.from_function_call("c1", "pay", arguments='{"sum": 9}', hosted=hosted) for hosted in (None, True))
MCP_CALL = Content.from_mcp_server_tool_call("m1", "search", server_name="s", arguments={"q": 1})
CODE = Content.from_code_interpreter_tool_call(call_id="i1", inputs=[Content.from_text("1 + 1")])
RAN = Content.from_code_interpreter_tool_result(call_id="i1", outputs=[Content.from_text("2")])
PRINTED = Content.from_shell_command_output(stdout="a.py", stderr="", exit_code=0, timed_out=False)
LEAF = [Content.from_text("a leaf")]
FOUND = Content.from_search_tool_result("w1", tool_name="web_search", result={"n": 1}, items=LEAF)
CLICK = Content("computer_tool_call", id="cu_1", call_id="k1", actions=[{"type": "click", "x": 1, "y": 2}])
CONTENTS: dict[str, tuple[Any, type]] = {
    "text": (Content.from_text("hello", additional_properties={"x": 1}), TextPart),
    "text_reasoning": (Content.from_text_reasoning(text="hm", protected_data="sig"), ReasoningPart),
    "data": (Content.from_data(b"\x89PNG", "image/png"), MediaPart),
    "uri": (Content.from_uri("https://example.com/a.mp3", media_type="audio/mpeg"), MediaPart),
    "error": (Content.from_error(message="no", error_code="E1"), OtherPart),
    "function_call": (Content.from_function_call("c1", "look_up", arguments='{"a": 1}'), ToolCallPart),
    "function_result": (Content.from_function_result("c1", result="18", additional_properties={"x": 1}), ToolResultPart),
    "usage": (Content.from_usage({"input_token_count": 3}), OtherPart),
    "hosted_file": (Content.from_hosted_file("file_1"), OtherPart),
    "hosted_vector_store": (Content.from_hosted_vector_store("vs_1"), OtherPart),
    "mcp_server_tool_call": (MCP_CALL, ToolCallPart),
    "mcp_server_tool_result": (Content.from_mcp_server_tool_result("m1", output=[Content.from_text("found")]), ToolResultPart),
    "code_interpreter_tool_call": (CODE, ToolCallPart),
    "code_interpreter_tool_result": (RAN, ToolResultPart),
    "shell_tool_call": (Content.from_shell_tool_call(call_id="s1", commands=["ls"]), ToolCallPart),
    "shell_tool_result": (Content.from_shell_tool_result(call_id="s1", outputs=[PRINTED]), ToolResultPart),
    "shell_command_output": (PRINTED, OtherPart),
    "search_tool_call": (Content.from_search_tool_call("w1", tool_name="web_search", arguments={"q": "tea"}), OtherPart),
    "search_tool_result": (FOUND, OtherPart),
    "computer_tool_call": (CLICK, ToolCallPart),
    "computer_tool_result": (Content("computer_tool_result", call_id="k1", screenshot=PICTURE), ToolResultPart),
    "image_generation_tool_call": (Content.from_image_generation_tool_call(image_id="g1"), OtherPart),
    "image_generation_tool_result": (Content.from_image_generation_tool_result(image_id="g1", outputs=PICTURE), OtherPart),
    "function_approval_request": (Content.from_function_approval_request("a1", WANTED), OtherPart),
    "function_approval_response": (Content.from_function_approval_response(True, "a1", WANTED), OtherPart),
    "oauth_consent_request": (Content.from_oauth_consent_request("https://example.com/consent"), OtherPart),
}
ANSWERS = {kind: kind.replace("call", "result") for kind in CONTENTS if kind.endswith("_call")}


def test_no_content_type_is_left_out() -> None:
    assert CONTENTS.keys() == set(get_args(ContentType))
    assert set(ANSWERS.values()) < CONTENTS.keys()


def role_of(kind: str) -> str:
    by_provider = kind in ("search_tool_result", "image_generation_tool_result")
    return "user" if kind == "function_approval_response" else "tool" if "result" in kind and not by_provider else "assistant"


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_content_type_is_kept_whole(kind: str) -> None:
    """A content of each type has the right part, is written as the same object, and survives JSON.

    A saved state finds a message again after that: its key is data without addresses of objects.
    """
    content, part = CONTENTS[kind]
    raw = Message(role_of(kind), [content], author_name="Shop", additional_properties={"y": 2})
    message = agent_framework.read(raw)
    beside = [OtherPart] if kind == "computer_tool_result" else []
    assert [type(each) for each in message.parts] == [part, *beside]
    assert message.raw is raw
    restored = agent_framework.from_wire(json.loads(json.dumps(agent_framework.to_wire(raw))))
    assert restored.contents[0].to_dict() == content.to_dict()
    assert restored.author_name == "Shop"
    assert message_key(restored, agent_framework) == message_key(raw, agent_framework)
    assert "author_name" not in agent_framework.to_wire(Message("user", ["hi"]))


def contents_of(messages: list[Any]) -> list[list[Any]]:
    return [[each.to_dict() for each in raw.contents] for raw in messages]


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_content_type_has_its_place_in_a_conversation(kind: str) -> None:
    """Each content counts, and leaves or stays with its message; a saved index restores the same contents."""
    around = [Message("user", ["hi"]), Message("user", ["and now?"])]
    messages = [around[0], Message(role_of(kind), [CONTENTS[kind][0], Content.from_text("so far")]), around[1]]
    index = MessageIndex(messages, format=agent_framework, counter="chars/4")
    assert all(one is other for one, other in zip(index.messages(), messages, strict=True))
    bare = MessageIndex([around[0], Message(role_of(kind), ["so far"]), around[1]], format=agent_framework, counter="chars/4")
    assert index.included.tokens > bare.included.tokens or kind in ("data", "uri")
    assert index.included.bytes > bare.included.bytes or kind == "uri"
    saved = MessageIndex.from_dict(json.loads(json.dumps(index.to_dict())), format=agent_framework, counter="chars/4")
    assert contents_of(saved.messages()) == contents_of(messages)
    assert saved.included == index.included
    left = compact_sync(messages, Truncation(keep=last(groups=1)), format=agent_framework, counter="chars/4").messages
    assert {id(raw) for raw in left} <= {id(raw) for raw in messages}
    assert left[-1] is around[1]


@pytest.mark.parametrize("call", sorted(ANSWERS))
def test_a_call_and_its_result_are_one_group(call: str) -> None:
    asked, answered = (Message(role_of(kind), [CONTENTS[kind][0]]) for kind in (call, ANSWERS[call]))
    messages = [Message("user", ["hi"]), asked, answered, Message("assistant", ["done"]), Message("user", ["and?"])]
    index = MessageIndex(messages, format=agent_framework, counter="chars/4")
    [group] = [group for group in index.included_groups if any(message.raw is asked for message in group.messages)]
    assert [message.raw for message in group.messages][:2] == [asked, answered]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=agent_framework)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_what_was_approved_follows_what_asked(strategy: Strategy) -> None:
    asked = Message("assistant", [Content.from_function_approval_request("a1", HOSTED)])
    approved = Message("user", [Content.from_function_approval_response(True, "a1", HOSTED)])
    before = [Message(role, [f"{role} " * 40]) for _ in range(3) for role in ("user", "assistant")]
    for after in ([], [Message("assistant", ["paid"])], [Message("assistant", ["paid"]), Message("user", ["and?"])]):
        messages = [*before, Message("user", ["pay"]), asked, approved, *after]
        left = compact_sync(messages, strategy, format=agent_framework, counter="chars/4").messages
        assert (asked in left) == (approved in left)
        check_strategy(strategy, messages=messages, format=agent_framework)


def test_a_picture_is_not_counted_as_text() -> None:
    """A megabyte of picture data in a content that is kept whole adds no tokens."""
    screen = Content.from_data(b"x" * 1_000_000, "image/png")
    kinds = ("computer_tool_result", "image_generation_tool_result")
    contents = [Content(kinds[0], call_id="k1", screenshot=screen), Content(kinds[1], image_id="g1", outputs=screen)]
    messages = [Message("user", ["hi"]), *(Message(role_of(kind), [each]) for kind, each in zip(kinds, contents, strict=True))]
    assert MessageIndex(messages, format=agent_framework, counter="chars/4").included.tokens < 200


def test_a_screenshot_stays_as_it_is() -> None:
    """A screenshot cannot be replaced by a text; a note beside it can change."""
    raw = Message("tool", [CONTENTS["computer_tool_result"][0], Content.from_text("clicked")])
    message = agent_framework.read(raw)
    changed = message.evolve(parts=[*message.parts[:2], TextPart("ok")]).raw
    assert [content.type for content in changed.contents] == ["computer_tool_result", "text"]
    assert changed.contents[0] is raw.contents[0]
    with pytest.raises(ConfigurationError, match="computer_tool_result cannot be changed"):
        message.evolve(parts=[ToolResultPart("k1", "gone", raw=raw.contents[0])])


CALL = Content.from_function_call("c1", "look_up", arguments={"a": 1})
SHELL = [Content.from_shell_command_output(**said) for said in ({"stdout": "a.py"}, {"stderr": "no"}, {"exit_code": 1})]
EXIT = '{"type": "shell_command_output", "exit_code": 1, "additional_properties": {}}'
IMAGE = MediaPart("image", "", 30)
NO_ID = Content.from_function_result("", result="18")
NO_CODE = Content.from_code_interpreter_tool_call(call_id="i1")
SEEN = Content("function_result", call_id="c1", result="18", items=[Content.from_text("x"), PICTURE])


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (Content("text"), TextPart("")),
        (Content("text_reasoning"), ReasoningPart("")),
        (PICTURE, IMAGE),
        (Content.from_uri("https://example.com/a.mp3", media_type="audio/mpeg"), MediaPart("audio")),
        (CALL, ToolCallPart("c1", "look_up", '{"a": 1}')),
        (Content.from_function_call("c1", "look_up"), ToolCallPart("c1", "look_up", "")),
        (MCP_CALL, ToolCallPart("m1", "search", '{"q": 1}')),
        (CONTENTS["shell_tool_call"][0], ToolCallPart("s1", "shell_tool_call", '{"commands": ["ls"]}')),
        (CODE, ToolCallPart("i1", "code_interpreter_tool_call", '{"inputs": ["1 + 1"]}')),
        (NO_CODE, ToolCallPart("i1", "code_interpreter_tool_call", '{"inputs": []}')),
        (CLICK, ToolCallPart("k1", "computer_tool_call", '{"actions": [{"type": "click", "x": 1, "y": 2}]}')),
        (Content("function_result", call_id="c1"), ToolResultPart("c1", "")),
        (Content("function_result", call_id="c1", result={"a": 1}), ToolResultPart("c1", '{"a": 1}')),
        (SEEN, ToolResultPart("c1", "18", (IMAGE,))),
        (Content.from_shell_tool_result(call_id="s1", outputs=SHELL), ToolResultPart("s1", f"a.py\nno\n{EXIT}")),
        (Content("mcp_server_tool_result", call_id="m1", output=["found", 7]), ToolResultPart("m1", "found\n7")),
        (NO_ID, OtherPart(json.dumps(NO_ID.to_dict()))),
        ("words", OtherPart("words")),
        (Content.from_function_approval_request("a1", HOSTED), ToolCallPart("a1", "pay", '{"sum": 9}')),
    ],
    ids=lambda each: str(getattr(each, "type", each))[:60],
)
def test_what_is_read(content: Any, part: Any) -> None:
    """A call has its tool's name and its arguments as JSON, a result its text and its media; the rest counts as JSON."""
    raw = Message("assistant", [])
    raw.contents = [content]
    [read] = agent_framework.read(raw).parts
    assert (read, read.raw) == (part, content)


@pytest.mark.parametrize("field", ["hosted", "informational_only"])
def test_a_call_that_nobody_answers_is_no_call(field: str) -> None:
    """A call that the provider runs itself, or that only informs, needs no result."""
    call: Any = Content.from_function_call("c1", "look_up", arguments="{}")
    setattr(call, field, True)
    assert [type(part) for part in agent_framework.read(Message("assistant", [call])).parts] == [OtherPart]
    asked = Content.from_function_approval_request("a1", call)
    read = agent_framework.read(Message("assistant", [asked])).parts
    assert [type(part) for part in read] == [ToolCallPart if field == "hosted" else OtherPart]
    bare = Content("function_approval_request", id="a1")
    assert [type(part) for part in agent_framework.read(Message("assistant", [bare])).parts] == [OtherPart]


@pytest.mark.parametrize(("role", "continues"), [("assistant", True), ("tool", True), ("user", False)])
def test_a_providers_picture_continues_the_answer(role: str, continues: bool) -> None:
    """A message that begins with a provider's own result belongs to the answer before it, but never one of the user."""
    made = CONTENTS["image_generation_tool_result"][0]
    assert agent_framework.read(Message(role, [made])).continues is continues
    assert agent_framework.read(Message(role, [Content.from_text("x"), made])).continues is False
    assert agent_framework.read(Message(role, [])).continues is False


def test_every_change() -> None:
    """Changed contents keep their other fields but not the provider's own object; unchanged ones are the same objects."""
    thought = Content.from_text_reasoning(text="hm", protected_data="sig")
    said = Content("text", text="hello", additional_properties={"x": 1}, raw_representation=object())
    raw = Message("assistant", [thought, said, CALL], raw_representation=object(), additional_properties={"y": 2, "_group": {}})
    message = agent_framework.read(raw)
    parts = [ReasoningPart("h", thought), TextPart("hi", said), ToolCallPart("c1", "look_up", "{}", CALL), TextPart("new")]
    changed = message.evolve(parts=parts).raw
    assert [getattr(each, "text", None) for each in changed.contents] == ["h", "hi", None, "new"]
    assert [each.raw_representation for each in changed.contents] == [None] * 4
    assert (changed.contents[0].protected_data, changed.contents[1].additional_properties) == (None, {"x": 1})
    assert (changed.contents[2].arguments, changed.contents[2].name) == ("{}", "look_up")
    assert (changed.raw_representation, changed.additional_properties) == (None, {"y": 2})
    same = message.evolve(parts=message.parts).raw.contents
    assert [one is other for one, other in zip(same, raw.contents, strict=True)] == [True] * 3
    assert raw.raw_representation is not None


@pytest.mark.parametrize(
    "kind", ["mcp_server_tool_result", "shell_tool_result", "code_interpreter_tool_result", "function_result"]
)
def test_every_changed_result(kind: str) -> None:
    """A shorter result of each tool is read as the new text; pictures in a function's result stay beside it."""
    content = CONTENTS[kind][0]
    changed = agent_framework.read(Message("tool", [content])).evolve(text="short")
    assert changed.text == "short"
    items = changed.raw.contents[0].items
    assert not items
    assert agent_framework.read(Message("tool", [content])).text != "short"  # the original is unchanged
    if kind == "function_result":
        kept = changed.raw.contents[0]
        assert (kept.result, kept.call_id, kept.additional_properties) == ("short", "c1", {"x": 1})
        seen = Content.from_function_result("c1", result=[Content.from_text("long"), PICTURE])
        shorter = agent_framework.read(Message("tool", [seen])).evolve(text="short").raw.contents[0]
        assert ([each.type for each in shorter.items], shorter.items[0].text) == (["text", "data"], "short")


@pytest.mark.parametrize(
    "part",
    [
        MediaPart("image"),
        ReasoningPart("hm"),
        ToolCallPart("c1", "a", "{}"),
        ToolCallPart("s1", "a", "{}", CONTENTS["shell_tool_call"][0]),
        ToolResultPart("c1", "x"),
    ],
    ids=repr,
)
def test_changes_that_are_impossible(part: Any) -> None:
    with pytest.raises(ConfigurationError, match="this format cannot write"):
        agent_framework.read(Message("assistant", ["hi"])).evolve(parts=[part])


def test_a_hosted_call_and_its_result_stay_together() -> None:
    call, result = CONTENTS["mcp_server_tool_call"][0], CONTENTS["mcp_server_tool_result"][0]
    message = agent_framework.read(Message("assistant", [call, result]))
    assert [type(part) for part in message.parts] == [OtherPart, OtherPart]


def test_several_results_in_one_message() -> None:
    calls = [Content.from_function_call(f"c{n}", "look_up", arguments="{}") for n in range(2)]
    results = [Content.from_function_result(f"c{n}", result=str(n)) for n in range(2)]
    messages = [Message("user", ["hi"]), Message("assistant", calls), Message("tool", results), Message("user", ["and?"])]
    index = MessageIndex(messages, format=agent_framework, counter="chars/4")
    assert [len(group.messages) for group in index.included_groups] == [1, 2, 1]
    assert agent_framework.validate(messages) == []
    assert [problem.where for problem in agent_framework.validate(messages[2:])] == ["messages[0]", "messages[0]"]
    assert agent_framework.repair(messages[2:]).messages == messages[3:]


def test_repair_removes_what_has_no_counterpart() -> None:
    """A call without its result and a result without its call leave their message; a late result and a waiting call stay."""
    calls = [Content.from_function_call(f"c{n}", "look_up", arguments="{}") for n in range(3)]
    late = Message("tool", [Content.from_function_result(id, result="late") for id in ("c0", "gone")])
    asked, waits = Message("user", ["and?"]), Message("assistant", [calls[2]])
    done = agent_framework.repair([Message("assistant", calls[:2]), asked, late, asked, waits])
    kept = [[calls[0]], asked.contents, [late.contents[0]], asked.contents, [calls[2]]]
    assert [message.contents for message in done.messages] == kept
    changes = [(change.where, change.rule) for change in done.changes]
    assert changes == [("messages[0]", "call-without-result"), ("messages[2]", "result-without-call")]
    assert done.messages[1] is asked


def test_what_is_no_message() -> None:
    with pytest.raises(InvalidMessage, match=r"messages\[1\].*agent_framework.Message"):
        MessageIndex([Message("user", ["hi"]), {"role": "user"}], format=agent_framework, counter="chars/4")
    for role, contents in ((None, []), ("", []), ("user", None)):
        with pytest.raises(InvalidMessage, match=r"messages\[0\]"):
            agent_framework.read(SimpleNamespace(role=role, contents=contents))
