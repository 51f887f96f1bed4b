"""Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..script import Asked, Reply, Step, thought_of
from .base import Body, characters, item_of, pieces, server_events


class Anthropic:
    """The Messages API."""

    name = "anthropic"
    stream_type = "text/event-stream"

    def read(self, path: str, body: Body) -> Asked:
        shape = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        return Asked(
            model=body["model"],
            messages=body["messages"],
            steps=[_step(message) for message in body["messages"]],
            tools=[tool["name"] for tool in body.get("tools") or ()],
            characters=characters([body["messages"], body.get("system") or "", body.get("tools") or [], shape]),
            schema=shape.get("schema"),
            stream=bool(body.get("stream")),
        )

    def write(self, asked: Asked, reply: Reply) -> Body:
        stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
        return {**_frame(asked, reply), "content": _blocks(reply), **stop, "usage": _usage(reply)}

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        return server_events(_events(self.write(asked, reply)), named=True)

    def too_long(self, tokens: int, window: int) -> Body:
        return self.invalid(f"prompt is too long: {tokens} tokens > {window} maximum")

    def invalid(self, why: str) -> Body:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": why}, "request_id": "req_1"}


def _step(message: dict[str, Any]) -> Step:
    content = message.get("content")
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    text = " ".join(str(block["text"]) for block in blocks if block.get("type") == "text")
    if message.get("role") == "assistant":
        items = tuple(item_of(block.get("input")) for block in blocks if block.get("type") == "tool_use")
        return Step("calls" if items else "assistant", text, items)
    if any(block.get("type") == "tool_result" for block in blocks):
        return Step("results", text)
    return Step("user" if message.get("role") == "user" else "system", text)


def _frame(asked: Asked, reply: Reply) -> Body:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": asked.model}


def _blocks(reply: Reply) -> list[Body]:
    if not reply.calls:
        native: list[Body] = [{"type": "compaction", "content": reply.native}] if reply.native else []
        return [*native, {"type": "text", "text": reply.text}]
    thought: Body = {"type": "thinking", "thinking": thought_of(reply.signature), "signature": reply.signature}
    calls: list[Body] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.calls
    ]
    return [thought, *calls] if reply.signature else calls


def _usage(reply: Reply) -> Body:
    fresh = reply.prompt_tokens - reply.cached_tokens
    cache = {"cache_read_input_tokens": reply.cached_tokens, "cache_creation_input_tokens": 0}
    return {"input_tokens": fresh, **cache, "output_tokens": reply.completion_tokens}


def _events(message: Body) -> Iterator[Body]:
    started = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": started}
    for place, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        yield {"type": "content_block_start", "index": place, "content_block": {**block, **empty}}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _pieces(block: Body) -> tuple[Body, list[Body]]:
    """Return the fields of a block that are empty at its start, and the events that fill them."""
    if block["type"] == "text":
        return {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"thinking": "", "signature": ""}, [*thoughts, signed]
    written = pieces(json.dumps(block["input"]), 20)
    return {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]
