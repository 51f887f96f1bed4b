"""The generated conversation of the benchmarks: a system message, then user, call, result and answer in turn.

Every text has about 200 characters, and no two texts are equal. Our side gets dictionaries in the OpenAI chat format, Agent
Framework gets the same messages as its own objects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_SAID = (
    "shelf {n} holds {k} boxes of green tea; count them again before noon, write the sum on the card at the door, and tell the "
    "keeper of row {k} whether what was ordered last week has come or not"
)


def _text(n: int) -> str:
    return f"Message {n}: " + _SAID.format(n=n, k=n * 7919 % 10_007)


def conversation(messages: int, *, start: int = 0) -> list[dict[str, Any]]:
    """Return a conversation.

    Args:
        messages: Number of messages.
        start: Number of earlier messages, which are left out; the conversation continues after them.
    """
    return [_message(n) for n in range(start, start + messages)]


def _message(n: int) -> dict[str, Any]:
    if n == 0:
        return {"role": "system", "content": _text(0)}
    part = (n - 1) % 4
    if part == 0:
        return {"role": "user", "content": _text(n)}
    if part == 1:
        function = {"name": "search_shelves", "arguments": json.dumps({"query": _text(n)})}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{n}", "type": "function", "function": function}],
        }
    if part == 2:
        return {"role": "tool", "tool_call_id": f"call_{n - 1}", "content": _text(n)}
    return {"role": "assistant", "content": _text(n)}


def rebuilt(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return equal messages that share no object with these, as from a framework that reads its store on each call."""
    return json.loads(json.dumps(messages))  # type: ignore[no-any-return]


def peer_messages(messages: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the messages as Agent Framework's objects."""
    from agent_framework import Content, Message

    made: list[Any] = []
    for message in messages:
        if message["role"] == "tool":
            contents = [Content.from_function_result(message["tool_call_id"], result=message["content"])]
        elif "tool_calls" in message:
            calls = [(call["id"], call["function"]) for call in message["tool_calls"]]
            contents = [Content.from_function_call(id, body["name"], arguments=body["arguments"]) for id, body in calls]
        else:
            contents = [Content.from_text(message["content"])]
        made.append(Message(message["role"], contents))
    return made
