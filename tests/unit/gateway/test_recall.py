"""Recall: the model reads what left, with a tool that the gateway offers and answers, unseen by the agent."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gateway_long import LongTurns
from benchmarks.hosts.script import Asked, Call, Reply, result_text
from compaction.formats import ANTHROPIC_API, CHAT_API, GEMINI_API, RESPONSES_API
from compaction.gateway.bodies import read_request
from compaction.gateway.recall import RECALL_FUNCTIONS, may_offer, next_request, offered, recall_calls
from compaction.stores import SQLiteStore, StoredRecord
from tests.support.clients import AGENTS, Recorder, run
from tests.support.gateways import (
    TOO_LONG,
    Answer,
    Got,
    Handler,
    answer,
    body_of,
    chat_reply,
    client_of,
    lifespan,
    served,
    settings_of,
    tool_chat,
)

MARK = re.compile(r"\[compaction ([0-9a-f]{8,16}) by")
AGENT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
APIS = {api.name: api for api in (ANTHROPIC_API, CHAT_API, GEMINI_API, RESPONSES_API)}
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


async def test_it_costs_nothing_when_unused(tmp_path: Path) -> None:
    """Without a cut, or without tools of the agent, no byte differs; where the model may not choose, no tool is offered."""
    short, long = tool_chat(2), tool_chat(20)
    bodies: list[dict[str, Any]] = [
        {"model": "m", "messages": short, "tools": AGENT_TOOLS},
        {"model": "m", "messages": long},
        {"model": "n", "messages": long, "tools": AGENT_TOOLS, "tool_choice": "none"},
    ]
    posted = [json.dumps(body).encode() for body in bodies]
    without, with_recall = [await served([chat_reply()], *posted, recall=each) for each in (None, tmp_path / "recall.db")]
    assert [got.body for got in without.got[:2]] == [got.body for got in with_recall.got[:2]]
    assert b"compaction_expand" not in with_recall.got[2].body
    assert (tmp_path / "recall.db").stat().st_mode & 0o777 == 0o600


def calls(handler: Handler, got: Got) -> None:
    """Call a tool of recall, without an end."""
    call = {"id": "r", "type": "function", "function": {"name": "compaction_grep", "arguments": '{"query": "a"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer(200, {"choices": [{"index": 0, "message": message}]})(handler, got)


DONE = chat_reply("done", tokens=900)
REFUSED = answer(400, {"error": {"message": "no"}})
ODD = answer(200, b'{"compaction_grep"')


@pytest.mark.parametrize(
    ("script", "has_tools", "status", "counts"),
    [
        ([DONE], [True], 200, {}),
        ([calls, DONE], [True, True], 200, {"retries": {"recall": 1}}),
        ([calls, REFUSED, DONE], [True, True, False], 200, {"retries": {"recall": 1}}),
        ([calls] * 4 + [DONE], [True] * 4 + [False], 200, {"retries": {"recall": 4}}),
        ([calls] * 5 + [DONE], [True] * 4 + [False] * 2, 200, {"retries": {"recall": 4}}),
        ([answer(300, {}), DONE], [True], 300, {}),
        ([calls, answer(300, {}), DONE], [True, True, False], 200, {"retries": {"recall": 1}}),
        ([calls, answer(429, {}), DONE], [True, True], 429, {"retries": {"recall": 1}}),
        ([calls, answer(503, {}), DONE], [True, True], 503, {"retries": {"recall": 1}}),
        ([calls, answer(500, {}), DONE], [True, True], 500, {"retries": {"recall": 1}}),
        ([calls, answer(500, TOO_LONG), DONE], [True, True, False], 200, {"retries": {"recall": 1}}),
        ([ODD, DONE], [True, False], 200, {"failures": {"recall: JSONDecodeError": 1}}),
        ([answer(400, TOO_LONG), calls, DONE], [True, True, True], 200, {"retries": {"length": 1, "recall": 1}}),
        ([answer(429, {})], [True], 429, {}),
    ],
    ids=[
        *("none", "once", "refused", "four times", "always", "redirected", "redirected later", "busy later", "down later"),
        *("a fault later", "too long later", "not JSON", "after a length error", "busy"),
    ],
)
async def test_how_often_the_model_is_asked(
    script: list[Answer], has_tools: list[bool], status: int, counts: dict[str, Any], tmp_path: Path
) -> None:
    """It gets results at most four times, the last time without tools. The client gets the last answer, and the page its usage.

    A failure upstream other than a refusal is the client's, as without recall.
    """
    body = body_of(tool_chat(20), tools=AGENT_TOOLS)
    found = await served(script, body, recall=tmp_path / "recall.db")
    assert [b"compaction_expand" in got.body for got in found.got] == has_tools
    assert found.replies[0].status_code == status
    found.status["failures"].pop("too long for the upstream", None)
    assert found.counts == counts
    if script[-1] is DONE and status == 200:
        assert found.replies[0].json()["choices"][0]["message"]["content"] == "done"
        assert found.status["conversations"][0]["prompt_tokens"] == 900


async def test_what_was_recalled_last_is_answered(tmp_path: Path) -> None:
    """The request after the last results has all of them, and the compacted messages with the bytes that they had."""
    found = await served([calls] * 4 + [DONE], body_of(tool_chat(20), tools=AGENT_TOOLS), recall=tmp_path / "recall.db")
    first, *_, last = found.sent
    assert [message["role"] for message in last[len(first) :]] == ["assistant", "tool"] * 4
    assert found.got[-1].json["tools"] == AGENT_TOOLS
    text = found.got[0].body.partition(b'"messages": ')[2].partition(b'], "tools"')[0]
    assert text in found.got[-1].body
    assert len(text) > 1_000


@pytest.mark.parametrize(("script", "is_own"), [([DONE], True), ([calls, DONE], False), ([ODD, DONE], False)])
async def test_usage_of_another_request_is_not_the_turns(script: list[Answer], is_own: bool, tmp_path: Path) -> None:
    """The report corrects the count of a session only if it is of the request that the session returned."""
    body, path = body_of(tool_chat(20), tools=AGENT_TOOLS), tmp_path / "gateway.db"
    await served(script, body, recall=tmp_path / "recall.db", store=path)
    database = sqlite3.connect(path)
    ((anchor,),) = database.execute("SELECT anchor FROM sessions")
    database.close()
    assert (anchor is not None) == is_own


async def test_a_large_answer_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not held until it is complete, and no call in it is answered."""
    monkeypatch.setattr("compaction.gateway.exchange._LARGEST_ANSWER", 100)
    found = await served([calls, DONE], body_of(tool_chat(20), tools=AGENT_TOOLS), recall=tmp_path / "recall.db")
    (call,) = found.replies[0].json()["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], len(found.got)) == ("compaction_grep", 1)


@pytest.mark.parametrize(
    ("route", "fields", "is_offered"),
    [
        ("chat", {}, True),
        ("chat", {"tool_choice": "auto"}, True),
        ("messages", {"tool_choice": {"type": "auto"}}, True),
        ("messages", {"tool_choice": {"type": "any"}}, False),
        ("chat", {"tool_choice": "required"}, False),
        ("chat", {"tools": []}, False),
        ("chat", {"tools": [{"function": {"name": "compaction_expand"}}]}, False),
        ("responses", {}, True),
        ("generate", {}, False),
    ],
)
def test_where_the_tools_are_offered(route: str, fields: dict[str, Any], is_offered: bool) -> None:
    """They follow the agent's tools, if the model may choose and no tool of the agent has their name."""
    body = json.dumps({"tools": [{"name": "look"}], **fields}).encode()
    found = offered(body, read_request(body, "tools"), APIS[route])
    tools = json.loads(found)["tools"]
    assert (found is not body) is is_offered
    assert may_offer(APIS[route], json.loads(body)) is (route != "generate" and fields.get("tools") != [])
    if is_offered:
        grep, expand = RECALL_FUNCTIONS
        assert (grep["name"], expand["name"]) == ("compaction_grep", "compaction_expand")
        assert tools[0] == {"name": "look"}
        shape: dict[str, Any] = {
            "chat": {"type": "function", "function": expand},
            "responses": {"type": "function", "strict": False, **expand},
            "messages": {"name": expand["name"], "description": expand["description"], "input_schema": expand["parameters"]},
        }[route]
        assert tools[2] == shape


def test_only_its_own_tools_are_answered(tmp_path: Path) -> None:
    """An answer that only mentions one is the client's; another tool's call is told to come again; results are bounded."""
    store, words = SQLiteStore(tmp_path / "recall.db"), "x y " * 30_000
    store.put("s", [StoredRecord.of_message({"content": words}, role="user", text=words, salt="s")])
    body = json.dumps({"messages": tool_chat(1)}).encode()
    for mention in (b"<html>not JSON</html>", json.dumps({"choices": [{"message": {"content": "compaction_grep"}}]}).encode()):
        assert recall_calls(CHAT_API, mention, "application/json") == []
    (record,) = store.range("s", 1, 2)
    expand = {"name": "compaction_expand", "arguments": json.dumps({"id": record.id, "limit": 100_000})}
    calls = [
        {"id": id, "type": "function", "function": function}
        for id, function in (("a", expand), ("b", {"name": "look", "arguments": "{}"}))
    ]
    said = {"role": "assistant", "tool_calls": calls}
    reply = json.dumps({"choices": [{"message": said}]}).encode()
    found = next_request(CHAT_API, body, recall_calls(CHAT_API, reply, "application/json"), store=store, session="s")
    *given, answer, first, second = json.loads(found)["messages"]
    assert (given, answer) == (tool_chat(1), said)
    assert first["tool_call_id"] == "a"
    assert "more than 16,000 characters: ask for less with 'limit'" in json.loads(first["content"])["error"]
    assert second["content"].startswith("Not run")
