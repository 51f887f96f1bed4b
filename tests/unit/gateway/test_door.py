"""Unusual paths, slow and vanished clients, unreachable upstreams and implausible usage."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from tests.support.gateways import (
    GatewayProcess,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    chat_reply,
    in_process,
    serving,
    tool_chat,
)
from tests.support.limits import WAIT_SECONDS


def body_of(messages: list[Any]) -> bytes:
    """Return the body of a request."""
    return json.dumps({"model": "m", "messages": messages}).encode()


@pytest.mark.parametrize(
    "path", ["//v1/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completions/", "/v1//chat/completions"]
)
async def test_unusual_spellings_of_a_route_are_compacted(path: str) -> None:
    """Repeated slashes and versions, and a slash at the end, do not keep a conversation from being compacted."""
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            request = client.build_request("POST", "/", content=body_of(tool_chat(20)))
            request.url = request.url.copy_with(raw_path=path.encode())
            reply = await client.send(request)
    assert reply.status_code == 200
    assert len(upstream.got[0].json["messages"]) < len(tool_chat(20))
    assert upstream.got[0].path.rstrip("/") == "/v1/chat/completions"


@pytest.mark.parametrize("path", ["/openai/threads/t/messages", "/model/anthropic.claude/invoke", "/v1/x:rawPredict"])
async def test_what_is_not_compacted_is_reported(path: str) -> None:
    """A request to a path that looks like a conversation's is passed on, and counted on the page."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            await client.post(path, content=body_of(tool_chat(20)))
            await client.post("/v1/embeddings", content=b"{}")
            health = (await client.get("/healthz")).json()
    assert len(upstream.got) == 2
    assert health["passed_through"] == {"unknown path": 1}


VERTEX = "/v1/projects/p/locations/us/publishers"
GEMINI = [{"role": "user", "parts": [{"text": "word " * 90}]}, {"role": "model", "parts": [{"text": "ok"}]}] * 40
CLAUDE = [{"role": "user", "content": "word " * 90}, {"role": "assistant", "content": "ok"}] * 40
CONVERSE = [{"role": "user", "content": [{"text": "word " * 90}]}, {"role": "assistant", "content": [{"text": "ok"}]}] * 40


@pytest.mark.parametrize(
    ("path", "key", "messages"),
    [
        ("/openai/deployments/gpt/chat/completions?api-version=2025-01-01", "messages", tool_chat(20)),
        (f"{VERTEX}/google/models/gemini-2.5-pro:generateContent", "contents", GEMINI[:-1]),
        (f"{VERTEX}/anthropic/models/claude-sonnet-4@20250514:rawPredict", "messages", CLAUDE[:-1]),
        ("/model/us.anthropic.claude-v1:0/converse", "messages", CONVERSE[:-1]),
    ],
    ids=["azure", "vertex gemini", "vertex claude", "bedrock"],
)
async def test_clouds_are_compacted(path: str, key: str, messages: list[Any]) -> None:
    """The addresses of Azure, Vertex and Bedrock have conversations; only the list of messages changes."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, openai_url=upstream.url) as client:
            await client.post(path, content=json.dumps({key: messages, "other": 1}))
    got = upstream.got[0]
    assert got.path == path
    assert got.json["other"] == 1
    assert 0 < len(got.json[key]) < len(messages)


async def test_a_signed_body_is_sent_unchanged() -> None:
    """A changed one would be refused; the page says why the request was sent as it is."""
    body = json.dumps({"messages": CONVERSE[:-1]}).encode()
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            signed = {"authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20261124/us-east-1/bedrock/aws4_request, Signature=0"}
            await client.post("/model/m/converse", content=body, headers=signed)
            health = (await client.get("/healthz")).json()
    assert upstream.got[0].body == body
    assert health["passed_through"] == {"signed": 1}


async def test_an_unreachable_upstream_is_named() -> None:
    """The error names the address that was tried, without its query, and the cause."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        address = upstream.url
        async with in_process(upstream, openai_url="http://127.0.0.1:9/v1", timeout=2.0) as client:
            replies = [
                await client.post("/v1/chat/completions", content=body_of(tool_chat(1))),
                await client.get("/v1/models?key=k1"),
            ]
    assert address
    for reply, path in zip(replies, ("chat/completions", "models"), strict=True):
        says = reply.json()["error"]["message"]
        assert reply.status_code == 502
        assert f"http://127.0.0.1:9/v1/{path}, " in says
        assert "k1" not in says


async def test_usage_that_cannot_be_right_is_ignored() -> None:
    """A report of many times our count is counted, and causes no cut."""
    reply = chat_reply(tokens=90_000)
    with ScriptedUpstream(reply) as upstream:
        async with in_process(upstream, window=100_000) as client:
            for count in (40, 41):
                await client.post("/v1/chat/completions", content=body_of(tool_chat(count)))
            health = (await client.get("/healthz")).json()
    assert health["passed_through"] == {"usage not believed": 2}
    assert [len(got.json["messages"]) for got in upstream.got] == [len(tool_chat(40)), len(tool_chat(41))]


def opened(url: str, sent: bytes) -> socket.socket:
    """A connection to a gateway, over which something was sent."""
    found = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=WAIT_SECONDS)
    found.sendall(sent)
    return found


def test_a_body_that_does_not_arrive_is_answered_408() -> None:
    """The client is told, and nothing is sent on."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"
    with ScriptedUpstream(answer(200, {})) as upstream, serving(upstream, body_seconds=0.1) as url, opened(url, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 408")
    assert upstream.got == []


def test_connections_beyond_the_limit_are_answered_503(tmp_path: Path) -> None:
    """A process serves 2,000 open connections at a time; when some are closed, it serves others."""
    get = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with (
        ScriptedUpstream(answer(200, {})) as upstream,
        GatewayProcess(upstream.url, tmp_path, window=10_000) as gateway,
        contextlib.ExitStack() as stack,
    ):
        try:
            held = [stack.enter_context(opened(gateway.url, b"")) for _ in range(1_999)]
        except OSError:
            pytest.skip("this system allows too few open files")
        with opened(gateway.url, get) as late:
            assert late.recv(100).startswith(b"HTTP/1.1 503")
        for each in held[:100]:
            each.close()
        with opened(gateway.url, get) as served:
            assert served.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("begins", [False, True], ids=["before the answer", "in mid-stream"])
@pytest.mark.parametrize(("method", "path", "body"), [("GET", "/v1/models", b""), ("POST", "/v1/embeddings", b"{}" * 50_000)])
async def test_a_client_that_leaves_cancels_a_request_without_a_conversation(
    method: str, path: str, body: bytes, begins: bool
) -> None:
    """The upstream's connection is closed after the client has left, before the first byte of the answer or later."""
    closed, started = threading.Event(), threading.Event()

    def hang(handler: Handler, got: Got) -> None:
        if begins:
            handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
            handler.chunk(b"data: {}\n\n")
        started.set()
        handler.connection.settimeout(10)
        if not handler.connection.recv(1):  # the peer closed the connection
            closed.set()
        handler.close_connection = True

    async def ask(url: str) -> None:
        async with httpx.AsyncClient(timeout=20) as client, client.stream(method, f"{url}{path}", content=body) as reply:
            _ = [piece async for piece in reply.aiter_raw()]

    with ScriptedUpstream(hang) as upstream, serving(upstream) as url:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, url)
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(closed.wait, 10)
