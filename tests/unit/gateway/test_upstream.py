"""The HTTP client of the upstreams: what it sends, and what it makes of answers that fail."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from compaction.gateway.upstream import NoAnswer, Upstreams
from tests.support.gateways import Answer, Got, Handler, ScriptedUpstream, answer, settings_of
from tests.support.limits import WAIT_SECONDS


async def send(upstreams: Upstreams, path: bytes = b"/v1/models", query: bytes = b"") -> Any:
    return await upstreams.send("GET", "openai", (path, query), [], None)


async def test_requests_do_not_wait_for_each_other() -> None:
    """Many are under way at once, each with a connection."""
    barrier = threading.Barrier(3)

    def together(handler: Handler, got: Got) -> None:
        barrier.wait(WAIT_SECONDS)
        answer(200, {})(handler, got)

    with ScriptedUpstream(together) as upstream:
        async with Upstreams(settings_of(upstream.url)) as upstreams:

            async def sent() -> None:
                (await send(upstreams)).close()

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(sent)
    assert not barrier.broken
    assert {tuple(got.headers) for got in upstream.got} == {("host",)}


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
