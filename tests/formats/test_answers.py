"""The messages in a model's answer, whole or streamed, in the APIs in which the gateway answers calls itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.formats import ANTHROPIC_API, CHAT_API, GEMINI_API, RESPONSES_API
from compaction.messages import ToolCallPart


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
CLAUDE = events_of(
    {"type": "message_start", "message": {}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "b", "name": "look", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_stop", "index": 2},
)
CITED = events_of(
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": None}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "so"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"b": 2}}},
)
THOUGHT = {"type": "thinking", "thinking": "so", "signature": "s1"}
SAYS = {"role": "assistant", "content": "hi"}
APIS = {api.name: api for api in (ANTHROPIC_API, CHAT_API, RESPONSES_API)}
ITEM = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}


@pytest.mark.parametrize(
    ("name", "answer", "said", "calls"),
    [
        (
            "chat",
            CHAT,
            {
                "role": "assistant",
                "content": "Let me",
                "tool_calls": [
                    {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for id, name, arguments in (LOOK, GREP)
                ],
            },
            [LOOK, GREP],
        ),
        ("chat", {"choices": [{"index": 1}, {"message": {**SAYS, "tool_calls": None}}]}, SAYS, []),
        ("chat", events_of(), {"role": "assistant", "content": ""}, []),
        ("chat", events_of({"choices": [{"delta": {"content": "hi"}}]}), SAYS, []),
        ("responses", {"object": "response", "output": [ITEM]}, ITEM, [("a", "look", "{}")]),
        (
            "responses",
            events_of(
                {"type": "response.created", "response": {"output": []}},
                {"type": "response.completed", "response": {"output": [ITEM]}},
            ),
            ITEM,
            [("a", "look", "{}")],
        ),
        ("responses", events_of({"type": "response.failed", "response": {"output": []}}), ..., []),
        (
            "messages",
            {"content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
            [],
        ),
        (
            "messages",
            CLAUDE,
            {
                "role": "assistant",
                "content": [
                    THOUGHT,
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"a": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
                ],
            },
            [("a", "look", '{"a": 1}'), ("b", "look", "{}")],
        ),
        ("messages", events_of(), {"role": "assistant", "content": []}, []),
        (
            "messages",
            CITED,
            {"role": "assistant", "content": [{"type": "text", "text": "so", "citations": [{"a": 1}, {"b": 2}]}]},
            [],
        ),
    ],
)
def test_what_an_answer_says(name: str, answer: Any, said: Any, calls: list[Any]) -> None:
    """The messages and calls of an answer, whole or streamed, with gaps, other choices and unknown events."""
    is_stream = isinstance(answer, bytes)
    kind = "Text/Event-Stream; charset=utf-8" if is_stream else "application/json"
    api = APIS[name]
    found = api.messages_of(answer if is_stream else json.dumps(answer).encode(), kind)
    called = [part for message in found for part in api.format.read(message).parts if isinstance(part, ToolCallPart)]
    assert found == ([] if said is ... else [said])
    assert [(call.id, call.name, call.arguments) for call in called] == calls


def test_answers_of_other_apis_are_not_read() -> None:
    """The gateway offers no tools of its own there."""
    assert (GEMINI_API.tool, GEMINI_API.messages_of(b"{}", "application/json")) == (None, [])
