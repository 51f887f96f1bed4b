"""Scripted clients that use one wire format each, as agents do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import attrs
import httpx

from benchmarks.hosts.script import result_text, user_text
from benchmarks.hosts.server import StrictServer

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
    agent: Agent,
    client: httpx.AsyncClient,
    name: str,
    *,
    turns: int = TURNS,
    reminders: bool = False,
    model: str = "m",
    on_request: Callable[[bytes], object] = lambda body: None,
    on_seconds: Callable[[float], object] = lambda seconds: None,
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
            on_request(content := json.dumps(body).encode())
            began = time.perf_counter()
            reply = await client.post(agent.path, content=content, headers={"content-type": "application/json"})
            assert reply.status_code == 200, reply.text
            on_seconds(time.perf_counter() - began)
            said, calls = agent.said(reply.json())
            messages += said
            if not calls:
                break
            messages += agent.results(calls)
