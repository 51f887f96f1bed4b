"""Bad input from clients or upstream: no request hangs, no answer is lost, and unreadable input is passed on unchanged."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import httpx
import pytest

from compaction.gateway.bodies import Unreadable, decoded, read_request
from tests.support.gateways import (
    CHAT,
    Answer,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    served,
    serving,
    tool_chat,
)

SHORT, LONG = body_of(tool_chat(1)), body_of(tool_chat(20))


# ------------------------------------------------------------------------ of clients


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
        *((each, "not JSON") for each in (b"", b"hello", b'{"model": "m", "messages": [', b"\xff\xfe{}", b"[" * 100_000)),
        *((each, "not an object") for each in (b"[1, 2]", b'"text"', b"null")),
        *((each, "no list of messages") for each in (b'{"model": "m"}', b'{"messages": {"role": "user"}}')),
    ],
)
def test_what_is_not_a_request(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_request(body, "messages")


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br"])
async def test_compressed_bodies(encoding: str) -> None:
    """A short compressed body is sent unchanged, a long one compacted as plain JSON, one of unknown encoding unchanged."""
    compress: Any = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd, "br": bytes}[encoding]
    short, long = compress(SHORT), compress(LONG)
    found = await served([chat_reply(tokens=50)], short, long, headers={"content-encoding": encoding})
    assert (found.got[0].body, found.got[0].headers["content-encoding"]) == (short, encoding)
    if encoding == "br":
        assert found.got[1].body == long
    else:
        assert "content-encoding" not in found.got[1].headers
        assert len(found.got[1].json["messages"]) < 41


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), (" X-GZIP ", gzip.compress), ("deflate", zlib.compress), ("zstd", zstd), ("Identity", bytes)],
)
def test_bodies_are_unpacked_up_to_a_limit(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """A body of exactly the limit is read. A larger one is given up while it is unpacked, and no text of it is in a log."""
    data = b'{"messages": ["secret"], "x": "' + base64.b64encode(Random(7).randbytes(150_000)) + b'"}'
    assert decoded(pack(data), encoding, len(data)) == data
    if pack is not bytes:
        with pytest.raises(Unreadable, match="too large"):
            decoded(pack(data), encoding, len(data) - 1)
    assert len(repr(read_request(data, "messages"))) < 100


async def test_chunked_uploads() -> None:
    """A chunked upload without a length is read completely, and is sent upstream with a length."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(LONG), 1_000):
            yield LONG[start : start + 1_000]

    with ScriptedUpstream(chat_reply()) as upstream, serving(upstream) as url:
        async with httpx.AsyncClient() as client:
            replies = [await client.post(f"{url}{path}", content=pieces()) for path in (CHAT, "/v1/files")]
    assert [reply.status_code for reply in replies] == [200, 200]
    assert "transfer-encoding" not in upstream.got[0].headers
    assert upstream.got[1].body == LONG


async def test_a_body_of_50_megabytes() -> None:
    """A body of 50 MB is passed on; a body larger than ``max_body`` is refused with status 413."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000_000}}
    body = body_of([{"role": "user", "content": [image]}])
    found = await served([answer(200, {})], body, window=200_000)
    refused = await served([answer(200, {})], body, max_body=1_000_000)
    assert [reply.status_code for reply in (*found.replies, *refused.replies)] == [200, 413]
    assert "--max-body" in refused.replies[0].json()["error"]["message"]
    assert (found.got[0].body == body, refused.got) == (True, [])
    assert found.got[0].headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in found.got[0].headers


# ------------------------------------------------------------------------ of upstreams


def hangs(handler: Handler, got: Got) -> None:
    handler.server.upstream.closing.wait(20)
    handler.close_connection = True


def broken(handler: Handler, got: Got) -> None:
    """Break off in the middle of a length error."""
    handler.begin(400, [("content-type", "application/json"), ("content-length", "500")])
    handler.wfile.write(b'{"error": {"message": "prompt is too long: 1500 tokens > 900 maximum"')
    handler.close_connection = True


def hangs_in_a_refusal(handler: Handler, got: Got) -> None:
    """Hang in the middle of a length error."""
    handler.begin(400, [("content-type", "application/json"), ("transfer-encoding", "chunked")])
    handler.chunk(b'{"error": ')
    hangs(handler, got)


@pytest.mark.parametrize(
    ("upstream", "status", "why"),
    [(hangs, 504, "Timeout"), (broken, 502, "ClientPayloadError"), (hangs_in_a_refusal, 502, "Timeout")],
)
async def test_an_upstream_that_hangs_or_breaks_off(upstream: Answer, status: int, why: str) -> None:
    """The client is told why, and the request is not repeated. The garbage collector finds no open connection."""
    found = await served([upstream], LONG, timeout=0.2, window=50_000)
    gc.collect()
    assert (found.replies[0].status_code, len(found.got)) == (status, 1)
    assert why in found.replies[0].json()["error"]["message"]


@pytest.mark.parametrize(
    ("given", "status", "body"),
    [
        (answer(200, b"<html>oh</html>", content_type="text/html"), 200, b"<html>oh</html>"),
        (answer(400, b"<html>oh</html>", content_type="text/html"), 400, b"<html>oh</html>"),
        (answer(307, b"", location="http://127.0.0.1:9/elsewhere"), 307, b""),
        (answer(400, b"x" * 2_000_000), 400, b"x" * 2_000_000),
    ],
    ids=["a page", "an error page", "a redirect", "a large error"],
)
async def test_an_odd_answer_is_passed_on(given: Answer, status: int, body: bytes) -> None:
    """Whatever it is, it reaches the client as it came, and the request is not sent again."""
    found = await served([given], SHORT)
    assert (found.replies[0].status_code, found.replies[0].content == body, len(found.got)) == (status, True, 1)
    assert found.replies[0].headers.get("location") == ("http://127.0.0.1:9/elsewhere" if status == 307 else None)


# ------------------------------------------------------------------------ of the gateway's own parts
