"""Gateways under test: a scripted upstream on loopback that keeps its requests, and the gateway in front of it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any, Self

import anyio
import attrs
import httpx
import uvicorn

from compaction import CompactionSession, presets
from compaction.gateway import GatewaySettings, create_app, is_worth_a_log
from compaction.gateway.bodies import ModelRequest
from compaction.gateway.conversations import ConversationRequest, ConversationTurn
from compaction.gateway.routes import route_of
from compaction.strategies import Pipeline

from .chats import call, result, user
from .limits import WAIT_SECONDS
from .servers import Answer, Got, Handler, ScriptedUpstream, answer, chat_reply, resets  # noqa: F401 (for the tests)

_ROOT = Path(__file__).resolve().parents[2]

CHAT = "/v1/chat/completions"
TOO_LONG = {"error": {"message": "This model's maximum context length is 900 tokens. However, you requested 1500 tokens."}}


async def never(*_: Any) -> None:
    """An application, or a way to send, that must not be used."""
    raise AssertionError


def events(*pieces: bytes, ends: bool = True, seconds: float = 0.0) -> Answer:
    """A stream of events, one chunk each; with ``ends=False`` the connection breaks after the last."""

    def give(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        for piece in pieces:
            handler.chunk(piece)
            time.sleep(seconds)
        if ends:
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    return give


def tool_chat(rounds: int, words: int = 60, name: str = "a") -> list[dict[str, Any]]:
    """A conversation in chat completions: a task, then calls with their results."""
    messages = [user(f"Find out about {name}.")]
    for number in range(rounds):
        messages += [call(f"{name}{number}"), result(f"{name}{number}", f"{name} {number} é " * words)]
    return messages


def body_of(messages: list[Any], **fields: Any) -> bytes:
    """The body of a request with these messages."""
    return json.dumps({"model": "m", "messages": messages, **fields}).encode()


def request_of(messages: list[Any], path: str = CHAT, *, id: str | None = None, **fields: Any) -> ConversationRequest:
    route = route_of("POST", path)
    assert route is not None
    parsed = ModelRequest(b"", {"model": "m", **fields}, route.api.key, messages)
    return ConversationRequest(route=route, original=b"", parsed=parsed, id=id, upstream="u")


def turn_of(session: str, **fields: Any) -> ConversationTurn:
    """A turn of the conversation with this name, for a request with these fields."""
    named = CompactionSession(Pipeline(), id=session)
    return ConversationTurn(request=request_of([], **fields), session=named, window=9_000, tokens=700)


def settings_of(url: str, **options: Any) -> GatewaySettings:
    """The settings of a gateway in front of an upstream; by default a window of 2,000 tokens."""
    urls = {"openai_url": f"{url}/v1", "anthropic_url": url, "google_url": url, "bedrock_url": url}
    usual: dict[str, Any] = {"strategy": presets.adaptive, "window": 2_000, "counter": "chars/4", "timeout": 20.0}
    return GatewaySettings(**{**usual, **urls, **options})


@contextlib.asynccontextmanager
async def in_process(upstream: ScriptedUpstream, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a gateway in this event loop."""
    async with lifespan(settings_of(upstream.url, **options)) as app, client_of(app) as client:
        yield client


@contextlib.asynccontextmanager
async def gateway(*script: Answer, **options: Any) -> AsyncGenerator[tuple[ScriptedUpstream, httpx.AsyncClient]]:
    """An upstream with this script, and a client of a gateway in front of it, in this event loop."""
    with ScriptedUpstream(*script) as upstream:
        async with in_process(upstream, **options) as client:
            yield upstream, client


@attrs.frozen
class Served:
    """The outcome of some requests: the answers, what the upstream got, and the data of the page."""

    replies: list[httpx.Response]
    got: list[Got]
    status: dict[str, Any]

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return {name: self.status[name] for name in ("passed_through", "failures", "retries") if self.status[name]}

    @property
    def sent(self) -> list[list[Any]]:
        """The messages of each request that the upstream got."""
        return [got.json["messages"] for got in self.got]


async def served(
    script: list[Answer], *bodies: bytes, path: str = CHAT, headers: dict[str, str] | None = None, **options: Any
) -> Served:
    """Send these bodies through a gateway in this event loop, one after the other."""
    async with gateway(*script, **options) as (upstream, client):
        replies = [await client.post(path, content=body, headers=headers) for body in bodies]
        status = (await client.get("/status.json", headers=headers)).json()
    return Served(replies, upstream.got, status)


def client_of(app: Any) -> httpx.AsyncClient:
    """A client of an application in this event loop."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8484", headers={"accept-encoding": "identity"})


@contextlib.asynccontextmanager
async def lifespan(settings: GatewaySettings, **options: Any) -> AsyncGenerator[Any]:
    """A gateway that has started, in this event loop; the options are those of `create_app`."""
    app: Any = create_app(settings, **options)
    to_app_send, to_app = anyio.create_memory_object_stream[dict[str, Any]](2)
    from_app_send, from_app = anyio.create_memory_object_stream[dict[str, Any]](2)
    with to_app_send, to_app, from_app_send, from_app:
        async with anyio.create_task_group() as group:
            group.start_soon(app, {"type": "lifespan", "asgi": {"version": "3.0"}}, to_app.receive, from_app_send.send)
            await to_app_send.send({"type": "lifespan.startup"})
            assert (await from_app.receive())["type"] == "lifespan.startup.complete"
            try:
                yield app
            finally:
                with anyio.CancelScope(shield=True):
                    await to_app_send.send({"type": "lifespan.shutdown"})
                    await from_app.receive()


def serving(upstream: ScriptedUpstream, **options: Any) -> contextlib.AbstractContextManager[str]:
    """The address of a gateway in front of an upstream, see `serving_app`."""
    return serving_url(upstream.url, **options)


def serving_url(url: str, **options: Any) -> contextlib.AbstractContextManager[str]:
    """The address of a gateway in front of the server at an address, see `serving_app`."""
    return serving_app(create_app(settings_of(url, **options)))


@contextlib.contextmanager
def serving_app(app: Any) -> Generator[str]:
    """The address of a gateway that runs in a separate thread, as ``compaction serve`` runs it."""
    headers: dict[str, Any] = {"server_header": False, "date_header": False}
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, http="h11", ws="none", **headers)
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").addFilter(is_worth_a_log)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT_SECONDS)


class GatewayProcess:
    """``compaction serve`` in a process. Holds state: the process, its address, and a client of it.

    Args:
        upstream: The address of the upstream.
        folder: The folder of its store and its log.
        more: Further options.
        window: The context window in tokens.
    """

    def __init__(self, upstream: str, folder: Path, *more: str, window: int) -> None:
        log = folder / "log.txt"
        command = [sys.executable, "-m", "compaction", "serve", "--port", "0", "--counter", "chars/4"]
        urls = [text for name in ("openai", "anthropic", "google") for text in (f"--{name}-url", upstream)]
        options = ["--window", str(window), "--store", str(folder / "gateway.db"), *urls, *more]
        with log.open("wb") as errors:
            environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
            self.process = subprocess.Popen([*command, *options], stderr=errors, env=environment)
        while "\n" not in log.read_text().partition("gateway on ")[2]:  # the whole line: its beginning may be written first
            assert self.process.poll() is None, log.read_text()
            time.sleep(0.02)
        self.url = log.read_text().partition("gateway on ")[2].partition(",")[0]
        self.client = httpx.Client(base_url=self.url, timeout=WAIT_SECONDS)

    def kill(self) -> None:
        """Kill the process; its workers, if it has some, end by themselves."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
