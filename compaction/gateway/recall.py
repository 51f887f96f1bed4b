"""Recall: the model may read what left a request, with tools that the gateway offers and answers itself, unseen by the agent.

The tools are offered only in requests that were compacted and that have tools of their own. If the model calls one, the gateway
sends the request again with the call and its result, and the client gets the answer to that. An answer to such a request is
therefore held until it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..formats import fields_of, items_of
from ..messages import ToolCallPart, ToolResultPart
from ..stores import SQLiteStore, handle_tool_call, tool_schemas
from .bodies import ModelRequest, read_request
from .routes import ModelRoute

_NAMES: Final = ("compaction_grep", "compaction_expand")
RECALL_FUNCTIONS: Final = [each["function"] for each in tool_schemas() if each["function"]["name"] in _NAMES]
_MOST_CHARS: Final = 16_000
_TOO_LONG: Final = json.dumps({"error": f"the result has more than {_MOST_CHARS:,} characters: ask for less with 'limit'"})
_NOT_RUN: Final = "Not run: it was called together with a tool of the gateway. Call it again."


def may_offer(route: str, fields: Mapping[str, Any]) -> bool:
    """Return whether the tools of recall can be offered in a conversation: its wire is known, and the agent has tools."""
    return route in _SAID and bool(items_of(fields.get("tools")))


def offered(body: bytes, asked: ModelRequest, route: str) -> bytes:
    """Return the body of a compacted request with the tools of recall; the same body if they cannot be offered."""
    tools = items_of(asked.fields.get("tools")) or ()
    choice = asked.fields.get("tool_choice")
    is_free = choice in (None, "auto") or (fields_of(choice) or {}).get("type") == "auto"
    if not may_offer(route, asked.fields) or not is_free or any(name in json.dumps(tools) for name in _NAMES):
        return body
    request = read_request(body, "tools")
    return request.with_messages([*request.messages, *[_tool(route, function) for function in RECALL_FUNCTIONS]])


def _tool(route: str, function: dict[str, Any]) -> dict[str, Any]:
    """Return the tool of a function, as requests of a route contain it."""
    if route == "messages":
        about = {"name": function["name"], "description": function["description"]}
        return {**about, "input_schema": function["parameters"]}
    return {"type": "function", "function": function} if route == "chat" else {"type": "function", "strict": False, **function}


def continued(route: ModelRoute, body: bytes, answer: bytes, kind: str, *, store: SQLiteStore, session: str) -> bytes | None:
    """Return the next request if an answer calls a tool of recall; ``None`` if it is meant for the client.

    Args:
        route: The route of the request.
        body: The request that was answered.
        answer: The decoded body of the answer.
        kind: Its content type.
        store: What left.
        session: The session of the request, whose records may be read.
    """
    if not any(name.encode() in answer for name in _NAMES):
        return None
    said, calls = read_answer(route, answer, kind)
    if not any(call.name in _NAMES for call in calls):
        return None
    results = [ToolResultPart(call.id, _result(call, store, session)) for call in calls]
    request = read_request(body, route.key)
    return request.with_messages([*request.messages, *said, *[each.raw for each in route.format.compose("user", results)]])


def read_answer(route: ModelRoute, answer: bytes, kind: str) -> tuple[list[Any], list[ToolCallPart]]:
    """Return the messages of a decoded answer, whole or streamed as its content type says, and the calls in them."""
    said = _SAID[route.name](_events(answer) if kind.startswith("text/event-stream") else [json.loads(answer)])
    parts = [part for message in said for part in route.format.read(message).parts]
    return said, [part for part in parts if isinstance(part, ToolCallPart)]


def _result(call: ToolCallPart, store: SQLiteStore, session: str) -> str:
    if call.name not in _NAMES:
        return _NOT_RUN
    found = handle_tool_call(call.name, call.arguments, store=store, session=session)
    return found if len(found) <= _MOST_CHARS else _TOO_LONG


def _events(answer: bytes) -> list[Any]:
    lines = (line[5:].strip() for line in answer.split(b"\n") if line.startswith(b"data:"))
    return [json.loads(line) for line in lines if line.startswith(b"{")]


# ------------------------------------------------------------------------ chat completions


def _chat_said(parts: Sequence[Any]) -> list[Any]:
    choices = [choice for part in parts for choice in part.get("choices") or () if choice.get("index", 0) == 0]
    whole = [choice["message"] for choice in choices if "message" in choice]
    if whole:
        return [{"role": "assistant", **{name: value for name, value in whole[0].items() if value is not None}}]
    text, calls = "", dict[int, dict[str, Any]]()
    deltas: list[Any] = [choice.get("delta") or {} for choice in choices]
    for delta in deltas:
        text += delta.get("content") or ""
        for each in delta.get("tool_calls") or ():
            call = calls.setdefault(each["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
            call["id"] = each.get("id") or call["id"]
            function: dict[str, Any] = each.get("function") or {}
            for name, value in function.items():
                call["function"][name] = call["function"].get(name, "") + (value or "")
    return [{"role": "assistant", **({"content": text} if text else {}), "tool_calls": list(calls.values())}]


# ------------------------------------------------------------------------ Responses


def _responses_said(parts: Sequence[Any]) -> list[Any]:
    ends = [part.get("response", part) for part in parts if part.get("type") in (None, "response.completed")]
    return list(ends[-1]["output"]) if ends else []


# ------------------------------------------------------------------------ Anthropic's messages


def _anthropic_said(parts: Sequence[Any]) -> list[Any]:
    if parts and "content" in parts[0]:
        return [{"role": "assistant", "content": parts[0]["content"]}]
    blocks: dict[int, dict[str, Any]] = {}
    for event in parts:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"]}
        elif event.get("type") == "content_block_delta":
            _extend(blocks[event["index"]], event["delta"])
    for block in blocks.values():
        if "partial" in block:
            block["input"] = json.loads(block.pop("partial") or "{}")
    return [{"role": "assistant", "content": [blocks[place] for place in sorted(blocks)]}]


def _extend(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to a block: each names its text by its type, such as ``text_delta``."""
    kind = str(delta.get("type")).removesuffix("_delta")
    name, field = ("partial", "partial_json") if kind == "input_json" else (kind, kind)
    block[name] = block.get(name, "") + delta[field]


_SAID: Final[Mapping[str, Callable[[Sequence[Any]], list[Any]]]] = {
    "chat": _chat_said,
    "responses": _responses_said,
    "messages": _anthropic_said,
}
"""The routes in which the gateway can answer calls itself.

Each has a function that returns the messages of an answer, given its JSON value or the events of its stream.
"""
