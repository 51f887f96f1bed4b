"""A scripted HTTP server on loopback that keeps its requests."""

from __future__ import annotations

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
