"""A model's answer, whole or streamed: its messages, in the APIs in which the gateway answers calls itself, and its usage."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from compaction.formats import ANTHROPIC_API, CHAT_API, GEMINI_API, RESPONSES_API, StreamedUsage
from compaction.messages import ToolCallPart
from compaction.tokens import Usage


def events_of(*parts: Any) -> bytes:
    """A stream of server-sent events, as some servers write it."""
    return b"".join(b"event: x\ndata:" + json.dumps(part).encode() + b"\r\n\r\n" for part in parts) + b"data: [DONE]\n"


def piece(place: int, *, id: str | None = None, **function: str | None) -> dict[str, Any]:
    """A part of a call in chat completions."""
    return {"choices": [{"delta": {"tool_calls": [{"index": place, "id": id, "function": function or None}]}}]}


CHAT = events_of(
    {"choices": None},
    {"choices": [{"index": 1, "delta": {"content": "another"}}, {"index": 0, "delta": {"role": "assistant", "content": None}}]},
    {"choices": [{"delta": {"content": "Let "}}]},
    {"choices": [{"delta": {"content": "me"}}, {"delta": None}]},
    piece(1, id="b", name="look", arguments="{}"),
    piece(0, id="a", name="compaction_grep", arguments=None),
    piece(0, arguments='{"query": '),
    piece(0, arguments='"x"}'),
    piece(0),
    {"choices": [], "usage": {}},
)
GREP, LOOK = ("a", "compaction_grep", '{"query": "x"}'), ("b", "look", "{}")


def begins(place: int, **block: Any) -> dict[str, Any]:
    """The event that begins a block of an answer of Anthropic."""
    return {"type": "content_block_start", "index": place, "content_block": block}


def grows(place: int, kind: str, **piece: Any) -> dict[str, Any]:
    """The event with a piece of a block."""
    return {"type": "content_block_delta", "index": place, "delta": {"type": kind, **piece}}


def use(id: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "look", "input": input}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


CLAUDE = events_of(
    {"type": "message_start", "message": {}},
    begins(1, **use("a")),
    begins(0, type="thinking", thinking="", signature=""),
    grows(0, "thinking_delta", thinking="so"),
    grows(0, "signature_delta", signature="s1"),
    grows(1, "input_json_delta", partial_json='{"a":'),
    grows(1, "input_json_delta", partial_json="1}"),
    begins(2, **use("b")),
    grows(2, "input_json_delta", partial_json=""),
    {"type": "content_block_stop", "index": 2},
)
CITES = [grows(0, "citations_delta", citation=each) for each in ({"a": 1}, {"b": 2})]
CITED = events_of(begins(0, type="text", text="", citations=None), CITES[0], grows(0, "text_delta", text="so"), CITES[1])
CALLS = [{"id": id, "type": "function", "function": {"name": name, "arguments": text}} for id, name, text in (LOOK, GREP)]
THOUGHT = {"type": "thinking", "thinking": "so", "signature": "s1"}
SAYS = {"role": "assistant", "content": "hi"}
APIS = {api.name: api for api in (ANTHROPIC_API, CHAT_API, RESPONSES_API)}
ITEM = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
OUTPUTS = {"response.created": [], "response.completed": [ITEM]}
ITEMS = events_of(*({"type": kind, "response": {"output": output}} for kind, output in OUTPUTS.items()))


@pytest.mark.parametrize(
    ("name", "answer", "message", "calls"),
    [
        ("chat", CHAT, {"role": "assistant", "content": "Let me", "tool_calls": CALLS}, [LOOK, GREP]),
        ("chat", {"choices": [{"index": 1}, {"message": {**SAYS, "tool_calls": None}}]}, SAYS, []),
        ("chat", events_of(), {"role": "assistant", "content": ""}, []),
        ("chat", events_of({"choices": [{"delta": {"content": "hi"}}]}), SAYS, []),
        ("responses", {"object": "response", "output": [ITEM]}, ITEM, [("a", "look", "{}")]),
        ("responses", ITEMS, ITEM, [("a", "look", "{}")]),
        ("responses", events_of({"type": "response.failed", "response": {"output": []}}), ..., []),
        ("messages", {"content": [{"type": "text", "text": "hi"}]}, said({"type": "text", "text": "hi"}), []),
        ("messages", CLAUDE, said(THOUGHT, use("a", a=1), use("b")), [("a", "look", '{"a": 1}'), ("b", "look", "{}")]),
        ("messages", events_of(), said(), []),
        ("messages", CITED, said({"type": "text", "text": "so", "citations": [{"a": 1}, {"b": 2}]}), []),
    ],
)
def test_what_an_answer_says(name: str, answer: Any, message: Any, calls: list[Any]) -> None:
    """The messages and calls of an answer, whole or streamed, with gaps, other choices and unknown events."""
    is_stream = isinstance(answer, bytes)
    kind = "Text/Event-Stream; charset=utf-8" if is_stream else "application/json"
    api = APIS[name]
    found = api.messages_of(answer if is_stream else json.dumps(answer).encode(), kind)
    called = [part for raw in found for part in api.format.read(raw).parts if isinstance(part, ToolCallPart)]
    assert found == ([] if message is ... else [message])
    assert [(call.id, call.name, call.arguments) for call in called] == calls


def test_answers_of_other_apis_are_not_read() -> None:
    """The gateway offers no tools of its own there."""
    assert (GEMINI_API.tool, GEMINI_API.messages_of(b"{}", "application/json")) == (None, [])


ANTHROPIC: list[Any] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 900, "cache_read_input_tokens": 0, "output_tokens": 1}}},
    {"type": "content_block_delta"},
    {"type": "message_delta", "usage": {"input_tokens": 0, "output_tokens": 40}},
]
STREAMS: dict[str, list[Any]] = {
    "chat": [{"usage": None}, {"usage": {"prompt_tokens": 900, "completion_tokens": 40}}],
    "Responses": [{"response": {"usage": {"input_tokens": 900, "output_tokens": 40}}}],
    "Anthropic": ANTHROPIC,
    "Gemini": [{"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": each}} for each in (1, 40)],
    "google-genai": [{"usage_metadata": {"prompt_token_count": 900, "candidates_token_count": 40}}],
}


def told(*events: Any) -> Usage | None:
    usage = StreamedUsage()
    for event in events:
        usage.add(event)
    return usage.read()


@pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS)
def test_usage_of_every_stream(events: list[Any]) -> None:
    """The figures of all events are merged, and a later zero does not replace a figure, from mappings, objects or lines."""
    lines = [f"data: {json.dumps(event)}\n" for event in events]
    objects = [SimpleNamespace(**event) for event in events]
    assert told(*events) == told(*objects) == told(*lines) == Usage(900, 40)


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("kind", [bytes, str])
def test_bytes_cut_anywhere(step: int, kind: Any) -> None:
    """A line may arrive in pieces, the last one without its end. One that is not JSON, or is nested too deep, is skipped."""
    lines = [f"data:{json.dumps(event)}\n" for event in ANTHROPIC]
    odd = ['event: x "usage"\n', 'data: "usage" no JSON\n', 'data: {"usage": ' + "[" * 5_000 + "\n", "data: [DONE]\n"]
    data = "".join([*lines, *odd, 'data: {"usage": {"output_tokens": 99}}'])
    cut = [data[place : place + step] for place in range(0, len(data), step)]
    assert told(*cut if kind is str else map(str.encode, cut)) == Usage(900, 99)
