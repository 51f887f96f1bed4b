"""Unused conversations are deleted from memory and from the file."""

from __future__ import annotations

import json
import sqlite3
import threading
from functools import partial
from pathlib import Path

import anyio

from tests.support.gateways import Got, Handler, ScriptedUpstream, chat_reply, in_process, tool_chat
from tests.support.limits import WAIT_SECONDS

CHAT = "/v1/chat/completions"


async def test_a_conversation_is_forgotten_after_its_time(tmp_path: Path) -> None:
    """A conversation that was not used for ``forget_after`` is deleted from memory and file, and the used one is kept."""
    now, path = [1_000.0], tmp_path / "gateway.db"
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, store=path, forget_after=0.2, clock=lambda: now[0]) as client:
            for name in ("old", "new"):
                body = json.dumps({"model": "m", "messages": tool_chat(20, name=name)})
                assert (await client.post(CHAT, content=body)).status_code == 200
                now[0] += 0.15
            left = 2
            while left != 1:
                await anyio.sleep(0.01)
                left = (await client.get("/healthz")).json()["conversations"]
            database = sqlite3.connect(path)
            tables = ("sessions", "session_keys", "session_uses")
            rows = [database.execute(f"SELECT DISTINCT id FROM {table}").fetchall() for table in tables]
            database.close()
    ((name,),) = rows[0]
    assert rows == [[(name,)]] * 3


async def test_a_conversation_is_deleted_on_request(tmp_path: Path) -> None:
    """``DELETE /conversations/ID`` deletes one conversation from memory, page and every file, and no other one."""
    store, recall, record = tmp_path / "gateway.db", tmp_path / "recall.db", tmp_path / "sessions"
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, store=store, recall=recall, record=record) as client:
            for name in ("old", "new"):
                assert (await client.post(CHAT, json={"model": "m", "messages": tool_chat(20, name=name)})).status_code == 200
            ids = [each["id"] for each in (await client.get("/status.json")).json()["conversations"]]
            found = [(await client.delete(f"/conversations/{ids[1]}")).status_code for _ in range(2)]
            health = (await client.get("/healthz")).json()
    assert found == [204, 404]
    assert (health["conversations"], health["in_memory"], len(upstream.got)) == (1, 1, 2)
    (recording,) = record.iterdir()
    words = [b"new 3", b"old 3"]
    signs = {store: [each.encode() for each in ids], recall: words, recording: words}
    for path, (kept, gone) in signs.items():
        data = path.read_bytes()
        assert (kept in data, gone in data) == (True, False), path


async def test_a_deleted_conversation_stays_deleted_when_its_answer_ends(tmp_path: Path) -> None:
    """A conversation whose answer is still streaming is deleted; what the answer reports is not saved."""
    path, answering, may_end = tmp_path / "gateway.db", threading.Event(), threading.Event()

    def slow(handler: Handler, got: Got) -> None:
        answering.set()
        may_end.wait(WAIT_SECONDS)
        chat_reply(tokens=3_000)(handler, got)

    with ScriptedUpstream(slow) as upstream:
        async with in_process(upstream, store=path, forget_after=1_000.0) as client, anyio.create_task_group() as group:
            group.start_soon(partial(client.post, CHAT, json={"model": "m", "messages": tool_chat(20)}))
            await anyio.to_thread.run_sync(answering.wait)
            database = sqlite3.connect(path)
            ((name,),) = database.execute("SELECT id FROM sessions").fetchall()
            assert (await client.delete(f"/conversations/{name}")).status_code == 204
            may_end.set()
    rows = [database.execute(f"SELECT * FROM {table}").fetchall() for table in ("sessions", "session_keys", "session_uses")]
    database.close()
    assert rows == [[], [], []]


async def test_what_left_is_forgotten_with_its_conversation(tmp_path: Path) -> None:
    """Content that an earlier process stored for recall is deleted too, although no decisions are saved."""
    now, path = [1_000.0], tmp_path / "recall.db"

    def stored() -> int:
        database = sqlite3.connect(path)
        (count,) = database.execute("SELECT COUNT(*) FROM records").fetchone()
        database.close()
        return int(count)

    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, recall=path, forget_after=1_000.0, clock=lambda: now[0]) as client:
            assert (await client.post(CHAT, json={"model": "m", "messages": tool_chat(20)})).status_code == 200
            assert stored() > 0
        now[0] += 2_000.0
        async with in_process(upstream, recall=path, forget_after=1_000.0, clock=lambda: now[0]):
            left = stored()
            while left:
                await anyio.sleep(0.01)
                left = stored()
