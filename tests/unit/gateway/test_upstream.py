"""The HTTP client of the upstreams: what it sends, and what it makes of answers that fail."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from compaction.gateway.upstream import NoAnswer, Upstreams
from tests.support.gateways import (
    CHAT,
    Answer,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    in_process,
    settings_of,
    tool_chat,
)


async def send(upstreams: Upstreams, path: bytes = b"/v1/models", query: bytes = b"") -> Any:
    return await upstreams.send("GET", "openai", (path, query), [], None)


def chunked(*sizes: int) -> Answer:
    def give(handler: Handler, got: Got) -> None:
        handler.begin(400, [("transfer-encoding", "chunked")])
        for size in sizes:
            handler.chunk(b"x" * size)
        handler.wfile.write(b"0\r\n\r\n")

    return give


@pytest.mark.parametrize(
    ("given", "size", "is_read"),
    [
        (answer(400, b"x" * 10), 10, True),
        (answer(400, b"x" * 11), 11, False),
        (chunked(6, 4), 10, True),
        (chunked(6, 5), 11, False),
        (chunked(6, 5, 4), 15, False),
    ],
    ids=["just fits", "too large", "just fits, in chunks", "too large, in chunks", "more follows"],
)
async def test_answers_are_read_up_to_a_limit(given: Answer, size: int, is_read: bool) -> None:
    """An answer that is too large to be read first is streamed whole."""
    with ScriptedUpstream(given) as upstream:
        async with Upstreams(settings_of(upstream.url)) as upstreams:
            found = await send(upstreams)
            assert await found.read(10) is is_read
            assert (found.status, is_read) == (400, bytes(found.body) == b"x" * 10)
            assert b"".join([chunk async for chunk in found.chunks()]) == b"x" * size
            found.close()  # the client's task of writing the request may end later than the answer


async def test_a_failure_says_what_was_tried() -> None:
    """The address without password and query, and at most 200 characters of the cause, in one line."""

    def garbage(handler: Handler, got: Got) -> None:
        handler.wfile.write(b"HTTP/1.1 2x0 " + b"y" * 500 + b"\r\n\r\n")
        handler.close_connection = True

    with ScriptedUpstream(garbage) as upstream:
        url = upstream.url.replace("//", "//me:secret@")
        async with Upstreams(settings_of(url)) as upstreams:
            with pytest.raises(NoAnswer) as caught:
                await send(upstreams, query=b"key=k1")
    failure = caught.value
    tried = f"the upstream gave no answer ({failure.why}: {upstream.url}/v1/models, "
    assert failure.status == 502
    assert failure.says.startswith(tried)
    assert len(failure.says) <= len(tried) + 200 + 1


def contains(folder: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in folder.iterdir())


async def test_no_page_shows_a_password_of_an_address(tmp_path: Path) -> None:
    """It is sent to the upstream, but is neither in a conversation's row, nor in a learned window, nor in a file."""
    too_long = {"error": {"message": "This model's maximum context length is 1500 tokens.", "code": "context_length_exceeded"}}
    with ScriptedUpstream(answer(400, too_long), chat_reply()) as upstream:
        url, store = upstream.url.replace("//", "//me:hunter22@"), tmp_path / "gateway.db"
        async with in_process(upstream, openai_url=f"{url}/v1", store=store) as client:
            assert (await client.post(CHAT, content=body_of(tool_chat(20)))).status_code == 200
            status = await client.get("/status.json")
    assert {got.headers["authorization"] for got in upstream.got} == {f"Basic {base64.b64encode(b'me:hunter22').decode()}"}
    assert [each["upstream"] for each in status.json()["conversations"]] == [f"{upstream.url}/v1"]
    assert list(status.json()["windows"]) == [f"m at {upstream.url}/v1"]
    assert not contains(tmp_path, b"hunter22")


def test_settings_show_no_secret() -> None:
    """Upstreams are shown without a password; signing secrets and the token are not shown."""
    settings = settings_of("http://me:hunter22@host:8080", keys=("hunter23",), token="hunter24")
    assert settings.openai_url == "http://me:hunter22@host:8080/v1"
    assert "openai_url='http://host:8080/v1'" in repr(settings)
    assert "hunter" not in repr(settings)
