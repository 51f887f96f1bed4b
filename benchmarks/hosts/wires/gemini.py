"""Gemini generateContent, in one piece or streamed."""

from __future__ import annotations

from typing import Any

from ..script import Asked, Reply, Step
from .base import Body, characters, item_of, pieces, server_events


class Gemini:
    """The generateContent API."""

    name = "gemini"
    stream_type = "text/event-stream"

    def read(self, path: str, body: Body) -> Asked:
        contents = body["contents"]
        tools = body.get("tools") or []
        config = body.get("generationConfig") or {}
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        instruction = body.get("systemInstruction") or body.get("system_instruction") or {}
        return Asked(
            model=path.rpartition("/")[2].partition(":")[0],
            messages=contents,
            steps=[_step(content) for content in contents],
            tools=[
                each["name"] for tool in tools for each in _field(tool, "functionDeclarations", "function_declarations") or ()
            ],
            characters=characters([contents, instruction, tools, schema or {}]),
            schema=schema,
            stream="streamGenerateContent" in path,
        )

    def write(self, asked: Asked, reply: Reply) -> Body:
        return _response(asked, reply, _parts(reply), last=True)

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        parts = _parts(reply) if reply.calls else [{"text": piece} for piece in pieces(reply.text)]
        groups = [parts] if reply.calls else [[part] for part in parts]
        chunks = [_response(asked, reply, each, last=at == len(groups) - 1) for at, each in enumerate(groups)]
        return server_events(chunks, named=False)

    def too_long(self, tokens: int, window: int) -> Body:
        return self.invalid(f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).")

    def invalid(self, why: str) -> Body:
        return {"error": {"code": 400, "message": why, "status": "INVALID_ARGUMENT"}}


def _field(part: dict[str, Any], *spellings: str) -> Any:
    return next((part[name] for name in spellings if part.get(name) is not None), None)


def _step(content: dict[str, Any]) -> Step:
    parts = content.get("parts") or []
    text = " ".join(str(part["text"]) for part in parts if part.get("text") is not None)
    if content.get("role") == "model":
        calls = [_field(part, "functionCall", "function_call") for part in parts]
        items = tuple(item_of(call.get("args")) for call in calls if call)
        return Step("calls" if items else "assistant", text, items)
    if any(_field(part, "functionResponse", "function_response") for part in parts):
        return Step("results", text)
    return Step("user", text)


def _parts(reply: Reply) -> list[Body]:
    if not reply.calls:
        return [{"text": reply.text}]
    parts: list[Body] = [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in reply.calls]
    if reply.signature:
        parts[0]["thoughtSignature"] = reply.signature
    return parts


def _response(asked: Asked, reply: Reply, parts: list[Body], *, last: bool) -> Body:
    candidate: Body = {"index": 0, "content": {"role": "model", "parts": parts}}
    if last:
        candidate["finishReason"] = "STOP"
    usage = {
        "promptTokenCount": reply.prompt_tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "candidatesTokenCount": reply.completion_tokens,
        "totalTokenCount": reply.prompt_tokens + reply.completion_tokens,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": asked.model, "responseId": reply.id}
