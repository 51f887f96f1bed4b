"""LangChain's messages as a wire format: each kind of message, block and change."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from compaction import MessageIndex
from compaction.errors import ConfigurationError, InvalidMessage
from compaction.integrations.langchain import langchain
from compaction.messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

PNG = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
CALL: dict[str, Any] = {"name": "look_up", "args": {"a": 1}, "id": "c1", "type": "tool_call"}
OTHER: dict[str, Any] = {"name": "look_up", "args": {}, "id": "c2", "type": "tool_call"}
LINK = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MESSAGES: dict[str, tuple[Any, list[type]]] = {
    "text": (HumanMessage("hello", id="1", name="Kim"), [TextPart]),
    "blocks": (HumanMessage([{"type": "text", "text": "look"}, LINK]), [TextPart, MediaPart]),
    "system": (SystemMessage("rules"), [TextPart]),
    "calls": (AIMessage("", tool_calls=[CALL, OTHER]), [ToolCallPart, ToolCallPart]),
    "thinking": (AIMessage([THOUGHT, {"type": "text", "text": "x"}]), [ReasoningPart, TextPart]),
    "result": (ToolMessage("18", tool_call_id="c1", artifact={"raw": 18}), [ToolResultPart]),
}


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_every_kind_of_message_is_kept_whole(kind: str) -> None:
    """Each message is read as its kind, written as the same object, and survives JSON."""
    raw, parts = MESSAGES[kind]
    message: Message = langchain.read(raw)
    assert [type(part) for part in message.parts] == parts
    assert message.raw is raw
    assert langchain.from_wire(json.loads(json.dumps(langchain.to_wire(raw)))) == raw
    assert None not in langchain.to_wire(raw)["data"].values()


def test_a_changed_result_keeps_the_rest() -> None:
    raw = ToolMessage("long " * 50, tool_call_id="c1", id="7", artifact={"raw": 18})
    changed = langchain.read(raw).evolve(text="short").raw
    assert (changed.content, changed.tool_call_id, changed.id, changed.artifact) == ("short", "c1", "7", {"raw": 18})
    assert raw.content == "long " * 50


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("hi", TextPart("hi")),
        ({"type": "text", "text": "hi"}, TextPart("hi")),
        ({"type": "text"}, OtherPart('{"type": "text"}')),
        (7, OtherPart("7")),
        ({"type": "reasoning", "reasoning": "hm"}, ReasoningPart("hm")),
        ({"type": "thinking", "thinking": "hm"}, ReasoningPart("hm")),
        ({"type": "reasoning_content", "text": "hm"}, ReasoningPart("hm")),
        (PNG, MediaPart("image", "", 12)),
        ({"type": "audio", "data": "abcd"}, MediaPart("audio", "", 4)),
        ({"type": "document", "source": {"type": "base64", "data": "abc"}}, MediaPart("file", "", 3)),
        ({"type": "image_url", "image_url": "https://example.com/a.png"}, MediaPart("image")),
        ({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}, MediaPart("image", "low")),
        ({"type": "image_url", "image_url": {"url": "data:,abc"}}, MediaPart("image", "", 9)),
        ({"type": "tool_use", "id": "c1", "input": {"a": 1}}, OtherPart("")),
        ({"type": "unheard_of", "a": 1}, OtherPart('{"type": "unheard_of", "a": 1}')),
    ],
    ids=str,
)
def test_every_block(block: Any, part: Part) -> None:
    """A block is read as its kind, with the size of its own data, and an unknown one as JSON text; in a result too."""
    [read] = langchain.read(AIMessage.model_construct(content=[block], type="ai")).parts
    assert (read, read.raw) == (part, block)
    [result] = langchain.read(ToolMessage.model_construct(content=[block], type="tool", tool_call_id="c1")).parts
    media = (part,) if isinstance(part, MediaPart) else ()
    assert result == ToolResultPart("c1", "" if isinstance(part, MediaPart) else part.text, media)  # type: ignore[union-attr]


def test_roles() -> None:
    """Each kind of message has a role, a chat message its own; a function's result answers the function's name."""
    kinds = [ChatMessage("a", role="critic"), ChatMessage("a", role="developer"), FunctionMessage("18", name="look_up")]
    assert [langchain.read(raw).role for raw in kinds] == ["critic", "developer", "tool"]
    assert langchain.read(kinds[2]).parts == (ToolResultPart("function:look_up", "18"),)
    types = {"user": "human", "assistant": "ai", "system": "system", "developer": "system", "other": "human"}
    assert {role: langchain.new(role, "a").raw.type for role in types} == types
    assert langchain.read(HumanMessage("hello", name="Kim")).name == "Kim"
    assert langchain.read(AIMessage("")).parts == ()


@pytest.mark.parametrize("raw", [{"role": "user"}, RemoveMessage("1"), HumanMessage.model_construct(content=None)], ids=repr)
def test_what_is_no_message(raw: Any) -> None:
    with pytest.raises(InvalidMessage, match=r"messages\[0\].*pass LangChain messages"):
        langchain.read(raw)
    with pytest.raises(InvalidMessage, match=r"messages\[1\]"):
        MessageIndex([HumanMessage("hi"), raw], format=langchain, counter="chars/4")


def answer() -> AIMessage:
    """Return an answer with every kind of part, whose calls are in its content too."""
    blocks: list[Any] = [
        "first",
        {"type": "text", "text": "second", "index": 1},
        PNG,
        {"type": "tool_use", "id": "c1", "name": "look_up", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "look_up", "input": {}},
        {"type": "unheard_of", "id": "c2"},
    ]
    return AIMessage(blocks, id="7", tool_calls=[CALL, OTHER], additional_kwargs={"reasoning_content": "hm", "x": 1})


def test_a_call_that_leaves_takes_its_block_along() -> None:
    """The block that repeats a dropped call leaves with it; all other blocks, calls and fields stay the same objects."""
    raw = answer()
    message = langchain.read(raw)
    assert isinstance(message.parts[0], ReasoningPart)
    kept = [part for part in message.parts if not (isinstance(part, ToolCallPart) and part.id == "c2")]
    changed = message.evolve(parts=kept).raw
    assert changed.content == [*raw.content[:4], raw.content[5]]
    assert (changed.tool_calls, changed.id, changed.additional_kwargs) == ([CALL], "7", raw.additional_kwargs)
    plain = message.evolve(parts=[part for part in kept if not isinstance(part, ReasoningPart)]).raw
    assert plain.additional_kwargs == {"x": 1}
    shorter = message.evolve(parts=[attrs.evolve(kept[0], text="h"), *kept[1:]]).raw
    assert shorter.additional_kwargs == {"x": 1, "reasoning_content": "h"}
    same = message.evolve(parts=message.parts).raw
    assert (same.content, same.tool_calls, same.additional_kwargs) == (raw.content, raw.tool_calls, raw.additional_kwargs)
    assert [one is other for one, other in zip(same.tool_calls, raw.tool_calls, strict=True)] == [True] * 2
    assert raw == answer()


def test_changed_texts_and_calls() -> None:
    """A changed text keeps the fields of its block, a call gets other arguments, and a text alone stays a string."""
    message = langchain.read(answer())
    first, second, picture, *others = message.parts[1:]
    calls = [ToolCallPart("c1", "look_up", '{"b": 2}', raw=CALL), ToolCallPart("c2", "look_up", "", raw=None)]
    assert isinstance(second, TextPart)
    parts = [TextPart("new"), TextPart("short", raw=second.raw), picture, *others[:-2], *calls]
    changed = message.evolve(parts=parts).raw
    assert changed.content[:2] == [{"type": "text", "text": "new"}, {"type": "text", "text": "short", "index": 1}]
    assert changed.tool_calls == [{**CALL, "args": {"b": 2}}, OTHER]
    assert first.raw == "first"
    text = langchain.read(AIMessage("two words", tool_calls=[CALL]))
    assert text.evolve(text="one").raw.content == "one"
    assert text.evolve(parts=[TextPart("a"), TextPart("b"), *text.parts]).raw.content == "a\nb\ntwo words"
    assert langchain.read(AIMessage("two words")).evolve(parts=[]).raw.content == ""


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([MediaPart("image")], "this format cannot write MediaPart"),
        ([ToolCallPart("c1", "look_up", "no JSON")], "arguments are a JSON object"),
    ],
)
def test_changes_that_are_impossible(parts: list[Part], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        langchain.read(AIMessage("", tool_calls=[CALL])).evolve(parts=parts)


def test_a_result_is_one_part() -> None:
    """A shorter result keeps its media; several parts, or the result of another call, are refused."""
    message = langchain.read(ToolMessage([{"type": "text", "text": "long"}, PNG], tool_call_id="c1"))
    [result] = message.parts
    assert isinstance(result, ToolResultPart)
    for text, texts in (("short", [{"type": "text", "text": "short"}]), ("", [])):
        changed = message.evolve(parts=[ToolResultPart("c1", text, result.media)]).raw
        assert changed.content == [*texts, PNG]
    assert message.evolve(parts=[ToolResultPart("c1", "short")]).raw.content == "short"
    for parts in ([result, result], [], [TextPart("short")], [ToolResultPart("c2", "short")]):
        with pytest.raises(ConfigurationError, match="exactly one ToolResultPart"):
            message.evolve(parts=parts)
