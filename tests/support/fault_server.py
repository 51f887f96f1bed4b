"""A server on loopback for OpenAI's chat completions that fails as its script says.

::

    with FaultServer(status(503), reply("## Goal ...")) as server:
        client = OpenAI(base_url=server.url, api_key="none")

Each request gets the next answer of the script; the last answer is repeated. ``server.requests`` contains the requests.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

Answer: TypeAlias = "Callable[[_Handler, dict[str, Any]], None]"
"""Answers one request, given its handler and its body."""


class FaultServer:
    """A running server. Holds state: its script, the bodies of the requests so far, and an event set by the first request."""

    def __init__(self, *script: Answer) -> None:
        self.requests: list[dict[str, Any]] = []
        self.script = list(script)
        self.asked = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.faults = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        """The last message of each request so far."""
        return [str(request["messages"][-1]["content"]) for request in self.requests]

    def next(self, request: dict[str, Any]) -> Answer:
        """Record a request and return its answer."""
        with self._lock:
            self.requests.append(request)
            self.asked.set()
            return self.script[min(len(self.requests), len(self.script)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    faults: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: half of the tests use clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def faults(self) -> FaultServer:
        """The fault server of this handler."""
        assert isinstance(self.server, _Server)
        return self.server.faults

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length))
        self.faults.next(request)(self, request)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def send(self, code: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        self.begin(code, len(content), headers)
        self.wfile.write(content)

    def begin(self, code: int, length: int, headers: Mapping[str, str] | None = None) -> None:
        """Send the status and headers of an answer."""
        self.send_response(code)
        for name, value in {"content-type": "application/json", "content-length": str(length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()


def reply(text: str | None, *, finish: str | None = "stop", refusal: str | None = None, usage: Any = ...) -> Answer:
    """A completion; by default its usage is one token for every four characters."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        completion = _completion(request, {"role": "assistant", "content": text, "refusal": refusal}, finish)
        if usage is not ...:
            completion["usage"] = usage
        handler.send(200, json.dumps(completion).encode())

    return answer


def compacted(*beside: dict[str, Any], content: str | None = None) -> Answer:
    """The answer of ``/responses/compact`` as OpenAI's reference shows it: the user's messages, then one compaction item.

    Its id and content depend on the request; ``content`` replaces the content, and ``beside`` are further items.
    """

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        assert handler.path == "/v1/responses/compact", handler.path
        digest = hashlib.sha256(json.dumps(request["input"]).encode()).hexdigest()[:12]
        said = [item for item in request["input"] if item.get("role") == "user"]
        users = [
            {**item, "type": "message", "content": [{"type": "input_text", "text": item["content"]}]}
            for item in said
            if isinstance(item["content"], str)
        ]
        item = {
            "id": f"cmp_{digest}",
            "type": "compaction",
            "encrypted_content": f"gAAAAA{digest}" if content is None else content,
        }
        usage = {"input_tokens": 42897, "input_tokens_details": {"cached_tokens": 12000}, "output_tokens": 12000}
        details = {"output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 54897}
        output = [*users, *beside, item]
        answered = {"id": "resp_001", "object": "response.compaction", "created_at": 1731459200, "output": output}
        handler.send(200, json.dumps({**answered, "usage": {**usage, **details}}).encode())

    return answer


def echo() -> Answer:
    """A completion that repeats the last message of its request."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        reply(text_of(request))(handler, request)

    return answer


def body(content: Any) -> Answer:
    """A success with this JSON body."""
    return raw(json.dumps(content).encode())


def raw(content: bytes, *, content_type: str = "application/json") -> Answer:
    """A success with these bytes as its body."""
    return lambda handler, request: handler.send(200, content, {"content-type": content_type})


def status(http: int, message: str = "scripted", *, headers: Mapping[str, str] | None = None, **error: Any) -> Answer:
    """An error as OpenAI sends it; by default its headers let a client retry after a millisecond."""
    content = json.dumps({"error": {"message": message, "type": "scripted", **error}}).encode()
    return lambda handler, request: handler.send(http, content, headers or {"retry-after-ms": "1"})


def error_body(message: str = "scripted", *, code: Any = None) -> Answer:
    """A success whose body is an error."""
    return body({"error": {"message": message, "code": code}})


def slow(seconds: float, then: Answer | None = None) -> Answer:
    """Send nothing for a while."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        if not handler.faults.closing.wait(seconds) and then is not None:
            then(handler, request)
        handler.close_connection = True

    return answer


def closes_early() -> Answer:
    """Announce more bytes in the headers than are sent."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        handler.begin(200, 10_000)
        handler.wfile.write(b'{"id": "half of an ans')
        handler.close_connection = True

    return answer


def takes_at_most(chars: int, then: Answer, *, http: int = 400) -> Answer:
    """Refuse requests with longer texts, with the error of an exceeded context window."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        if _chars(request) <= chars:
            then(handler, request)
            return
        says = f"This model's maximum context length is {chars // 4} tokens. Please reduce the length of the messages."
        status(http, says, code="context_length_exceeded")(handler, request)

    return answer


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
