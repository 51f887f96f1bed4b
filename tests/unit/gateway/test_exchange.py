"""One request through the gateway: what is sent upstream, how often, and what the client gets."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import socket
import threading
import tomllib
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from compaction.tokens import length_errors
from tests.support.chats import user
from tests.support.gateways import (
    CHAT,
    GatewayProcess,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    gateway,
    in_process,
    served,
    serving,
    tool_chat,
)
from tests.support.limits import WAIT_SECONDS
from tests.support.rulebook import is_valid

WORDS = tomllib.loads(Path(length_errors.__file__).with_suffix(".toml").read_text("utf-8"))


SAMPLES = [each for each in WORDS["samples"] if each.get("tokens", 0) < 250_000]


CLAUDE = [
    {"role": "user" if place % 2 == 0 else "assistant", "content": [{"type": "text", "text": f"part {place} " * 60}]}
    for place in range(31)
]


async def test_a_short_request_leaves_with_its_own_bytes() -> None:
    """A request below the trigger, and its answer, are passed on with the same bytes, query, headers and status."""
    body = b'{ "model":"m",  "messages" : [ {"content":"h\\u00e9llo","role":"user" } ],"x":1.50 }'
    async with gateway(answer(200, b'{"ok":  true}', x_ratelimit="7")) as (upstream, client):
        reply = await client.post(
            f"{CHAT}?beta=1", content=body, headers={"authorization": "Bearer k", "connection": "x-drop", "x-drop": "1"}
        )
    (got,) = upstream.got
    assert got.body == body
    assert got.path == f"{CHAT}?beta=1"
    assert got.headers["authorization"] == "Bearer k"
    assert "x-drop" not in got.headers
    assert got.headers["host"] == upstream.url.removeprefix("http://")
    assert reply.content == b'{"ok":  true}'
    assert reply.headers["x-ratelimit"] == "7"


async def test_a_long_request_is_compacted_and_the_rest_keeps_its_bytes() -> None:
    """In a long request only the message list changes; messages that stay keep their bytes, and the prefix rarely breaks."""
    messages = tool_chat(20)
    requests = [{"model": "m", "temperature": 0.10, "messages": messages[:count]} for count in range(1, 42, 2)]
    found = await served([chat_reply()], *[json.dumps(each, indent=1).encode() for each in requests])
    assert {reply.status_code for reply in found.replies} == {200}
    assert all(is_valid("openai-chat", each) for each in found.sent)
    assert len(found.sent[-1]) < len(messages)
    assert max(len(json.dumps(each)) for each in found.sent) / 4 < 3_000
    last = found.got[-1].body
    assert last.startswith(b'{\n "model": "m",\n "temperature": 0.1,\n "messages": [\n  {')
    assert json.dumps(messages[-1], indent=1).replace("\n", "\n  ").encode() in last
    assert sum(two[: len(one)] != one for one, two in pairwise(found.sent)) <= 3


@pytest.mark.parametrize("window", [100_000, "auto"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["provider"])
async def test_each_length_error_leads_to_a_shorter_request(sample: dict[str, Any], window: Any) -> None:
    """A refusal in the words of each provider, with or without figures, is answered by a shorter request, whatever is known."""
    refusal = answer(sample.get("status") or 400, {"error": {"message": sample["says"]}})
    found = await served([refusal, chat_reply()], body_of(tool_chat(60)), window=window)
    assert (found.replies[0].status_code, len(found.got)) == (200, 2)
    assert len(found.got[1].body) < len(found.got[0].body)
    assert is_valid("openai-chat", found.sent[1])


async def test_everything_else_is_passed_through() -> None:
    data = bytes(range(256)) * 300
    async with gateway(answer(207, b"\x00\xff", x_a="b")) as (upstream, client):
        replies = [
            await client.put("/v1/files/a%2Fb?x=%20y", content=data, headers={"content-type": "application/x"}),
            await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}),
            await client.delete("/v1beta/cachedContents/7"),
            await client.head("/v1/models"),
        ]
    assert [(got.method, got.path) for got in upstream.got] == [
        ("PUT", "/v1/files/a%2Fb?x=%20y"),
        ("GET", "/v1/models"),
        ("DELETE", "/v1beta/cachedContents/7"),
        ("HEAD", "/v1/models"),
    ]
    assert (upstream.got[0].body, upstream.got[0].headers["content-length"]) == (data, str(len(data)))
    assert [reply.status_code for reply in replies] == [207] * 4
    assert [reply.content for reply in replies] == [b"\x00\xff"] * 3 + [b""]


async def test_count_tokens_is_asked_for_what_would_be_sent(tmp_path: Path) -> None:
    """A token count is requested upstream for the compacted messages, and creates no conversation."""
    body = body_of(CLAUDE, system="Be brief.")
    usage = {"type": "message", "usage": {"input_tokens": 900, "output_tokens": 1}}
    script = [answer(200, each) for each in ({"input_tokens": 7}, {"input_tokens": 7}, usage, {"input_tokens": 8})]
    async with gateway(*script, store=tmp_path / "s.db") as (upstream, client):
        counts = [(await client.post("/v1/messages/count_tokens", content=body)).json() for _ in range(2)]
        conversations = (await client.get("/healthz")).json()["conversations"]
        await client.post("/v1/messages", content=body)
        counts.append((await client.post("/v1/messages/count_tokens", content=body)).json())
    assert ([each["input_tokens"] for each in counts], conversations) == ([7, 7, 8], 0)
    sent = [got.json["messages"] for got in upstream.got]
    assert len(sent[0]) < len(CLAUDE)
    assert sent == sent[:1] * 4


def test_no_chunk_waits_for_the_next() -> None:
    received = [threading.Event() for _ in range(4)]
    late: list[bool] = []

    def one_by_one(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        for number, event in enumerate(received):
            handler.chunk(b"data: %d" % number)
            late.append(not event.wait(20))
        handler.wfile.write(b"0\r\n\r\n")

    chunks: list[bytes] = []
    with (
        ScriptedUpstream(one_by_one) as upstream,
        serving(upstream) as url,
        httpx.stream("POST", f"{url}{CHAT}", content=body_of(tool_chat(2), stream=True), timeout=60) as reply,
    ):
        for chunk in reply.iter_raw():
            received[len(chunks)].set()
            chunks.append(chunk)
    assert chunks == [b"data: 0", b"data: 1", b"data: 2", b"data: 3"]
    assert late == [False] * 4


@pytest.mark.parametrize(
    ("variable", "excluded", "passes"),
    [("HTTP_PROXY", "", 1), ("ALL_PROXY", "", 1), ("HTTP_PROXY", "*", 0), ("HTTP_PROXY", "127.0.0.1", 0)],
)
async def test_the_proxy_of_the_environment(variable: str, excluded: str, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with ScriptedUpstream(chat_reply()) as upstream, ScriptedUpstream(chat_reply()) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv("NO_PROXY", excluded)
        async with in_process(upstream) as client:
            reply = await client.post(CHAT, content=body_of([user("hi")]))
    assert (reply.status_code, len(proxy.got), len(upstream.got)) == (200, passes, 1 - passes)
    assert all(got.path == f"{upstream.url}{CHAT}" for got in proxy.got)


def opened(url: str, sent: bytes) -> socket.socket:
    """A connection to a gateway, over which something was sent."""
    found = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=WAIT_SECONDS)
    found.sendall(sent)
    return found


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


@pytest.mark.parametrize("begins", [0, 200, 400], ids=["before the answer", "in mid-stream", "in the middle of a refusal"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/v1/models", b""), ("POST", "/v1/embeddings", b"{}" * 50_000), ("POST", CHAT, body_of(tool_chat(20)))],
    ids=["without a body", "with a body", "of a conversation"],
)
async def test_a_client_that_leaves_cancels_its_request(method: str, path: str, body: bytes, begins: int) -> None:
    """The upstream's connection is closed after the client has left, before the first byte of the answer or later.

    The garbage collector would report a connection that nobody closed.
    """
    closed, started = threading.Event(), threading.Event()

    def hang(handler: Handler, got: Got) -> None:
        if begins:
            handler.begin(begins, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
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
            assert await anyio.to_thread.run_sync(started.wait, WAIT_SECONDS)
            await anyio.sleep(0.05)  # the gateway reads what came
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(closed.wait, 10)
    gc.collect()


async def test_a_forwarded_answer_is_neither_decompressed_nor_kept() -> None:
    """Only an answer of a model is read for its usage; a download of 64 MB of zeros, compressed, takes a few kilobytes."""
    download = gzip.compress(bytes(64_000_000), 1)
    with ScriptedUpstream(answer(200, download, content_encoding="gzip")) as upstream:
        async with in_process(upstream) as client:
            tracemalloc.start()
            try:
                async with client.stream("GET", "/v1/files/f-1/content") as reply:
                    assert b"".join([piece async for piece in reply.aiter_raw()]) == download
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert peak < 8_000_000
