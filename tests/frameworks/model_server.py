"""A model on loopback that speaks OpenAI's chat completions, plays a scripted part, and refuses what the real one would refuse.

It has no memory: what it answers follows from the request alone. After a user message it calls a tool, after the results it
says something, and asked for a summary it writes one. A request that is longer than its window, or that breaks a rule of the
format, gets the HTTP 400 a provider would send, so that an agent's run fails as it would there.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from compaction import MessageIndex, validate
from compaction.formats import convert

__all__ = ["ModelServer", "prefix_breaks", "tokens_of"]

SUMMARY_SIGN = "summar"


def tokens_of(request: Mapping[str, Any]) -> int:
    """Tokens of a request, its tools counted, by the estimate that the tests use everywhere."""
    tools = len(json.dumps(request.get("tools") or "")) // 4
    return MessageIndex(request["messages"], counter="chars/4").tokens + tools


def prefix_breaks(requests: Sequence[Mapping[str, Any]]) -> list[int]:
    """The numbers of the requests that change more than the end of the one before them."""
    views = [[json.dumps(message, sort_keys=True) for message in request["messages"]] for request in requests]
    return [place for place in range(1, len(views)) if views[place][: len(views[place - 1])] != views[place - 1]]


class ModelServer:
    """Holds state: a running server, and the requests it answered or refused.

    Args:
        window: Tokens it takes.
        calls_per_turn: Rounds of tool calls it makes before it answers a user.

    Attributes:
        summary: The summary it writes.
    """

    def __init__(self, *, window: int = 1_000_000, calls_per_turn: int = 1) -> None:
        self.window = window
        self.calls_per_turn = calls_per_turn
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.summaries = 0
        self.summary = SUMMARY
        self.before_answer: Callable[[int], object] = int
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | str:
        """The assistant's message, or why the request is refused."""
        messages = request["messages"]
        asks_for_a_summary = messages[0]["role"] == "system" and SUMMARY_SIGN in str(messages[0].get("content")).lower()
        if asks_for_a_summary and not request.get("tools"):
            self.summaries += 1
            return {"role": "assistant", "content": self.summary}
        problems = validate(messages)
        size = tokens_of(request)
        if problems or size > self.window:
            why = str(problems[0]) if problems else f"maximum context length is {self.window} tokens, this request has {size}"
            self.refused.append(why)
            return why
        self.requests.append(request)
        self.before_answer(len(self.requests))
        return self._turn(messages, request.get("tools"))

    def _turn(self, messages: Sequence[Mapping[str, Any]], tools: Any) -> dict[str, Any]:
        asked = next(place for place in range(len(messages) - 1, -1, -1) if messages[place]["role"] == "user")
        words = str(messages[asked]["content"])[-60:]
        rounds = sum(1 for message in messages[asked:] if message.get("tool_calls"))
        if not tools or rounds >= self.calls_per_turn:
            return {"role": "assistant", "content": f"To {words!r}: it costs {len(words)} euros."}
        function = tools[0]["function"]
        wanted = next(iter(function["parameters"]["properties"]))
        call = {"name": function["name"], "arguments": json.dumps({wanted: f"{words} ({rounds})"})}
        id = hashlib.blake2s(f"{words} {rounds}".encode(), digest_size=6).hexdigest()
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{id}", "type": "function", "function": call}],
        }


SUMMARY = """## Goal
The user asks what things cost.

## Progress
The prices of several items were looked up.

## Next steps
Answer the latest question."""


def anthropic_as_chat(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request of Anthropic's as one of chat completions, so that one script serves both."""
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        for tool in request.get("tools", ())
    ]
    system = [{"role": "system", "content": request["system"]}] if request.get("system") else []
    converted = convert(request["messages"], to="openai-chat", format="anthropic").messages
    return {"model": request["model"], "messages": [*system, *converted], "tools": tools}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ModelServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave together: two small packets would wait for each other
    server: _Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/messages"):
            self._answer_as_anthropic(request)
            return
        answer = self.server.model.answer(request)
        if isinstance(answer, str):
            error = {"error": {"message": answer, "type": "invalid_request_error", "code": None, "param": None}}
            self._send(400, "application/json", json.dumps(error))
        elif request.get("stream"):
            self._send(200, "text/event-stream", _events(request, answer))
        else:
            self._send(
                200, "application/json", json.dumps(_completion(request, "chat.completion", {"message": answer}, answer))
            )

    def _answer_as_anthropic(self, request: dict[str, Any]) -> None:
        """The same part, played in Anthropic's format."""
        asked = anthropic_as_chat(request)
        problems = [str(problem) for problem in validate(request["messages"], format="anthropic")]
        answer = problems[0] if problems else self.server.model.answer(asked)
        if isinstance(answer, str):
            self._send(400, "application/json", json.dumps({"type": "error", "error": {"type": "invalid", "message": answer}}))
            return
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer["content"]}] if answer["content"] else []
        for call in answer.get("tool_calls", ()):
            arguments = json.loads(call["function"]["arguments"])
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
        usage = {"input_tokens": tokens_of(asked), "output_tokens": 20}
        stop = "tool_use" if answer.get("tool_calls") else "end_turn"
        reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": blocks}
        self._send(200, "application/json", json.dumps({**reply, "stop_reason": stop, "stop_sequence": None, "usage": usage}))

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _completion(request: Mapping[str, Any], kind: str, said: dict[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    finish = "tool_calls" if answer.get("tool_calls") else "stop"
    usage = {"prompt_tokens": tokens_of(request), "completion_tokens": 20, "total_tokens": tokens_of(request) + 20}
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 1,
        "model": request["model"],
        "choices": [{"index": 0, "finish_reason": finish, **said}],
        "usage": usage,
    }


def _events(request: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """The answer in pieces: a word or a call at a time."""
    if answer.get("tool_calls"):
        calls = [{"index": place, **call} for place, call in enumerate(answer["tool_calls"])]
        deltas: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": calls}]
    else:
        deltas = [{"role": "assistant", "content": f"{word} "} for word in str(answer["content"]).split()]
    chunks = [_completion(request, "chat.completion.chunk", {"delta": delta}, {}) for delta in deltas]
    for chunk in chunks:
        chunk["choices"][0]["finish_reason"] = None
        del chunk["usage"]
    last = _completion(request, "chat.completion.chunk", {"delta": {}}, answer)
    return "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, last]) + "data: [DONE]\n\n"
