"""Several processes at one address: a conversation stays with one of them, whichever accepts a request."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compaction.gateway.workers import Workers
from tests.support.gateways import CHAT, GatewayProcess, ScriptedUpstream, body_of, chat_reply, request_of, tool_chat

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
