"""Scripted HTTP servers on loopback, which keep their requests; one for OpenAI's chat completions fails as its script says.

::

    with FaultServer(status(503), reply("## Goal ...")) as server:
        client = OpenAI(base_url=server.url, api_key="none")

Each request gets the next answer of the script; the last answer is repeated. ``server.requests`` contains the requests.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

import attrs


@attrs.frozen
class Got:
    """A request that the upstream received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    """Answers one request as the script says."""

    protocol_version = "HTTP/1.1"
    wbufsize = 0
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        got = Got(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, self._body())
        self.server.upstream.next(got)(self, got)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Send the status and headers."""
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """Send one chunk of an answer without a length."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


Answer: TypeAlias = Callable[[Handler, Got], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    upstream: ScriptedUpstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: half of the tests use clients that disconnect."""


class ScriptedUpstream:
    """A server on loopback. Holds state: its requests. Each request gets the next answer; the last one is repeated."""

    def __init__(self, *script: Answer) -> None:
        self.got: list[Got] = []
        self.script = list(script)
        self.asked = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.upstream = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next(self, got: Got) -> Answer:
        """Record a request and return its answer."""
        with self._lock:
            self.got.append(got)
            self.asked.set()
            return self.script[min(len(self.got), len(self.script)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def answer(status: int, body: Any, **headers: str) -> Answer:
    """A whole answer: bytes, or JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}

    def give(handler: Handler, got: Got) -> None:
        handler.begin(status, [*fields.items(), ("content-length", str(len(data)))])
        if got.method != "HEAD":
            handler.wfile.write(data)

    return give


def resets(handler: Handler, got: Got) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


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
        message = {"role": "assistant", "content": text, "refusal": refusal}
        told = _usage(_chars(got.json) // 4, len(text or "") // 4) if usage is ... else usage
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        made = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": got.json.get("model", "m")}
        answer(200, {**made, "choices": choices, "usage": told})(handler, got)

    return give


def chat_reply(text: str = "done", tokens: int | None = None) -> Answer:
    """A completion; by default it reports one token for every four bytes of the request."""
    return lambda handler, got: reply(text, usage=_usage(len(got.body) // 4 if tokens is None else tokens, 1))(handler, got)


def compacted(*beside: dict[str, Any], content: str | None = None) -> Answer:
    """The answer of ``/responses/compact`` as OpenAI's reference shows it: the user's messages, then one compaction item.

    Its id and content depend on the request; ``content`` replaces the content, and ``beside`` are further items.
    """

    def give(handler: Handler, got: Got) -> None:
        assert got.path == "/v1/responses/compact", got.path
        request = got.json
        digest = hashlib.sha256(json.dumps(request["input"]).encode()).hexdigest()[:12]
        said = [item for item in request["input"] if item.get("role") == "user"]
        texts = [item for item in said if isinstance(item["content"], str)]
        users = [{**item, "type": "message", "content": [{"type": "input_text", "text": item["content"]}]} for item in texts]
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


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
