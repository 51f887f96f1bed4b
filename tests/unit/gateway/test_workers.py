"""Several processes at one address: a conversation stays with one of them, whichever accepts a request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import socket
import threading
import time
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
    GatewayProcess,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    client_of,
    events,
    lifespan,
    never,
    request_of,
    serving_app,
    settings_of,
    tool_chat,
)
from tests.support.limits import WAIT_SECONDS

NAMES = "abcd"
COUNTS = range(1, 42, 4)


def post(gateway: GatewayProcess, body: bytes) -> int:
    return gateway.client.post(CHAT, content=body, headers={"connection": "close"}).status_code


def status(gateway: GatewayProcess) -> Any:
    return gateway.client.get("/status.json").json()


@pytest.mark.slow
def test_two_workers_send_what_one_sends(tmp_path: Path) -> None:
    """The same bytes reach the upstream, the page shows the sums, and a worker that was killed is replaced."""
    sent: dict[int, list[bytes]] = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        with (
            ScriptedUpstream(chat_reply()) as upstream,
            GatewayProcess(upstream.url, folder, "--workers", str(workers), window=2_500) as gateway,
        ):
            for count in COUNTS:
                for name in NAMES:
                    assert post(gateway, body_of(tool_chat(20, name=name)[:count])) == 200
                _until_counted(gateway, upstream)
            sent[workers] = [got.body for got in upstream.got]
            seen = status(gateway)
            assert [each["requests"] for each in seen["conversations"]] == [len(COUNTS)] * len(NAMES)
            assert seen["requests"] == [{"route": "chat", "status": 200, "count": len(COUNTS) * len(NAMES)}]
            assert seen["failures"] == {}
            if workers == 2:
                _kill_a_worker(gateway)
                for name in NAMES:
                    assert post(gateway, body_of(tool_chat(20, name=name))) == 200
    assert sent[1] == sent[2]
    assert any(len(json.loads(body)["messages"]) < COUNTS[-1] for body in sent[2][-len(NAMES) :])


@pytest.mark.slow
def test_a_connection_finds_the_worker_of_its_conversation(tmp_path: Path) -> None:
    """An answer that was handed over closes the connection, until the client's next one reaches the right worker."""

    def is_closed(name: str) -> bool:
        got = gateway.client.post(CHAT, content=body_of(tool_chat(2, name=name)))
        return bool(got.headers.get("connection") == "close")

    with (
        ScriptedUpstream(chat_reply()) as upstream,
        GatewayProcess(upstream.url, tmp_path, "--workers", "2", window=9_000) as gateway,
    ):
        elsewhere = next(name for name in map(str, range(1_000)) if is_closed(name))
        tries = [is_closed(elsewhere) for _ in range(60)]
    assert tries == sorted(tries, reverse=True)
    assert not tries[-1]


def _until_counted(gateway: GatewayProcess, upstream: ScriptedUpstream) -> None:
    """Wait until the gateway has counted all answers: what a provider reports corrects the next request."""
    while sum(each["count"] for each in status(gateway)["requests"]) < len(upstream.got):
        time.sleep(0.01)


def _kill_a_worker(gateway: GatewayProcess) -> None:
    children = Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children")
    first, *_ = before = children.read_text().split()
    os.kill(int(first), signal.SIGKILL)
    while len(now := children.read_text().split()) < len(before) or first in now:
        assert gateway.process.poll() is None
        time.sleep(0.02)


CLAUDE = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
MARKED = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ({"messages": CLAUDE[:1]}, {"messages": CLAUDE}, True),
        ({"messages": CLAUDE}, {"messages": MARKED}, True),
        ({"messages": CLAUDE}, {"system": "It is ten.", "messages": [{"role": "system", "content": "x"}, *CLAUDE]}, True),
        ({"messages": CLAUDE}, {"messages": CLAUDE[2:]}, False),
    ],
    ids=["it grows", "breakpoints", "instructions", "another"],
)
def test_the_first_messages_name_a_conversation(first: Any, second: Any, is_same: bool) -> None:
    """All requests of a conversation have the same key, which is the agent's id if it sends one."""
    one, two = (request_of(each["messages"], "/v1/messages").beginning for each in (first, second))
    assert (one == two) is is_same
    assert request_of(first["messages"], id="s").beginning == b"s"


def test_messages_that_cannot_be_read_have_no_key() -> None:
    """A request with a wrong role, or with one that is nested too deep, is served by any worker."""
    nested: Any = "x"
    for _ in range(100_000):
        nested = [nested]
    assert request_of([{"role": ["user"], "content": "hi"}]).beginning == b""
    assert request_of([{"role": "user", "content": nested}]).beginning == b""


def test_conversations_are_shared_out(tmp_path: Path) -> None:
    """A busy worker gives new conversations to the others that listen, and takes over those of one that ended."""
    alone = Workers(tmp_path, 3, 0)
    assert {alone.owner(b"early %d" % number) for number in range(20)} == {0}
    alone.socket(1).touch()
    owners = [alone.owner(b"%d" % number) for number in range(100)]
    assert owners.count(0) + 20 - owners.count(1) in (0, 1, 2)
    assert [alone.owner(b"%d" % number) for number in range(100)] == owners
    assert alone.owner(b"") == 0
    lost = b"%d" % owners.index(1)
    alone.take_over(lost)
    assert Workers(tmp_path, 3, 2).owner(lost) == 0
    missing = Workers(tmp_path / "missing", 3, 2)
    missing.take_over(lost)
    assert missing.owner(lost) == 2


@pytest.mark.parametrize("seed", range(4))
def test_requests_that_come_at_once_get_one_worker(seed: int, tmp_path: Path) -> None:
    """However the first requests of conversations interleave, all workers name the same one for each."""
    names = [b"%d" % number for number in range(40)]
    begin = threading.Barrier(4)

    def decide(number: int) -> list[int]:
        chance, worker = random.Random(10 * seed + number), Workers(tmp_path, 4, number)
        worker.socket(number).touch()
        found: dict[bytes, int] = {}
        begin.wait()
        for name in chance.sample(names, len(names)):
            found[name] = worker.owner(name)
        return [found[name] for name in names]

    with ThreadPoolExecutor(4) as threads:
        owners, *others = threads.map(decide, range(4))
    assert others == [owners] * 3


# ------------------------------------------------------------------------ two in the test's process

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "headers": []}


@contextlib.asynccontextmanager
async def worker(upstream: ScriptedUpstream, folder: Path, number: int, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of one of two workers, in this event loop."""
    workers = Workers(folder, 2, number)
    async with lifespan(settings_of(upstream.url, **options), workers=workers) as app, client_of(app) as client:
        yield client


@contextlib.asynccontextmanager
async def two_workers(upstream: ScriptedUpstream, folder: Path, **options: Any) -> AsyncGenerator[list[httpx.AsyncClient]]:
    """Clients of both, of which the first gets every conversation that begins there."""
    async with worker(upstream, folder, 0, **options) as one, worker(upstream, folder, 1, **options) as other:
        yield [one, other]


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
    body = body_of(tool_chat(2))
    with ScriptedUpstream(chat_reply()) as upstream:
        async with worker(upstream, tmp_path, 0) as first:
            assert (await first.post(CHAT, content=body)).status_code == 200
        async with worker(upstream, tmp_path, 1) as second:
            for _ in range(2):
                assert (await second.post(CHAT, content=body)).status_code == 200
            async with worker(upstream, tmp_path, 0) as first:
                assert (await first.post(CHAT, content=body)).status_code == 200
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

    found, body = list[httpx.Response](), body_of(tool_chat(2))
    with ScriptedUpstream(chat_reply(), slow, chat_reply()) as upstream:
        async with worker(upstream, tmp_path, 1) as other:

            async def post() -> None:
                found.append(await other.post(CHAT, content=body))

            async with anyio.create_task_group() as group, worker(upstream, tmp_path, 0) as first:
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
        async with worker(upstream, tmp_path, 1) as client:
            ending = Workers(tmp_path, 2, 0)
            async with ending.listening(begins, {}):
                assert ending.owner(request_of(tool_chat(2)).beginning) == 0
                await client.post(CHAT, content=body_of(tool_chat(2)))
            status = (await client.get("/status.json")).json()
    assert {each["status"]: each["count"] for each in status["requests"]} == {200: 1}
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "compaction.gateway"]
    assert (line["status"], line["error"]) == (200, "another worker stopped in the middle of an answer")


async def test_a_worker_that_ends_before_it_has_the_request_is_replaced(tmp_path: Path) -> None:
    """Nothing was sent, so another worker may serve it."""

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.close()

    async with await asyncio.start_unix_server(close, tmp_path / "1.sock"):
        assert await Workers(tmp_path, 2, 0).hand_over(1, SCOPE, b"{}", never) is None


async def test_a_fault_of_one_request_is_logged_and_ends_no_worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The other worker does not serve the request itself, because it may have been sent."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    asking, asked = Workers(tmp_path, 3, 0), Workers(tmp_path, 3, 1)
    async with asked.listening(broken, {}):
        with pytest.raises(NoAnswer):
            await asking.hand_over(1, SCOPE, b"{}", never)
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]
    assert await asking.hand_over(1, SCOPE, b"{}", never) is None


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
