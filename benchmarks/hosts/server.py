"""A strict model on loopback, in every wire format: it refuses the requests that a provider would refuse, and counts.

A request that breaks a rule of its format, by `validate`, is refused with 400; one that is longer than the
window, by a count of the server's own, with the provider's own length error. What is left is answered by the script, in one
piece or streamed, with usage. `Conduct` names what a provider may do besides. An address that begins with ``/summaries`` is the
model of a summarizer: it answers with a short text and is counted apart.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import ceil
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

import attrs

from compaction import validate

from .ledger import SUMMARY_SIGN, Ledger
from .script import MARKER, PINNED, Asked, Reply, conversation_of, markers, script
from .wires import Body, Wire, wire_of

SUMMARY: Final = (
    f"## Goal\nThe user asks what things cost.\n\n## Progress\n{SUMMARY_SIGN}\n\n## Next steps\nAnswer the latest question."
)

REFUSED: Final = 18
"""The request of each conversation that is refused once, counted in accepted ones: in the fifth turn of the tool loop."""
WITHOUT_USAGE: Final = {"openai-chat": "usage", "openai-responses": "usage", "gemini": "usageMetadata"}
"""The field that is left out by format; the clients of the other formats expect it, and it says zero there."""


@attrs.frozen(kw_only=True)
class Conduct:
    """The ways in which a provider differs, besides its answers.

    Args:
        reports: Which replies report their usage: each, the last of a turn, none, or each with a thousandth of it.
        refuses: Whether one request of each conversation is refused: as too long by a fifth, although it fits, or with 429.
        native: Whether the last reply of some turns begins with the provider's own compaction, which must then stay.
        pinned: Whether a tool result of the first turn must stay.
    """

    reports: Literal["each", "late", "never", "a thousandth"] = "each"
    refuses: Literal["", "as too long", "with 429"] = ""
    native: bool = False
    pinned: bool = False


class StrictServer:
    """A running server. Holds state: its ledger.

    Args:
        window: Tokens that it takes.
        characters_per_token: How it counts: characters of the request, divided by this.
        play: Returns the reply to a request, given a name that no other reply has.
        seconds: Seconds that a summary takes.
        conduct: What it does besides answering.

    Attributes:
        throttled: Requests that were refused with 429.
    """

    def __init__(
        self,
        *,
        window: int = 6_000,
        characters_per_token: float = 4.0,
        play: Callable[[Asked, str], Reply] = script,
        seconds: float = 0.0,
        conduct: Conduct | None = None,
    ) -> None:
        self.window = window
        self.characters_per_token = characters_per_token
        self.ledger = Ledger()
        self.summaries = 0
        self.throttled = 0
        self._conduct = conduct or Conduct()
        self._refused: set[str] = set()
        self._native: dict[str, str] = {}
        self._play = play
        self._seconds = seconds
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def address(self) -> str:
        """Return the server's address, without a path; OpenAI's clients need ``/v1`` after it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, wire: Wire, path: str, body: Body) -> tuple[int, str, bytes]:
        """Return the status, the content type and the body of the response to a request."""
        try:
            asked = wire.read(path, body)
        except (KeyError, TypeError, AttributeError) as error:
            self.ledger.refuse("", f"not a request of {wire.name}: {error!r}", over=False)
            return json_response(400, wire.invalid(f"malformed request: {error!r}"))
        if path.startswith("/summaries"):
            time.sleep(self._seconds)
            self.summaries += 1
            return self.reply(wire, asked, Reply(id=f"summary{self.summaries}", text=SUMMARY))
        return self._turn(wire, asked)

    def _turn(self, wire: Wire, asked: Asked) -> tuple[int, str, bytes]:
        conversation = conversation_of(asked)
        if problems := list(map(str, validate(asked.messages, format=wire.name))):
            self.ledger.refuse(conversation, problems[0], over=False)
            return json_response(400, wire.invalid(problems[0]))
        tokens = self.tokens(asked.characters)
        if tokens > self.window:
            self.ledger.refuse(conversation, f"{tokens} tokens of {self.window}", over=True)
            return json_response(400, wire.too_long(tokens, self.window))
        if (refusal := self._refusal(wire, conversation, tokens)) is not None:
            return refusal
        cached = self.ledger.accept(conversation, asked.messages, tokens, asked.characters, self._musts(asked, conversation))
        page = self.ledger.page(conversation)
        page.crossed += len({name for step in asked.steps for name, _ in MARKER.findall(step.text)}) > 1
        reply = self._play(asked, f"{conversation.replace('.', '_')}_{page.requests}")
        if self._conduct.native and not reply.calls and markers(asked.steps)[0][1] % 7 == 2:
            self._native[conversation] = f"own-{reply.id}"
            reply = attrs.evolve(reply, native=self._native[conversation])
        return self.reply(wire, asked, attrs.evolve(reply, prompt_tokens=tokens, cached_tokens=cached))

    def _refusal(self, wire: Wire, conversation: str, tokens: int) -> tuple[int, str, bytes] | None:
        """Return the refusal of a request that is in order, which happens once in a conversation, if this is the one."""
        due = self.ledger.page(conversation).requests >= REFUSED and conversation not in self._refused
        if not due or not self._conduct.refuses:
            return None
        self._refused.add(conversation)
        if self._conduct.refuses == "with 429":
            self.throttled += 1
            return json_response(429, wire.invalid("Too many requests, please try again."))
        self.ledger.refuse(conversation, "refused once", over=True)
        return json_response(400, wire.too_long(max(tokens, self.window) * 6 // 5, self.window))

    def _musts(self, asked: Asked, conversation: str) -> list[str]:
        """Return the texts that a request must have."""
        musts = [self._native[conversation]] if conversation in self._native else []
        if self._conduct.pinned and markers(asked.steps)[0][1] > 0:
            musts.append(f"{conversation}{PINNED}")
        return musts

    def reply(self, wire: Wire, asked: Asked, reply: Reply) -> tuple[int, str, bytes]:
        """Return the response with this reply, in one piece or streamed."""
        said = len(reply.text) + sum(len(json.dumps(call.arguments)) for call in reply.calls)
        reply = attrs.evolve(reply, completion_tokens=self.tokens(said), prompt_tokens=reply.prompt_tokens or 1)
        reports = self._conduct.reports
        if reports == "a thousandth":
            reply = attrs.evolve(reply, prompt_tokens=reply.prompt_tokens // 1_000 + 1, cached_tokens=0)
        is_silent = reports == "never" or (reports == "late" and bool(reply.calls))
        if is_silent:
            reply = attrs.evolve(reply, prompt_tokens=0, cached_tokens=0, completion_tokens=0)
        if asked.stream:
            return 200, wire.stream_type, wire.stream(asked, reply)
        body = wire.write(asked, reply)
        if is_silent:
            body.pop(WITHOUT_USAGE.get(wire.name, ""), None)
        return json_response(200, body)

    def tokens(self, characters: int) -> int:
        """Return the tokens of this many characters, by the server's count."""
        return ceil(characters / self.characters_per_token)


def json_response(status: int, body: Body) -> tuple[int, str, bytes]:
    """Return a response with a JSON body."""
    return status, "application/json", json.dumps(body).encode()


_AMAZON: Final = {400: "ValidationException", 429: "ThrottlingException"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    model: StrictServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, like those of cancelled turns."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave together: two small packets would wait for each other
    server: _Server

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wire = wire_of(path)
        if wire is None:
            self._send(404, "application/json", b'{"error": {"message": "nothing here"}}')
        else:
            self._send(*self.server.model.answer(wire, path, body))

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status in _AMAZON:
            self.send_header("x-amzn-ErrorType", _AMAZON[status])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
