"""Two workers in the test's process: a conversation stays with one of them, whichever gets its requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from compaction import last
from compaction.gateway import create_app
from compaction.gateway.upstream import NoAnswer
from compaction.gateway.workers import Workers
from compaction.strategies import Summarization
from compaction.triggers import tokens_exceed
from tests.support.gateways import (
    CHAT,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    client_of,
    events,
    lifespan,
    request_of,
    serving_app,
    settings_of,
    tool_chat,
)
from tests.support.limits import WAIT_SECONDS

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "headers": []}


@contextlib.asynccontextmanager
async def two_workers(upstream: ScriptedUpstream, folder: Path, **options: Any) -> AsyncGenerator[list[httpx.AsyncClient]]:
    """Clients of two workers in this event loop, of which the first gets every conversation that begins there."""
    async with contextlib.AsyncExitStack() as stack:
        apps = [
            await stack.enter_async_context(lifespan(settings_of(upstream.url, **options), workers=Workers(folder, 2, number)))
            for number in range(2)
        ]
        yield [await stack.enter_async_context(client_of(app)) for app in apps]


async def test_a_conversation_has_one_worker_whichever_gets_its_requests(tmp_path: Path) -> None:
    """Requests, pages and deletions mean the same at both; an answer that is handed over has the upstream's bytes."""
    pieces = [b"data: 1\n\n", b"data: " + b"x" * 100_000 + b"\n\n"]
    with ScriptedUpstream(chat_reply(), events(*pieces)) as upstream:
        async with two_workers(upstream, tmp_path, record=tmp_path / "runs") as (one, other):
            await one.post(CHAT, content=body_of(tool_chat(20)[:21]))
            reply = await other.post(f"{CHAT}?beta=1", content=body_of(tool_chat(20)), headers={"x-a": "b"})
            seen = [(await each.get("/status.json")).json() for each in (one, other)]
            found = [(await each.delete(f"/conversations/{seen[0]['conversations'][0]['id']}")) for each in (other, one)]
            left = [(await each.get("/status.json")).json()["conversations"] for each in (one, other)]
    assert reply.content == b"".join(pieces)
    assert reply.headers["content-type"] == "text/event-stream"
    assert (upstream.got[1].path, upstream.got[1].headers["x-a"]) == (f"{CHAT}?beta=1", "b")
    assert len(upstream.got[1].json["messages"]) < len(tool_chat(20))
    for each in seen:
        assert [conversation["requests"] for conversation in each["conversations"]] == [2]
        assert each["requests"] == [{"route": "chat", "status": 200, "count": 2}]
        assert (each["held"], each["totals"]["requests"], each["failures"]) == (1, 2, {})
    assert [reply.status_code for reply in found] == [204, 404]
    assert left == [[], []]
    assert list((tmp_path / "runs").iterdir()) == []


async def test_a_window_that_one_worker_learns_the_other_uses(tmp_path: Path) -> None:
    """Its conversations are not refused; the page of each shows the window once."""
    said = "This model's maximum context length is 6000 tokens. However, your messages resulted in 16000 tokens."
    refusal = answer(400, {"error": {"message": said, "code": "context_length_exceeded"}})
    with ScriptedUpstream(refusal, chat_reply()) as upstream:
        async with two_workers(upstream, tmp_path, window=100_000) as (one, other):
            for place, client in enumerate((one, one, one, other)):
                await client.post(CHAT, content=body_of(tool_chat(100, name="abcd"[place])))
            windows = [(await each.get("/status.json")).json()["windows"] for each in (one, other)]
    assert len(upstream.got) == 5
    assert [list(each.values()) for each in windows] == [[6_000], [6_000]]


async def test_a_worker_that_does_not_run_is_replaced(tmp_path: Path) -> None:
    """Its conversations move to the worker that gets their next request, whether its socket is gone or nobody listens."""
    with ScriptedUpstream(chat_reply()) as upstream:
        settings = settings_of(upstream.url)
        async with lifespan(settings, workers=Workers(tmp_path, 2, 0)) as app, client_of(app) as first:
            assert (await first.post(CHAT, content=body_of(tool_chat(2)))).status_code == 200
        async with lifespan(settings, workers=Workers(tmp_path, 2, 1)) as app, client_of(app) as second:
            for _ in range(2):
                assert (await second.post(CHAT, content=body_of(tool_chat(2)))).status_code == 200
            async with lifespan(settings, workers=Workers(tmp_path, 2, 0)) as other, client_of(other) as first:
                assert (await first.post(CHAT, content=body_of(tool_chat(2)))).status_code == 200
                (conversation,) = (await first.get("/status.json")).json()["conversations"]
    assert conversation["requests"] == 3


@contextlib.contextmanager
def two_servers(upstream: ScriptedUpstream, folder: Path) -> Generator[list[str]]:
    with contextlib.ExitStack() as stack:
        settings = settings_of(upstream.url)
        apps = [create_app(settings, workers=Workers(folder, 2, number)) for number in range(2)]
        yield [stack.enter_context(serving_app(app)) for app in apps]


def test_an_answer_that_stops_at_another_worker_breaks_the_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets what came and no end, without a traceback in a log; the next request is answered."""
    stops = events(b"data: {}\n\n", ends=False)
    with ScriptedUpstream(chat_reply(), stops, chat_reply()) as upstream, two_servers(upstream, tmp_path) as (one, other):
        body, pieces = body_of(tool_chat(2)), list[bytes]()
        assert httpx.post(f"{one}{CHAT}", content=body).status_code == 200
        with httpx.stream("POST", f"{other}{CHAT}", content=body) as reply, pytest.raises(httpx.RemoteProtocolError):
            pieces.extend(reply.iter_raw())
        assert httpx.post(f"{other}{CHAT}", content=body).status_code == 200
        failures = [httpx.get(f"{url}/healthz").json()["failures"] for url in (one, other)]
    assert pieces == [b"data: {}\n\n"]
    assert "upstream stopped: ClientPayloadError" in failures[0]
    assert failures[0] == failures[1]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_burst_of_requests_is_handed_over(tmp_path: Path) -> None:
    """However many arrive at once, none of them finds that the other worker does not run."""

    async def answers(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ignore(message: Any) -> None:
        pass

    asking, asked = Workers(tmp_path, 2, 0), Workers(tmp_path, 2, 1)
    async with asked.listening(answers, {}):
        found = await asyncio.gather(*[asking.hand_over(1, SCOPE, b"{}", ignore) for _ in range(200)])
    assert found == [204] * 200


async def test_a_worker_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """A stopped process still accepts connections. Its silence counts as the given answer, or as none."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        pass

    asking = Workers(tmp_path, 3, 0, answer_seconds=0.05)
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(asking.socket(1)))
        stopped.listen()
        async with Workers(tmp_path, 3, 2).listening(app, {"forget": lambda name: f"{name} is unknown"}):
            assert await asking.ask("forget", "a", answer=str, silent="in use") == ["in use", "a is unknown"]
            assert await asking.ask("forget", "a", answer=str) == ["a is unknown"]


async def test_a_request_is_never_sent_twice_because_its_worker_ends(tmp_path: Path) -> None:
    """A worker ends while the model writes its answer: the client gets an error, and another worker serves the next request."""
    asked, may_end = threading.Event(), threading.Event()

    def slow(handler: Handler, got: Got) -> None:
        asked.set()
        may_end.wait(WAIT_SECONDS)
        handler.close_connection = True

    found: list[httpx.Response] = []
    with ScriptedUpstream(chat_reply(), slow, chat_reply()) as upstream:
        settings, body = settings_of(upstream.url), body_of(tool_chat(2))
        async with lifespan(settings, workers=Workers(tmp_path, 2, 1)) as app, client_of(app) as other:

            async def post() -> None:
                found.append(await other.post(CHAT, content=body))

            owner = lifespan(settings, workers=Workers(tmp_path, 2, 0))
            async with anyio.create_task_group() as group, owner as owning, client_of(owning) as first:
                assert (await first.post(CHAT, content=body)).status_code == 200
                group.start_soon(post)
                await anyio.to_thread.run_sync(asked.wait)
            may_end.set()
            assert len(upstream.got) == 2
            await post()
            status = (await other.get("/status.json")).json()
    assert [reply.status_code for reply in found] == [502, 200]
    assert "WorkerStopped" in found[0].json()["error"]["message"]
    assert len(upstream.got) == 3
    assert status["failures"] == {"upstream: WorkerStopped": 1}
    assert {each["status"]: each["count"] for each in status["requests"]} == {200: 1, 502: 1}


async def test_a_worker_that_ends_in_the_middle_of_its_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It can log no request any more, so the worker that handed the request over counts and logs it."""

    async def begins(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ConnectionError

    caplog.set_level(logging.INFO, "compaction.gateway")
    with ScriptedUpstream() as upstream:
        settings, body = settings_of(upstream.url), body_of(tool_chat(2))
        async with lifespan(settings, workers=Workers(tmp_path, 2, 1)) as app, client_of(app) as client:
            ending = Workers(tmp_path, 2, 0)
            async with ending.listening(begins, {}):
                assert ending.owner(request_of(tool_chat(2)).beginning) == 0
                await client.post(CHAT, content=body)
            status = (await client.get("/status.json")).json()
    assert {each["status"]: each["count"] for each in status["requests"]} == {200: 1}
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "compaction.gateway"]
    assert (line["status"], line["error"]) == (200, "another worker stopped in the middle of an answer")


async def test_a_worker_that_ends_before_it_has_the_request_is_replaced(tmp_path: Path) -> None:
    """Nothing was sent, so another worker may serve it."""

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.close()

    async def send(message: Any) -> None:
        raise AssertionError(message)

    async with await asyncio.start_unix_server(close, tmp_path / "1.sock"):
        assert await Workers(tmp_path, 2, 0).hand_over(1, SCOPE, b"{}", send) is None


async def test_a_fault_of_one_request_is_logged_and_ends_no_worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The other worker does not serve the request itself, because it may have been sent."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    async def send(message: Any) -> None:
        raise AssertionError(message)

    asking, asked = Workers(tmp_path, 3, 0), Workers(tmp_path, 3, 1)
    async with asked.listening(broken, {}):
        with pytest.raises(NoAnswer):
            await asking.hand_over(1, SCOPE, b"{}", send)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]
    assert await asking.hand_over(1, SCOPE, b"{}", send) is None


def test_a_client_that_leaves_ends_its_request_at_another_worker(tmp_path: Path) -> None:
    """The worker that serves it cancels the request upstream, and serves the next one."""
    closed, asked = threading.Event(), threading.Event()

    def hangs(handler: Handler, got: Got) -> None:
        asked.set()
        handler.connection.settimeout(WAIT_SECONDS)
        if not handler.connection.recv(1):
            closed.set()
        handler.close_connection = True

    with (
        ScriptedUpstream(chat_reply(), hangs, chat_reply()) as upstream,
        two_servers(upstream, tmp_path) as (one, other),
        ThreadPoolExecutor(1) as threads,
    ):
        body = body_of(tool_chat(2))
        assert httpx.post(f"{one}{CHAT}", content=body).status_code == 200
        client = httpx.Client(timeout=httpx.Timeout(WAIT_SECONDS, read=0.2))
        lost = threads.submit(client.post, f"{other}{CHAT}", content=body)
        assert isinstance(lost.exception(), httpx.ReadTimeout)
        client.close()
        assert asked.wait(WAIT_SECONDS)
        assert closed.wait(WAIT_SECONDS)
        assert httpx.post(f"{other}{CHAT}", content=body).status_code == 200
        (conversation,) = httpx.get(f"{one}/status.json").json()["conversations"]
    assert conversation["requests"] == 2


async def test_a_conversation_that_is_in_use_elsewhere_is_not_deleted(tmp_path: Path) -> None:
    """The answer says so, and the conversation stays; the same request succeeds later."""
    asked, may_answer = anyio.Event(), anyio.Event()

    class Model:
        async def generate(self, prompt: str) -> str:
            asked.set()
            await may_answer.wait()
            return "A summary."

    strategy = Summarization(Model(), trigger=tokens_exceed(1_000), keep=last(groups=3))
    with ScriptedUpstream(chat_reply()) as upstream:
        async with two_workers(upstream, tmp_path, strategy=lambda window: strategy, awaits=True) as (one, other):
            await one.post(CHAT, content=body_of(tool_chat(2)))
            (conversation,) = (await other.get("/status.json")).json()["conversations"]
            address = f"/conversations/{conversation['id']}"
            async with anyio.create_task_group() as group:
                group.start_soon(partial(one.post, CHAT, content=body_of(tool_chat(40))))
                await asked.wait()
                refused = await other.delete(address)
                may_answer.set()
            deleted = [(await each.delete(address)).status_code for each in (other, one)]
    assert (refused.status_code, deleted) == (409, [204, 404])
