"""The strict server of the benchmarks answers, streams, refuses and counts in every wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmarks.hosts.script import user_text
from benchmarks.hosts.server import StrictServer
from compaction.tokens import LengthRefusal

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}}


def chat(text: str) -> tuple[str, dict[str, Any]]:
    tool = {"type": "function", "function": {"name": "look_up_price", "parameters": SCHEMA}}
    return "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": text}], "tools": [tool]}


def responses(text: str) -> tuple[str, dict[str, Any]]:
    tool = {"type": "function", "name": "look_up_price", "parameters": SCHEMA}
    return "/v1/responses", {"model": "m", "input": text, "tools": [tool]}


def anthropic(text: str) -> tuple[str, dict[str, Any]]:
    tool = {"name": "look_up_price", "input_schema": SCHEMA}
    return "/v1/messages", {"model": "m", "messages": [{"role": "user", "content": text}], "tools": [tool]}


def gemini(text: str) -> tuple[str, dict[str, Any]]:
    tool = {"functionDeclarations": [{"name": "look_up_price", "parameters": SCHEMA}]}
    return "/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": text}]}], "tools": [tool]}


def bedrock(text: str) -> tuple[str, dict[str, Any]]:
    tool = {"toolSpec": {"name": "look_up_price", "inputSchema": {"json": SCHEMA}}}
    messages = [{"role": "user", "content": [{"text": text}]}]
    return "/model/m/converse", {"messages": messages, "toolConfig": {"tools": [tool]}}


WIRES = (chat, responses, anthropic, gemini, bedrock)
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
Ask = Callable[[str], tuple[str, dict[str, Any]]]


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer(window=300, characters_per_token=2.0) as running:
        yield running


def post(server: StrictServer, path: str, body: dict[str, Any]) -> tuple[int, str]:
    """Return the status and the body of the response."""
    request = Request(server.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(request) as response:
            return response.status, response.read().decode("utf-8", "replace")
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@every_wire
def test_it_refuses_what_is_too_long(wire: Ask, server: StrictServer) -> None:
    """A request over the window is refused with the provider's error text, which ``LengthRefusal`` can read."""
    status, answer = post(server, *wire(user_text("c0", 0) + "x" * 1_000))
    found = LengthRefusal.read(RuntimeError(answer))
    page = server.ledger.pages["c0"]
    assert (status, page.over, page.requests) == (400, 1, 0)
    assert found is not None
    assert found.window == 300
    assert server.ledger.total("over_twice") == 1


@every_wire
def test_it_refuses_a_result_without_a_call(wire: Ask, server: StrictServer) -> None:
    """A request that breaks the format's rules, here with a result without a call, is refused and counted as invalid."""
    path, body = wire(user_text("c0", 0))
    stray = {
        chat: {"messages": [*body.get("messages", ()), {"role": "tool", "tool_call_id": "c", "content": "5"}]},
        responses: {"input": [{"type": "function_call_output", "call_id": "c", "output": "5"}]},
        anthropic: {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]},
        gemini: {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]},
        bedrock: {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": []}}]}]},
    }
    status, _ = post(server, path, {**body, **stray[wire]})
    assert (status, server.ledger.total("invalid"), server.ledger.total("requests")) == (400, 1, 0)


def test_a_changed_beginning_is_a_prefix_break(server: StrictServer) -> None:
    """A request that changes the beginning of the conversation is a prefix break; appending to it is not."""
    said = [{"role": "user", "content": user_text("c0", turn)} for turn in range(3)]
    for messages in (said[:1], [{"role": "system", "content": "Be brief."}, *said[:2]], said[1:]):
        assert post(server, "/v1/chat/completions", {"model": "m", "messages": messages})[0] == 200
    assert server.ledger.total("breaks") == 1
    assert 0 < server.ledger.total("cached") < server.ledger.total("tokens")
