"""A server on loopback for OpenAI's chat completions that fails as its script says.

::

    with FaultServer(status(503), reply("## Goal ...")) as server:
        client = OpenAI(base_url=server.url, api_key="none")

Each request gets the next answer of the script; the last answer is repeated. ``server.requests`` contains the requests.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .scripted_server import Answer, Got, Handler, ScriptedUpstream, answer


class FaultServer(ScriptedUpstream):
    """A running server. Holds state: its script, its requests so far, and an event set by the first request."""

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    @property
    def requests(self) -> list[Any]:
        return [got.json for got in self.got]

    @property
    def prompts(self) -> list[str]:
        """The last message of each request so far."""
        return [text_of(request) for request in self.requests]


def reply(text: str | None, *, finish: str | None = "stop", refusal: str | None = None, usage: Any = ...) -> Answer:
    """A completion; by default its usage is one token for every four characters."""

    def give(handler: Handler, got: Got) -> None:
        completion = _completion(got.json, {"role": "assistant", "content": text, "refusal": refusal}, finish)
        if usage is not ...:
            completion["usage"] = usage
        answer(200, completion)(handler, got)

    return give


def compacted(*beside: dict[str, Any], content: str | None = None) -> Answer:
    """The answer of ``/responses/compact`` as OpenAI's reference shows it: the user's messages, then one compaction item.

    Its id and content depend on the request; ``content`` replaces the content, and ``beside`` are further items.
    """

    def give(handler: Handler, got: Got) -> None:
        assert got.path == "/v1/responses/compact", got.path
        request = got.json
        digest = hashlib.sha256(json.dumps(request["input"]).encode()).hexdigest()[:12]
        said = [item for item in request["input"] if item.get("role") == "user"]
        users = [
            {**item, "type": "message", "content": [{"type": "input_text", "text": item["content"]}]}
            for item in said
            if isinstance(item["content"], str)
        ]
        secret = f"gAAAAA{digest}" if content is None else content
        item = {"id": f"cmp_{digest}", "type": "compaction", "encrypted_content": secret}
        usage = {"input_tokens": 42897, "input_tokens_details": {"cached_tokens": 12000}, "output_tokens": 12000}
        details = {"output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 54897}
        output = [*users, *beside, item]
        answered = {"id": "resp_001", "object": "response.compaction", "created_at": 1731459200, "output": output}
        answer(200, {**answered, "usage": {**usage, **details}})(handler, got)

    return give


def body(content: Any) -> Answer:
    return answer(200, content)


def raw(content: bytes, *, content_type: str = "application/json") -> Answer:
    return answer(200, content, content_type=content_type)


def status(http: int, message: str = "scripted", *, headers: dict[str, str] | None = None, **error: Any) -> Answer:
    """An error as OpenAI sends it; by default its headers let a client retry after a millisecond."""
    return answer(http, {"error": {"message": message, "type": "scripted", **error}}, **(headers or {"retry-after-ms": "1"}))


def error_body(message: str = "scripted", *, code: Any = None) -> Answer:
    """A success whose body is an error."""
    return body({"error": {"message": message, "code": code}})


def slow(seconds: float, then: Answer | None = None) -> Answer:
    """Send nothing for a while."""

    def give(handler: Handler, got: Got) -> None:
        if not handler.server.upstream.closing.wait(seconds) and then is not None:
            then(handler, got)
        handler.close_connection = True

    return give


def closes_early() -> Answer:
    """Announce more bytes in the headers than are sent."""

    def give(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "application/json"), ("content-length", "10000")])
        handler.wfile.write(b'{"id": "half of an ans')
        handler.close_connection = True

    return give


def takes_at_most(chars: int, then: Answer, *, http: int = 400) -> Answer:
    """Refuse requests with longer texts, with the error of an exceeded context window."""

    def give(handler: Handler, got: Got) -> None:
        if _chars(got.json) <= chars:
            then(handler, got)
            return
        says = f"This model's maximum context length is {chars // 4} tokens. Please reduce the length of the messages."
        status(http, says, code="context_length_exceeded")(handler, got)

    return give


def text_of(request: dict[str, Any]) -> str:
    """The last message of a request."""
    return str(request["messages"][-1]["content"])


def _chars(request: dict[str, Any]) -> int:
    return sum(len(message["content"]) for message in request["messages"])


def _completion(request: dict[str, Any], message: dict[str, Any], finish: str | None) -> dict[str, Any]:
    prompt, answer = _chars(request) // 4, len(message["content"] or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
    }
