"""Whole tasks in every format against a strict model on loopback: no request is refused or over the window."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import attrs
import httpx
import pytest

from benchmarks.hosts.script import result_text, user_text
from benchmarks.hosts.server import StrictServer
from tests.support.gateways import client_of, lifespan, settings_of

TURNS = 8


@attrs.frozen
class Agent:
    """A simple agent that uses one format.

    Args:
        path: The address it uses.
        key: The field with its messages.
        fields: The other fields of its requests.
        user: Returns a user message with a text.
        said: Returns the messages of a reply, and the calls in them: their ids, names and items.
        results: Returns messages with the results of calls.
        prepare: Changes the messages of a request, such as the position of breakpoints.
    """

    path: str
    key: str
    fields: dict[str, Any]
    user: Callable[[str], Any]
    said: Callable[[Any], tuple[list[Any], list[tuple[str, str, str]]]]
    results: Callable[[list[tuple[str, str, str]]], list[Any]]
    prepare: Callable[[list[Any]], list[Any]] = list


def _chat_said(reply: Any) -> tuple[list[Any], list[tuple[str, str, str]]]:
    message = {name: value for name, value in reply["choices"][0]["message"].items() if value is not None}
    calls = [(call["id"], "look", json.loads(call["function"]["arguments"])["item"]) for call in message.get("tool_calls", ())]
    return [message], calls


def _responses_said(reply: Any) -> tuple[list[Any], list[tuple[str, str, str]]]:
    calls = [item for item in reply["output"] if item["type"] == "function_call"]
    return reply["output"], [(call["call_id"], "look", json.loads(call["arguments"])["item"]) for call in calls]


def _anthropic_said(reply: Any) -> tuple[list[Any], list[tuple[str, str, str]]]:
    calls = [block for block in reply["content"] if block["type"] == "tool_use"]
    return [{"role": "assistant", "content": reply["content"]}], [(call["id"], "look", call["input"]["item"]) for call in calls]


def _gemini_said(reply: Any) -> tuple[list[Any], list[tuple[str, str, str]]]:
    content = reply["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    return [content], [(call["id"], "look", call["args"]["item"]) for call in calls]


def _anthropic_results(calls: list[tuple[str, str, str]]) -> list[Any]:
    blocks = [{"type": "tool_result", "tool_use_id": id, "content": result_text(item)} for id, _, item in calls]
    return [{"role": "user", "content": blocks}]


def _gemini_results(calls: list[tuple[str, str, str]]) -> list[Any]:
    parts = [
        {"functionResponse": {"id": id, "name": name, "response": {"result": result_text(item)}}} for id, name, item in calls
    ]
    return [{"role": "user", "parts": parts}]


def _with_breakpoints(messages: list[Any]) -> list[Any]:
    """Return the messages with breakpoints on the last two only, as coding agents send them."""
    marked = list(messages)
    for place in range(max(0, len(marked) - 2), len(marked)):
        blocks = [*marked[place]["content"]]
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral", "ttl": "1h"}}
        marked[place] = {**marked[place], "content": blocks}
    return marked


SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}}
AGENTS = {
    "openai-chat": Agent(
        "/v1/chat/completions",
        "messages",
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]},
        lambda text: {"role": "user", "content": text},
        _chat_said,
        lambda calls: [{"role": "tool", "tool_call_id": id, "content": result_text(item)} for id, _, item in calls],
    ),
    "openai-responses": Agent(
        "/v1/responses",
        "input",
        {"store": False, "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}]},
        lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}]},
        _responses_said,
        lambda calls: [{"type": "function_call_output", "call_id": id, "output": result_text(item)} for id, _, item in calls],
    ),
    "anthropic": Agent(
        "/v1/messages",
        "messages",
        {"max_tokens": 100, "system": "Be brief.", "tools": [{"name": "look", "input_schema": SCHEMA}]},
        lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
        _anthropic_said,
        _anthropic_results,
        _with_breakpoints,
    ),
    "gemini": Agent(
        "/v1beta/models/m:generateContent",
        "contents",
        {"tools": [{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}]},
        lambda text: {"role": "user", "parts": [{"text": text}]},
        _gemini_said,
        _gemini_results,
    ),
}


class Recorder(StrictServer):
    """A strict model that keeps the request bodies. Holds state."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.bodies: list[Any] = []

    def answer(self, wire: Any, path: str, body: Any) -> tuple[int, str, bytes]:
        self.bodies.append(body)
        return super().answer(wire, path, body)


def _reminder(agent: Agent, number: int) -> Any:
    text = f"Reminder {number}: keep your notes current, and be brief."
    return {"role": "system", "content": [{"type": "text", "text": text}] if agent.path == "/v1/messages" else text}


async def run(
    agent: Agent, client: httpx.AsyncClient, name: str, *, turns: int = TURNS, reminders: bool = False, model: str = "m"
) -> None:
    """Let an agent work on its turns, with a reminder before every tenth call or none."""
    messages: list[Any] = []
    calls_made = 0
    for turn in range(turns):
        messages.append(agent.user(user_text(name, turn)))
        while True:
            calls_made += 1
            if reminders and calls_made % 10 == 0:
                messages.append(_reminder(agent, calls_made))
            body = {"model": model, **agent.fields, agent.key: agent.prepare(messages)}
            reply = await client.post(agent.path, json=body)
            assert reply.status_code == 200, reply.text
            said, calls = agent.said(reply.json())
            messages += said
            if not calls:
                break
            messages += agent.results(calls)


@pytest.mark.parametrize("name", AGENTS)
async def test_a_task_that_fills_the_window_several_times(name: str) -> None:
    """Two conversations run through the gateway without mixing, and every request is valid and within the window."""
    agent = AGENTS[name]
    with Recorder(window=4_500) as model:
        settings = settings_of(model.address, window=4_500, timeout=60.0)
        async with lifespan(settings) as app, client_of(app) as client:
            for conversation in ("alpha", "beta"):
                await run(agent, client, conversation)
            metrics = (await client.get("/metrics")).text
    ledger = model.ledger
    total = {each: ledger.total(each) for each in ("invalid", "over", "crossed")}
    assert total == {"invalid": 0, "over": 0, "crossed": 0}, ledger.pages
    assert ledger.total("tokens") > 60_000
    cuts = next(line for line in metrics.splitlines() if line.startswith("compaction_gateway_cuts_total"))
    assert ledger.total("breaks") <= int(cuts.split()[1]) <= 20
    if name == "anthropic":
        for body in model.bodies:
            marks = json.dumps(body).count('"cache_control"')
            assert marks == min(2, len(body["messages"]))
            assert json.dumps(body).count('"ttl": "1h"') == marks


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", ["openai-chat", "openai-responses", "anthropic"])
async def test_reminders_do_not_raise_the_floor(name: str) -> None:
    """With a reminder every ten calls, none of 300 requests is refused, and later cuts leave no more than earlier ones."""
    agent = AGENTS[name]
    with Recorder(window=4_500) as model:
        async with lifespan(settings_of(model.address, window=4_500, timeout=60.0)) as app, client_of(app) as client:
            await run(agent, client, "alpha", turns=62, reminders=True)
    ledger = model.ledger
    assert {each: ledger.total(each) for each in ("invalid", "over")} == {"invalid": 0, "over": 0}, ledger.pages
    reminders = [json.dumps(body[agent.key]).count("Reminder") for body in model.bodies]
    sizes = [len(json.dumps(body)) for body in model.bodies]
    floors = [size for before, size in pairwise(sizes) if size < before]
    half = len(floors) // 2
    assert len(sizes) >= 300
    assert max(reminders) <= 4
    assert max(floors[half:]) <= 1.2 * max(floors[:half])
