"""Amazon Bedrock Converse, in one piece or as its binary event stream."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote
from zlib import crc32

from ..script import Asked, Reply, Step
from .base import Body, characters, item_of, pieces


class Bedrock:
    """The Converse API."""

    name = "bedrock"
    stream_type = "application/vnd.amazon.eventstream"

    def read(self, path: str, body: Body) -> Asked:
        tools = (body.get("toolConfig") or {}).get("tools") or []
        return Asked(
            model=unquote(path.rpartition("/model/")[2].partition("/")[0]),
            messages=body["messages"],
            steps=[_step(message) for message in body["messages"]],
            tools=[tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool],
            characters=characters([body["messages"], body.get("system") or [], tools]),
            stream=path.endswith("/converse-stream"),
        )

    def write(self, asked: Asked, reply: Reply) -> Body:
        blocks = [_use(call) for call in reply.calls] or [{"text": reply.text}]
        message = {"role": "assistant", "content": blocks}
        return {"output": {"message": message}, "stopReason": _stop(reply), "usage": _usage(reply), "metrics": {"latencyMs": 1}}

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        return b"".join(_frame(name, payload) for name, payload in _events(reply))

    def too_long(self, tokens: int, window: int) -> Body:
        return self.invalid(f"The model returned the following errors: prompt is too long: {tokens} tokens > {window} maximum")

    def invalid(self, why: str) -> Body:
        return {"__type": "ValidationException", "message": why}


def _step(message: dict[str, Any]) -> Step:
    blocks = message.get("content") or []
    text = " ".join(str(block["text"]) for block in blocks if "text" in block)
    if message.get("role") == "assistant":
        items = tuple(item_of(block["toolUse"].get("input")) for block in blocks if "toolUse" in block)
        return Step("calls" if items else "assistant", text, items)
    return Step("results" if any("toolResult" in block for block in blocks) else "user", text)


def _use(call: Any) -> Body:
    return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}}


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _usage(reply: Reply) -> Body:
    fresh = reply.prompt_tokens - reply.cached_tokens
    total = reply.prompt_tokens + reply.completion_tokens
    tokens = {"inputTokens": fresh, "outputTokens": reply.completion_tokens, "totalTokens": total}
    return {**tokens, "cacheReadInputTokens": reply.cached_tokens, "cacheWriteInputTokens": 0}


def _events(reply: Reply) -> Iterator[tuple[str, Body]]:
    yield "messageStart", {"role": "assistant"}
    for place, call in enumerate(reply.calls):
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        yield "contentBlockStart", {"contentBlockIndex": place, "start": start}
        for piece in pieces(json.dumps(call.arguments), 20):
            yield "contentBlockDelta", {"contentBlockIndex": place, "delta": {"toolUse": {"input": piece}}}
        yield "contentBlockStop", {"contentBlockIndex": place}
    for piece in pieces(reply.text):
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}
    if reply.text:
        yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "messageStop", {"stopReason": _stop(reply)}
    yield "metadata", {"usage": _usage(reply), "metrics": {"latencyMs": 1}}


def _frame(name: str, payload: Body) -> bytes:
    """Return an event in Amazon's framing: lengths, a checksum, headers, the payload, a checksum."""
    body = json.dumps(payload).encode()
    fields = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_header(key, value) for key, value in fields.items())
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    frame = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return frame + struct.pack("!I", crc32(frame))


def _header(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
