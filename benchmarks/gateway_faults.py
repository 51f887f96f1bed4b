"""Random faults between clients, the gateway and an upstream: ``python -m benchmarks.gateway_faults --faults 10000 --seed 1``.

Clients send conversations that grow, shrink and rewind, break off requests or responses, and send garbage. The upstream
answers whole, streamed, compressed, late, wrongly, partly or not at all. Checked: each request ends; the upstream gets each
request at most twice, and only valid ones; a complete answer reaches its client, and only this client, unchanged.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from tests.support.gateways import Got, Handler, ScriptedUpstream, serving_url, tool_chat
from tests.support.rulebook import is_valid

CLIENTS: Final = 8
WINDOW: Final = 2_500
TOO_LONG: Final = {
    "error": {"message": "This model's maximum context length is 2000 tokens. However, you requested 2600 tokens."}
}
Answer = Callable[[Handler, Got, bytes], None]


def _reply(got: Got) -> bytes:
    """Return the answer of a request, which names the request."""
    usage = {"prompt_tokens": len(got.body) // 4, "completion_tokens": 1}
    return json.dumps({"for": got.headers.get("x-number"), "choices": [], "usage": usage}).encode()


def _whole(handler: Handler, got: Got, reply: bytes, status: int = 200, **headers: str) -> None:
    handler.begin(
        status, [("content-length", str(len(reply))), *((name.replace("_", "-"), value) for name, value in headers.items())]
    )
    handler.wfile.write(reply)


def _streamed(handler: Handler, got: Got, reply: bytes) -> None:
    handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    data = b"data: " + reply + b"\n\n"
    for start in range(0, len(data), 30):
        handler.chunk(data[start : start + 30])
    handler.wfile.write(b"0\r\n\r\n")


def _compressed(handler: Handler, got: Got, reply: bytes) -> None:
    _whole(handler, got, gzip.compress(reply), content_encoding="gzip")


def _reset(handler: Handler, got: Got, reply: bytes) -> None:
    handler.close_connection = True


def _half(handler: Handler, got: Got, reply: bytes) -> None:
    handler.begin(200, [("content-length", str(len(reply)))])
    handler.wfile.write(reply[: len(reply) // 2])
    handler.close_connection = True


def _half_stream(handler: Handler, got: Got, reply: bytes) -> None:
    handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    handler.chunk(b"data: " + reply[:20])
    handler.close_connection = True


def _half_headers(handler: Handler, got: Got, reply: bytes) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-le")
    handler.close_connection = True


def _nonsense(handler: Handler, got: Got, reply: bytes) -> None:
    handler.wfile.write(b"\x00\x01 what is this\r\n\r\n")
    handler.close_connection = True


def _hang(handler: Handler, got: Got, reply: bytes) -> None:
    handler.server.upstream.closing.wait(1.0)
    handler.close_connection = True


def _status(status: int, body: Any) -> Answer:
    return lambda handler, got, reply: _whole(handler, got, json.dumps(body).encode(), status)


COMPLETE: Final[tuple[Answer, ...]] = (_whole, _streamed, _compressed)
BROKEN: Final[tuple[Answer, ...]] = (_reset, _half, _half_stream, _half_headers, _nonsense, _hang)
ERRORS: Final[tuple[Answer, ...]] = (
    _status(400, TOO_LONG),
    _status(400, {"error": {"message": "no"}}),
    _status(413, {}),
    _status(429, {"error": {"message": "later"}}),
    _status(500, {}),
    _status(529, {}),
    _status(302, {}),
    lambda handler, got, reply: _whole(handler, got, b"<html>", 200, content_type="text/html"),
)


class Faults:
    """A run with random faults. Holds state: the outcomes and problems.

    Args:
        seed: Determines the fault of each request.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.seen: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.problems: list[str] = []
        self._lock = threading.Lock()
        self.client = httpx.Client(timeout=30)

    def answer(self, handler: Handler, got: Got) -> None:
        """Answer a request of the gateway, correctly or with a fault."""
        number = got.headers.get("x-number", "")
        with self._lock:
            self.seen[number] += 1
            count = self.seen[number]
        if count > 2:
            self.problem(number, f"{count} upstream requests")
        if got.headers.get("x-valid") and not is_valid("openai-chat", got.json["messages"]):
            self.problem(number, "an invalid request")
        chance = random.Random(f"{self.seed} {number} {count}")
        kinds = chance.choices((COMPLETE, ERRORS, BROKEN), (6, 3, 2))[0]
        chance.choice(kinds)(handler, got, _reply(got))

    def problem(self, number: object, what: str) -> None:
        """Record a problem."""
        with self._lock:
            self.problems.append(f"request {number}: {what}")

    def request(self, url: str, number: int) -> None:
        """Send one request as one of several kinds of client."""
        chance = random.Random(f"{self.seed} {number}")
        messages = tool_chat(chance.randint(1, 24), name=f"n{chance.randint(0, 5)}")
        if chance.random() < 0.2:
            messages = [messages[0], *messages[-2 * chance.randint(1, 3) :]]
        body = json.dumps({"model": "m", "messages": messages, "stream": chance.random() < 0.5}).encode()
        headers = {"x-number": str(number), "x-session-id": f"s{chance.randint(0, 3)}"}
        kind = chance.choices(("plain", "garbage", "half a request", "gone"), (12, 1, 1, 2))[0]
        began = time.monotonic()
        try:
            if kind in ("half a request", "gone"):
                self._break_off(url, headers, body, whole=kind == "gone", wait=chance.random() * 0.05)
                outcome = kind
            else:
                valid = {"x-valid": "1"} if kind == "plain" else {}
                outcome = self._ask(
                    url, {**headers, **valid}, body if kind == "plain" else body[: chance.randint(0, len(body) - 1)]
                )
        except Exception as error:
            outcome = type(error).__name__
            self.problem(number, repr(error))
        if time.monotonic() - began > 20:
            self.problem(number, "took more than twenty seconds")
        with self._lock:
            self.outcomes[outcome] += 1

    def _ask(self, url: str, headers: dict[str, str], body: bytes) -> str:
        try:
            reply = self.client.post(f"{url}/v1/chat/completions", content=body, headers=headers)
        except httpx.RemoteProtocolError:
            return "broken off"
        if reply.status_code != 200:
            return f"status {reply.status_code}"
        if not reply.content.startswith(b"<html>"):
            found = json.loads(reply.content.removeprefix(b"data: "))
            if found["for"] != headers["x-number"]:
                self.problem(headers["x-number"], f"got the answer for {found['for']}")
        return "answered"

    def _break_off(self, url: str, headers: dict[str, str], body: bytes, *, whole: bool, wait: float) -> None:
        place = urlsplit(url)
        lines = [
            f"{name}: {value}" for name, value in {"host": "localhost", **headers, "content-length": str(len(body))}.items()
        ]
        head = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *lines, "", ""]).encode()
        with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=20) as client:
            client.sendall(head + (body if whole else body[: len(body) // 2]))
            time.sleep(wait)


def run_faults(count: int, seed: int) -> Faults:
    """Run requests with faults, and check that the gateway still answers afterwards."""
    faults = Faults(seed)
    with ScriptedUpstream(faults.answer) as upstream, faults.client:
        options: dict[str, Any] = {"window": WINDOW, "timeout": 0.5}
        with serving_url(upstream.url, **options) as url, ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(lambda number: faults.request(url, number), range(count)))
            if httpx.get(f"{url}/healthz", timeout=20).status_code != 200:
                faults.problem("last", "the gateway does not answer")
            faults.outcomes.update(
                {f"gateway: {name}": each for name, each in httpx.get(f"{url}/healthz").json()["failures"].items()}
            )
    return faults


def main() -> None:
    """Run the requests that the arguments ask for, and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    began = time.monotonic()
    faults = run_faults(arguments.faults, arguments.seed)
    for name, count in sorted(faults.outcomes.items()):
        print(f"{count:7,} {name}")
    print(f"{len(faults.problems)} problems in {arguments.faults:,} requests, {time.monotonic() - began:.0f} s")
    for problem in faults.problems[:20]:
        print(problem)


if __name__ == "__main__":
    main()
