"""Recall: the model reads what left, with a tool that the gateway offers and answers, unseen by the agent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gateway_long import LongTurns
from benchmarks.hosts.script import Asked, Call, Reply, result_text
from benchmarks.hosts.wires import WIRES as SERVED
from compaction.gateway.recall import read_answer
from tests.support.clients import AGENTS, Recorder, run
from tests.support.gateways import (
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    chat_reply,
    client_of,
    in_process,
    lifespan,
    settings_of,
    tool_chat,
)

MARK = re.compile(r"\[compaction ([0-9a-f]{8,16}) by")
WIRES = ("openai-chat", "openai-responses", "anthropic")


class Asking(LongTurns):
    """A model that expands each summary once. Holds state: what it read.

    Args:
        with_others: Whether it calls a tool of the agent at once.
    """

    def __init__(self, *, with_others: bool) -> None:
        super().__init__(calls=60)
        self.read: list[str] = []
        self.offers: list[bool] = []
        self._with_others = with_others
        self._expanded = ""

    def __call__(self, asked: Asked, id: str) -> Reply:
        text = json.dumps(asked.messages)
        self.offers.append("compaction_expand" in asked.tools)
        if f"recall_{self._expanded}" in text:
            self.read.append(text)
        mark = MARK.search(text)
        if mark is None or mark[1] == self._expanded:
            return super().__call__(asked, id)
        self._expanded = mark[1]
        calls = [Call(f"recall_{mark[1]}", "compaction_expand", {"id": mark[1], "limit": 2_000})]
        if self._with_others:
            calls.append(Call(f"other_{id}", "look", {"item": "alpha/0/0/0"}))
        return Reply(id=id, calls=tuple(calls))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("with_others", [False, True], ids=["alone", "with another call"])
@pytest.mark.parametrize("name", WIRES)
async def test_the_model_reads_what_left(name: str, with_others: bool, tmp_path: Path) -> None:
    """Every request is valid, the agent never sees the tool, and the model gets messages that left word for word."""
    task = Asking(with_others=with_others)
    seen: list[bytes] = []
    with Recorder(window=5_000, play=task) as model:
        settings = settings_of(model.address, window=5_000, timeout=60.0, recall=tmp_path / "recall.db")
        async with lifespan(settings) as app, client_of(app) as client:
            await run(AGENTS[name], client, "alpha", turns=1, on_request=seen.append)
            retries = (await client.get("/healthz")).json()["retries"]
    assert (model.ledger.total("invalid"), model.ledger.total("over")) == (0, 0), model.ledger.pages
    assert len(seen) == 61
    assert retries["recall"] == len(task.read) > 0
    assert result_text("alpha/0/0/0")[:60] in task.read[0]
    assert not any(b"compaction_expand" in body or b"recall_" in body for body in seen)
    assert task.offers[0] is False


@pytest.mark.parametrize("name", WIRES)
def test_a_streamed_answer_says_the_same(name: str) -> None:
    """The messages and calls of an answer do not depend on whether it was streamed."""
    route = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "messages"}[name]
    calls = tuple(Call(f"c{number}", "compaction_expand", {"id": "abc", "limit": 7 + number}) for number in range(2))
    reply = Reply(id="x", calls=calls, signature="" if name == "openai-chat" else "c2ln")
    asked = Asked(model="m", messages=[], steps=[], tools=[], characters=1)
    wire = SERVED[name]
    answers = [
        (json.dumps(wire.write(asked, reply)).encode(), "application/json"),
        (wire.stream(asked, reply), "text/event-stream"),
    ]
    said = [read_answer(route, *each) for each in answers]
    assert said[0] == said[1]
    assert [call.name for call in said[0][1]] == ["compaction_expand"] * 2


async def test_it_costs_nothing_when_unused(tmp_path: Path) -> None:
    """Without a cut, or without tools of the agent, no byte differs; where the model may not choose, no tool is offered."""
    short, long = tool_chat(2), tool_chat(20)
    look = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    bodies: list[dict[str, Any]] = [
        {"model": "m", "messages": short, "tools": look},
        {"model": "m", "messages": long},
        {"model": "n", "messages": long, "tools": look, "tool_choice": "none"},
    ]
    sent: list[list[bytes]] = []
    for recall in (None, tmp_path / "recall.db"):
        with ScriptedUpstream(chat_reply()) as upstream:
            async with in_process(upstream, recall=recall) as client:
                for body in bodies:
                    await client.post("/v1/chat/completions", json=body)
        sent.append([got.body for got in upstream.got])
    assert sent[0][:2] == sent[1][:2]
    assert b"compaction_expand" not in sent[1][2]
    assert (tmp_path / "recall.db").stat().st_mode & 0o777 == 0o600


async def test_a_refused_continuation_is_answered_without_the_tool(tmp_path: Path) -> None:
    """If the upstream refuses the request with the result, the model is asked once more without the tool."""

    def calls(handler: Handler, got: Got) -> None:
        call = {"id": "r", "type": "function", "function": {"name": "compaction_grep", "arguments": '{"query": "a"}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer(200, {"choices": [{"index": 0, "message": message}]})(handler, got)

    look = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    with ScriptedUpstream(calls, answer(400, {"error": {"message": "no"}}), chat_reply("done")) as upstream:
        async with in_process(upstream, recall=tmp_path / "recall.db") as client:
            body = {"model": "m", "messages": tool_chat(20), "tools": look}
            reply = await client.post("/v1/chat/completions", json=body)
    assert reply.json()["choices"][0]["message"]["content"] == "done"
    assert [b"compaction_expand" in got.body for got in upstream.got] == [True, True, False]
