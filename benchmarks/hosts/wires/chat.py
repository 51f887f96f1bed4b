"""OpenAI chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..script import Asked, Reply, Step
from .base import Body, characters, item_of, pieces, server_events


def openai_error(message: str, *, code: str | None = None, param: str | None = None) -> Body:
    """Return an error in OpenAI's form."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def openai_too_long(tokens: int, window: int, param: str) -> Body:
    """Return OpenAI's length error."""
    says = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return openai_error(f"{says} Please reduce the length of the messages.", code="context_length_exceeded", param=param)


class Chat:
    """Chat completions."""

    name = "openai-chat"
    stream_type = "text/event-stream"

    def read(self, path: str, body: Body) -> Asked:
        messages = body["messages"]
        start = next((at for at, each in enumerate(messages) if each.get("role") not in ("system", "developer")), len(messages))
        shape = (body.get("response_format") or {}).get("json_schema")
        return Asked(
            model=body["model"],
            messages=messages[start:],
            steps=[_step(message) for message in messages],
            tools=[tool["function"]["name"] for tool in body.get("tools") or ()],
            characters=characters([messages, body.get("tools") or [], shape or {}]),
            schema=shape and shape["schema"],
            stream=bool(body.get("stream")),
            include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        )

    def write(self, asked: Asked, reply: Reply) -> Body:
        choice = {"index": 0, "finish_reason": _finish(reply), "logprobs": None, "message": _message(reply)}
        return {**_frame(asked, reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        return server_events(_chunks(asked, reply), named=False) + b"data: [DONE]\n\n"

    def too_long(self, tokens: int, window: int) -> Body:
        return openai_too_long(tokens, window, "messages")

    def invalid(self, why: str) -> Body:
        return openai_error(why, param="messages")


def _step(message: dict[str, Any]) -> Step:
    role, content = message.get("role"), message.get("content")
    text = content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content or ())
    if role == "assistant":
        calls = message.get("tool_calls") or ()
        return Step("calls" if calls else "assistant", text, tuple(item_of(call["function"]["arguments"]) for call in calls))
    if role in ("tool", "function"):
        return Step("results", text)
    return Step("user" if role == "user" else "system", text)


def _message(reply: Reply) -> Body:
    if not reply.calls:
        return {"role": "assistant", "content": reply.text, "refusal": None}
    return {"role": "assistant", "content": None, "refusal": None, "tool_calls": [_call(call) for call in reply.calls]}


def _call(call: Any) -> Body:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _frame(asked: Asked, reply: Reply, kind: str) -> Body:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 1, "model": asked.model}


def _usage(reply: Reply) -> Body:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def _chunks(asked: Asked, reply: Reply) -> Iterator[Body]:
    frame = {**_frame(asked, reply, "chat.completion.chunk"), **({"usage": None} if asked.include_usage else {})}

    def chunk(delta: Body, finish: str | None = None) -> Body:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": None if reply.calls else ""})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    for number, call in enumerate(reply.calls):
        whole = _call(call)
        arguments = whole["function"]["arguments"]
        start = {**whole, "index": number, "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [start]})
        for piece in pieces(arguments, 20):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    if asked.include_usage:
        yield {**frame, "choices": [], "usage": _usage(reply)}
