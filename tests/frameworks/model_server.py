"""The strict server of the benchmarks with another script: one call a round, its own summaries, and a record of its requests.

It has no memory: what it answers follows from the request alone. After a user message it calls a tool, after the results it
says something, and asked for a summary it writes one. A request that is longer than its window, or that breaks a rule of the
format, gets the HTTP 400 a provider would send, so that an agent's run fails as it would there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.hosts.script import Asked, Call, Reply
from benchmarks.hosts.server import StrictServer, json_response
from benchmarks.hosts.wires import Body, Wire
from compaction import MessageIndex, validate
from tests.support.conversion import convert

SUMMARY_SIGN = "summar"


def tokens_of(request: Mapping[str, Any]) -> int:
    """Return the tokens of a request, tools included, by the estimate that all tests use."""
    tools = len(json.dumps(request.get("tools") or "")) // 4
    return MessageIndex(request["messages"], counter="chars/4").tokens + tools


def prefix_breaks(requests: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the requests that do not begin with the messages of the previous one."""
    views = [[json.dumps(message, sort_keys=True) for message in request["messages"]] for request in requests]
    return [place for place in range(1, len(views)) if views[place][: len(views[place - 1])] != views[place - 1]]


class ModelServer(StrictServer):
    """Holds state: a running server, and the requests it answered or refused.

    Args:
        window: Tokens it takes.
        calls_per_turn: Rounds of tool calls it makes before it answers a user.

    Attributes:
        summary: The summary it writes.
    """

    def __init__(self, *, window: int = 1_000_000, calls_per_turn: int = 1) -> None:
        super().__init__(window=window)
        self.calls_per_turn = calls_per_turn
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.summary = SUMMARY
        self.before_answer: Callable[[int], object] = int

    @property
    def url(self) -> str:
        """Return the base URL for a client."""
        return f"{self.address}/v1"

    def answer(self, wire: Wire, path: str, body: Body) -> tuple[int, str, bytes]:
        asked = wire.read(path, body)
        request = body if wire.name.startswith("openai") else as_chat(wire, asked, body)
        messages = request["messages"]
        asks_for_a_summary = messages[0]["role"] == "system" and SUMMARY_SIGN in str(messages[0].get("content")).lower()
        if asks_for_a_summary and not request.get("tools"):
            self.summaries += 1
            return self.reply(wire, asked, Reply(id=f"summary{self.summaries}", text=self.summary))
        problems = validate(asked.messages, format=wire.name)
        size = tokens_of(request)
        if problems or size > self.window:
            why = str(problems[0]) if problems else f"maximum context length is {self.window} tokens, this request has {size}"
            self.refused.append(why)
            return json_response(400, wire.invalid(why) if problems else wire.too_long(size, self.window))
        self.requests.append(request)
        self.before_answer(len(self.requests))
        return self.reply(wire, asked, self._turn(request, asked, size))

    def _turn(self, request: Mapping[str, Any], asked: Asked, size: int) -> Reply:
        messages = request["messages"]
        start = next(place for place in range(len(messages) - 1, -1, -1) if messages[place]["role"] == "user")
        words = str(messages[start]["content"])[-60:]
        rounds = sum(1 for message in messages[start:] if message.get("tool_calls"))
        id = hashlib.blake2s(f"{words} {rounds}".encode(), digest_size=6).hexdigest()
        if not asked.tools or rounds >= self.calls_per_turn:
            return Reply(id=id, text=f"To {words!r}: it costs {len(words)} euros.", prompt_tokens=size)
        wanted = next(iter(request["tools"][0]["function"]["parameters"]["properties"]))
        call = Call(f"call_{id}", asked.tools[0], {wanted: f"{words} ({rounds})"})
        return Reply(id=id, calls=(call,), prompt_tokens=size)


SUMMARY = """## Goal
The user asks what things cost.

## Progress
The prices of several items were looked up.

## Next steps
Answer the latest question."""


def as_chat(wire: Wire, asked: Asked, body: Body) -> Body:
    """Return a request of another format as one of chat completions, so that one script serves all."""
    system = body.get("system") or body.get("systemInstruction") or ""
    said = system if isinstance(system, str) else json.dumps(system)
    converted = convert(asked.messages, to="openai-chat", format=wire.name)
    return {
        "model": asked.model,
        "messages": [*([{"role": "system", "content": said}] if said else []), *converted],
        "tools": [{"type": "function", "function": schema} for schema in _schemas(body)],
    }


def _schemas(body: Body) -> list[Body]:
    """Return the names and parameters of the tools in a request of Anthropic, Gemini or Bedrock."""
    bedrock = [each["toolSpec"] for each in body.get("toolConfig", {}).get("tools", ())]
    if bedrock:
        return [{"name": each["name"], "parameters": each["inputSchema"]["json"]} for each in bedrock]
    tools = body.get("tools", ())
    if tools and "functionDeclarations" in tools[0]:
        declared = tools[0]["functionDeclarations"]
        return [{"name": each["name"], "parameters": each["parameters_json_schema"]} for each in declared]
    return [{"name": each["name"], "parameters": each["input_schema"]} for each in tools]
