"""Bad input from clients or upstream: no request hangs, no answer is lost, and unreadable input is passed on unchanged."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import sqlite3
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from compaction.gateway.bodies import TooLarge, Unreadable, decoded, read_request
from tests.support.gateways import Got, Handler, ScriptedUpstream, answer, chat_reply, events, in_process, serving, tool_chat
from tests.support.limits import WAIT_SECONDS
from tests.support.rulebook import is_valid

CHAT = "/v1/chat/completions"


def long_request() -> bytes:
    """Return a request that must be compacted."""
    return json.dumps({"model": "m", "messages": tool_chat(20)}).encode()


@pytest.mark.parametrize("number", ["123456789012345678901234567890", "-9223372036854775809", "0.1", "1e400"])
@pytest.mark.parametrize("text", ["plain", "\\ud800", "\\u00e9"])
def test_numbers_and_texts_are_read_exactly(number: str, text: str) -> None:
    """Integers of any size keep their value, and what one parser rejects the other one reads."""
    body = f'\ufeff{{"n": {number}, "messages": [{{"role": "user", "content": "{text}"}}]}}'.encode()
    for given in (body, body[3:]):
        assert read_request(given, "messages").fields == json.loads(given)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b'{"model": "m", "messages": [', "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[1, 2]", "not an object"),
        (b'"text"', "not an object"),
        (b"null", "not an object"),
        (b'{"model": "m"}', "no list of messages"),
        (b'{"messages": {"role": "user"}}', "no list of messages"),
    ],
)
async def test_what_is_not_a_request_is_passed_on(body: bytes, why: str) -> None:
    """A body that is not a request is sent upstream unchanged, its answer is returned, and the reason is counted."""
    with ScriptedUpstream(answer(400, {"error": {"message": "what?"}})) as upstream:
        async with in_process(upstream) as client:
            reply = await client.post(CHAT, content=body)
            health = (await client.get("/healthz")).json()
    assert [got.body for got in upstream.got] == [body]
    assert (reply.status_code, reply.json()) == (400, {"error": {"message": "what?"}})
    assert health["passed_through"] == {why: 1}


@pytest.mark.parametrize("messages", [[1, 2], ["text"], [None], [{"content": "no role"}], [[]], [{"role": 7}] * 3])
async def test_messages_that_cannot_be_read_are_passed_on(messages: list[Any]) -> None:
    """A request with unreadable messages is sent upstream unchanged, and counted as a failure."""
    body = json.dumps({"model": "m", "messages": messages}).encode()
    with ScriptedUpstream(answer(400, {})) as upstream:
        async with in_process(upstream) as client:
            await client.post(CHAT, content=body)
            health = (await client.get("/healthz")).json()
    assert [got.body for got in upstream.got] == [body]
    assert sum(health["failures"].values()) == 1


def zstd(data: bytes) -> bytes:
    """Return data compressed with zstd."""
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br"])
async def test_compressed_bodies(encoding: str) -> None:
    """A short compressed body is sent unchanged, a long one compacted as plain JSON, one of unknown encoding unchanged."""
    compress: Any = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd, "br": bytes}[encoding]
    short = compress(json.dumps({"model": "m", "messages": tool_chat(1)}).encode())
    long = compress(long_request())
    with ScriptedUpstream(chat_reply(tokens=50)) as upstream:
        async with in_process(upstream) as client:
            for body in (short, long):
                reply = await client.post(CHAT, content=body, headers={"content-encoding": encoding})
                assert reply.status_code == 200
    assert upstream.got[0].body == short
    assert upstream.got[0].headers["content-encoding"] == encoding
    if encoding == "br":
        assert upstream.got[1].body == long
    else:
        assert "content-encoding" not in upstream.got[1].headers
        assert len(upstream.got[1].json["messages"]) < 41


async def test_a_bomb_is_not_unpacked() -> None:
    """A body that would exceed the limit once it is decompressed is passed on unchanged."""
    bomb = gzip.compress(b" " * 5_000_000)
    with ScriptedUpstream(answer(400, {})) as upstream:
        async with in_process(upstream, max_body=1_000_000) as client:
            await client.post(CHAT, content=bomb, headers={"content-encoding": "gzip"})
    assert upstream.got[0].body == bomb


async def test_chunked_uploads() -> None:
    """A chunked upload without a length is read completely, and is sent upstream with a length."""

    async def pieces() -> AsyncIterator[bytes]:
        body = long_request()
        for start in range(0, len(body), 1_000):
            yield body[start : start + 1_000]

    with ScriptedUpstream(chat_reply()) as upstream, serving(upstream) as url:
        async with httpx.AsyncClient() as client:
            reply = await client.post(f"{url}{CHAT}", content=pieces())
            copy = await client.post(f"{url}/v1/files", content=pieces())
    assert (reply.status_code, copy.status_code) == (200, 200)
    assert "transfer-encoding" not in upstream.got[0].headers
    assert upstream.got[1].body == long_request()


async def test_a_body_of_50_megabytes() -> None:
    """A body of 50 MB is passed on; a body larger than ``max_body`` is refused with status 413."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000_000}}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [image]}]}).encode()
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, window=200_000) as client:
            reply = await client.post(CHAT, content=body)
        async with in_process(upstream, max_body=1_000_000) as client:
            refused = await client.post(CHAT, content=body)
    assert (reply.status_code, refused.status_code) == (200, 413)
    assert "--max-body" in refused.json()["error"]["message"]
    assert [got.body == body for got in upstream.got] == [True]
    assert upstream.got[0].headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in upstream.got[0].headers


def connection(url: str, request: bytes) -> socket.socket:
    """Return a connection to a gateway over which the request was sent."""
    place = urlsplit(url)
    found = socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=WAIT_SECONDS)
    found.sendall(request)
    return found


def post(body: bytes) -> bytes:
    """Return the bytes of a request with this body."""
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def test_a_client_that_disconnects_in_mid_stream() -> None:
    """When a client disconnects during a stream, the gateway closes the upstream's connection and serves the next client."""
    closed: list[float] = []

    def endless(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        try:
            while not handler.server.upstream.closing.is_set():
                handler.chunk(b"data: {}\n\n")
                time.sleep(0.01)
        except OSError:
            closed.append(time.monotonic())

    with ScriptedUpstream(endless, chat_reply()) as upstream, serving(upstream) as url:
        with connection(url, post(long_request())) as client:
            assert b"200 OK" in client.recv(1_000)
        while not closed:
            time.sleep(0.01)
        assert httpx.post(f"{url}{CHAT}", content=long_request()).status_code == 200


def test_a_client_that_disconnects_before_the_answer() -> None:
    """When a client disconnects, its request upstream is cancelled; an incomplete request is never sent upstream."""
    asked: list[bool] = []

    def slow(handler: Handler, got: Got) -> None:
        asked.append(True)
        handler.connection.settimeout(20)
        asked.append(handler.connection.recv(1) == b"")
        handler.close_connection = True

    with ScriptedUpstream(slow, chat_reply()) as upstream, serving(upstream) as url:
        with connection(url, post(long_request())):
            while not asked:
                time.sleep(0.01)
        while len(asked) < 2:
            time.sleep(0.01)
        with connection(url, post(long_request())[:-10]):
            time.sleep(0.05)
        assert httpx.post(f"{url}{CHAT}", content=long_request()).status_code == 200
    assert asked == [True, True]
    assert len(upstream.got) == 2


async def test_an_upstream_that_hangs() -> None:
    """If the upstream does not answer in time, the client gets status 504, and the request is not repeated."""

    def hangs(handler: Handler, got: Got) -> None:
        handler.server.upstream.closing.wait(20)
        handler.close_connection = True

    with ScriptedUpstream(hangs) as upstream:
        async with in_process(upstream, timeout=0.2) as client:
            reply = await client.post(CHAT, content=long_request())
    assert (reply.status_code, len(upstream.got)) == (504, 1)


def resets(handler: Handler, got: Got) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


async def test_an_upstream_that_resets_or_is_not_there() -> None:
    """If the upstream closes the connection or cannot be reached, the client gets 502; a request to a model is not repeated."""
    with ScriptedUpstream(resets) as upstream:
        async with in_process(upstream) as client:
            replies = [await client.post(CHAT, content=long_request()), await client.get("/v1/models")]
    async with in_process(upstream) as client:
        replies.append(await client.post(CHAT, content=long_request()))
    assert [reply.status_code for reply in replies] == [502, 502, 502]
    assert [got.method for got in upstream.got].count("POST") == 1


async def test_the_first_answer_counts_if_the_second_request_gets_none() -> None:
    """If the shortened second request gets no answer, the client gets the length error of the first."""
    error = {"error": {"message": "prompt is too long: 1500 tokens > 900 maximum"}}
    with ScriptedUpstream(answer(400, error), resets) as upstream:
        async with in_process(upstream, window=50_000) as client:
            reply = await client.post(CHAT, content=long_request())
    assert (reply.status_code, reply.json(), len(upstream.got)) == (400, error, 2)


async def test_an_upstream_that_answers_html() -> None:
    """An HTML answer of the upstream is passed on unchanged, whether it is an error or not."""
    page = b"<html>gateway time-out</html>"
    with ScriptedUpstream(answer(200, page, content_type="text/html"), answer(400, page, content_type="text/html")) as upstream:
        async with in_process(upstream) as client:
            replies = [await client.post(CHAT, content=json.dumps({"model": "m", "messages": tool_chat(1)})) for _ in range(2)]
    assert [(reply.status_code, reply.content) for reply in replies] == [(200, page), (400, page)]


def test_half_an_event() -> None:
    """If the upstream breaks off a stream, the received bytes are passed on and the client's connection breaks too."""
    with (
        ScriptedUpstream(events(b'data: {"choices": []}\n\n', b'data: {"cho', ends=False)) as upstream,
        serving(upstream) as url,
    ):
        pieces: list[bytes] = []
        with httpx.stream("POST", f"{url}{CHAT}", content=long_request()) as reply, pytest.raises(httpx.RemoteProtocolError):
            pieces.extend(reply.iter_raw())
        assert httpx.get(f"{url}/healthz").json()["failures"] == {"upstream stopped: ClientPayloadError": 1}
    assert b"".join(pieces) == b'data: {"choices": []}\n\ndata: {"cho'


async def test_an_error_that_breaks_off() -> None:
    """If a length error breaks off before its end, no second request is sent, and the client gets status 502."""

    def broken(handler: Handler, got: Got) -> None:
        handler.begin(400, [("content-type", "application/json"), ("content-length", "500")])
        handler.wfile.write(b'{"error": {"message": "prompt is too long: 1500 tokens > 900 maximum"')
        handler.close_connection = True

    with ScriptedUpstream(broken) as upstream:
        async with in_process(upstream, window=50_000) as client:
            reply = await client.post(CHAT, content=long_request())
    assert (reply.status_code, len(upstream.got)) == (502, 1)
    assert reply.json()["error"]["message"].endswith("the upstream gave no answer (ClientPayloadError)")


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_long_error_is_passed_on(is_chunked: bool) -> None:
    """An error body that is too large to be examined is passed on unchanged, whether its length is known or not."""
    error = b"x" * 2_000_000

    def in_chunks(handler: Handler, got: Got) -> None:
        handler.begin(400, [("content-type", "text/plain"), ("transfer-encoding", "chunked")])
        for _ in range(4):
            handler.chunk(error[:500_000])
        handler.wfile.write(b"0\r\n\r\n")

    with ScriptedUpstream(in_chunks if is_chunked else answer(400, error)) as upstream:
        async with in_process(upstream) as client:
            reply = await client.post(CHAT, content=long_request())
    assert (reply.status_code, reply.content == error, len(upstream.got)) == (400, True, 1)


async def test_redirects_are_not_followed() -> None:
    """A redirect is passed on to the client and not followed."""
    with ScriptedUpstream(answer(307, b"", location="http://127.0.0.1:9/elsewhere")) as upstream:
        async with in_process(upstream) as client:
            reply = await client.post(CHAT, content=long_request())
    assert (reply.status_code, reply.headers["location"], len(upstream.got)) == (307, "http://127.0.0.1:9/elsewhere", 1)


async def test_a_conversation_that_shrinks_or_goes_back() -> None:
    """If an agent sends a shorter or earlier conversation, the gateway sends that conversation, and every request is valid."""
    messages = tool_chat(20)
    summary = [{"role": "user", "content": "Summary of what was done so far."}, *messages[-4:]]
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            for given in (messages, summary, messages[:5], messages[:-2], messages):
                body = json.dumps({"model": "m", "messages": given}).encode()
                reply = await client.post(CHAT, content=body, headers={"x-session-id": "one"})
                assert reply.status_code == 200
    sent = [got.json["messages"] for got in upstream.got]
    assert sent[1] == summary
    assert sent[2] == messages[:5]
    assert all(is_valid("openai-chat", each) for each in sent)
    assert sent[4][-1] == messages[-1]


async def test_two_clients_in_one_conversation_at_once() -> None:
    """Eight simultaneous clients in one session each get the answer to their own messages."""
    shared = tool_chat(12)
    lists = [[*shared, {"role": "user", "content": f"client {name} asks"}] for name in range(8)]

    def echo(handler: Handler, got: Got) -> None:
        chat_reply(got.json["messages"][-1]["content"])(handler, got)

    replies: dict[int, str] = {}
    with ScriptedUpstream(echo) as upstream:
        async with in_process(upstream) as client:

            async def ask(place: int) -> None:
                body = json.dumps({"model": "m", "messages": lists[place]}).encode()
                reply = await client.post(CHAT, content=body, headers={"x-session-id": "shared"})
                replies[place] = reply.json()["choices"][0]["message"]["content"]

            async with anyio.create_task_group() as group:
                for place in range(len(lists)):
                    group.start_soon(ask, place)
    assert replies == {place: f"client {place} asks" for place in range(8)}
    assert all(is_valid("openai-chat", got.json["messages"]) for got in upstream.got)


async def test_a_store_that_is_locked(tmp_path: Path) -> None:
    """If another process locks the store, requests are still answered, and the failure is counted."""
    path = tmp_path / "gateway.db"
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, store=path) as client:
            holder = sqlite3.connect(path)
            holder.execute("BEGIN EXCLUSIVE")
            try:
                reply = await client.post(CHAT, content=long_request())
            finally:
                holder.close()
            health = (await client.get("/healthz")).json()
    assert reply.status_code == 200
    assert any("SessionStore" in name for name in health["failures"])
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_strategy_that_raises() -> None:
    """If a strategy raises, the request is sent unchanged, and the failure is counted by its type without its text."""

    def broken(index: Any) -> Any:
        raise RuntimeError("a secret text")
        yield

    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, strategy=lambda window: broken) as client:
            reply = await client.post(CHAT, content=long_request())
            health = (await client.get("/healthz")).json()
    assert reply.status_code == 200
    assert upstream.got[0].body == long_request()
    assert "RuntimeError" in str(health)
    assert "secret" not in str(health)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), (" X-GZIP ", gzip.compress), ("deflate", zlib.compress), ("zstd", zstd), ("Identity", bytes)],
)
def test_bodies_are_unpacked_up_to_a_limit(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """A body of exactly the limit is read. A larger one is given up while it is unpacked, and no text of it is in a log."""
    data = b'{"messages": ["secret"], "x": "' + base64.b64encode(Random(7).randbytes(150_000)) + b'"}'
    assert decoded(pack(data), encoding, len(data)) == data
    if pack is not bytes:
        with pytest.raises(TooLarge):
            decoded(pack(data), encoding, len(data) - 1)
    assert len(repr(read_request(data, "messages"))) < 100


def test_an_unknown_encoding_is_named_as_such() -> None:
    """The reason in logs and metrics tells a body that nobody here can decode from a damaged one."""
    with pytest.raises(Unreadable) as unknown:
        decoded(b"body", "br", 100)
    with pytest.raises(Unreadable) as damaged:
        decoded(b"body", "gzip", 100)
    assert [str(unknown.value), str(damaged.value)] == ["content-encoding", "damaged content-encoding"]


def test_a_passed_on_body_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is streamed to an upstream and stops is the client's fault, not the upstream's."""
    monkeypatch.setattr("compaction.gateway.client._IDLE_SECONDS", 0.1)
    with ScriptedUpstream(answer(200, {})) as upstream, serving(upstream) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address, timeout=WAIT_SECONDS) as client:
            client.sendall(b"POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\nabc")
            status = int(client.recv(100).split()[1])
        failures = httpx.get(f"{url}/healthz").json()["failures"]
    assert (status, failures) == (408, {})
