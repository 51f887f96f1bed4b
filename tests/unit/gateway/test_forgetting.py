"""Unused conversations are deleted from memory and from the file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import anyio

from tests.support.gateways import ScriptedUpstream, chat_reply, in_process, tool_chat

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
