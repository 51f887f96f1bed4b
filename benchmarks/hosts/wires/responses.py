"""OpenAI Responses without stored conversations, so that every request has all its items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..script import Asked, Reply, Step
from .base import Body, characters, item_of, pieces, server_events
from .chat import openai_error, openai_too_long


class Responses:
    """The Responses API without stored conversations."""

    name = "openai-responses"
    stream_type = "text/event-stream"

    def read(self, path: str, body: Body) -> Asked:
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        start = next((at for at, each in enumerate(items) if each.get("role") not in ("system", "developer")), len(items))
        shape = (body.get("text") or {}).get("format") or {}
        instructions = body.get("instructions") or ""
        return Asked(
            model=body["model"],
            messages=items[start:],
            steps=_steps(items),
            tools=[tool["name"] for tool in body.get("tools") or () if "name" in tool],
            characters=characters([items, instructions, body.get("tools") or [], shape]),
            schema=shape.get("schema"),
            stream=bool(body.get("stream")),
        )

    def write(self, asked: Asked, reply: Reply) -> Body:
        return _response(asked, reply, _output(reply), "completed")

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        numbered = ({**event, "sequence_number": number} for number, event in enumerate(_events(asked, reply)))
        return server_events(numbered, named=True)

    def too_long(self, tokens: int, window: int) -> Body:
        return openai_too_long(tokens, window, "input")

    def invalid(self, why: str) -> Body:
        return openai_error(why, param="input")


def _steps(items: list[dict[str, Any]]) -> list[Step]:
    """Return the items as steps; adjacent calls are one step."""
    steps: list[Step] = []
    for item in items:
        step = _step(item)
        if step is None:
            continue
        if steps and step.kind == steps[-1].kind == "calls":
            steps[-1] = Step("calls", "", (*steps[-1].items, *step.items))
        else:
            steps.append(step)
    return steps


def _step(item: dict[str, Any]) -> Step | None:
    kind = item.get("type") or "message"
    if kind == "function_call":
        return Step("calls", "", (item_of(item.get("arguments")),))
    if kind == "function_call_output":
        return Step("results", _text(item.get("output")))
    if kind != "message":
        return None
    role = item.get("role")
    known: Any = {"user": "user", "assistant": "assistant"}
    return Step(known.get(role, "system"), _text(item.get("content")))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content or ())


def _output(reply: Reply) -> list[Body]:
    if reply.calls:
        thought: Body = {"type": "reasoning", "id": f"rs_{reply.id}", "summary": [], "encrypted_content": reply.signature}
        calls: list[Body] = [
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
            for call in reply.calls
        ]
        return [thought, *calls] if reply.signature else calls
    part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
    message: Body = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": "completed", "content": [part]}
    native: Body = {"type": "compaction", "id": f"cmp_{reply.id}", "encrypted_content": reply.native}
    return [native, message] if reply.native else [message]


def _response(asked: Asked, reply: Reply, output: list[Body], status: str) -> Body:
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 1,
        "model": asked.model,
        "status": status,
        "output": output,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage if status == "completed" else None,
    }


def _events(asked: Asked, reply: Reply) -> Iterator[Body]:
    started = _response(asked, reply, [], "in_progress")
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    output = _output(reply)
    for place, item in enumerate(output):
        yield from _item_events(item, place)
    yield {"type": "response.completed", "response": _response(asked, reply, output, "completed")}


def _item_events(item: Body, place: int) -> Iterator[Body]:
    where = {"item_id": item["id"], "output_index": place}
    if item["type"] == "reasoning":
        yield {"type": "response.output_item.added", "output_index": place, "item": item}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
        return
    empty = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
    yield {"type": "response.output_item.added", "output_index": place, "item": {**item, **empty, "status": "in_progress"}}
    if item["type"] == "function_call":
        for piece in pieces(item["arguments"], 20):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}
    else:
        part = item["content"][0]
        within = {**where, "content_index": 0}
        yield {"type": "response.content_part.added", **within, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **within, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **within, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **within, "part": part}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}
