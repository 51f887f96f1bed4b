"""SWE-agent's ``.traj`` files: a JSON object with the messages in ``history``, or the steps in ``trajectory``.

Follows https://swe-agent.com/latest/usage/trajectories. Messages are in OpenAI form; additional fields of SWE-agent are
dropped; a result names its call in ``tool_call_ids``. Without a history, each step's response and observation become an answer
and a user message, after the messages of the first step's query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..recordings import Recording
from .chat_builder import ChatBuilder, list_items, object_fields, text_of

__all__ = ["is_swe_agent", "read_swe_agent"]


def is_swe_agent(document: Any) -> bool:
    """Return whether a JSON document is an SWE-agent trajectory."""
    fields = object_fields(document)
    return isinstance(fields.get("trajectory"), list) and ("history" in fields or "environment" in fields or "info" in fields)


def read_swe_agent(document: Any, where: str) -> list[Recording]:
    """Return the run in a document."""
    fields = object_fields(document)
    chat = ChatBuilder()
    history = list_items(fields.get("history"))
    if history:
        for message in map(object_fields, history):
            _read_message(chat, message)
    else:
        _read_steps(chat, fields)
    return [chat.recording(str(fields.get("instance_id") or fields.get("environment") or where), where)]


def _read_message(chat: ChatBuilder, message: Mapping[str, Any]) -> None:
    role, text, time = str(message.get("role") or "user"), text_of(message.get("content")), message.get("timestamp")
    call_ids = list_items(message.get("tool_call_ids"))
    if role == "tool" and call_ids:
        chat.result(str(call_ids[0]), text, time=time)
    elif role == "assistant":
        bodies = [
            (object_fields(call), object_fields(object_fields(call).get("function")))
            for call in list_items(message.get("tool_calls"))
        ]
        calls = [(str(call.get("id") or ""), str(body.get("name") or ""), body.get("arguments", "")) for call, body in bodies]
        chat.answer(text, calls=calls, time=time)
    else:
        chat.say("user" if role == "tool" else role, text, time=time)


def _read_steps(chat: ChatBuilder, fields: Mapping[str, Any]) -> None:
    steps = [object_fields(step) for step in list_items(fields.get("trajectory"))]
    for message in map(object_fields, list_items(steps[0].get("query") or steps[0].get("messages")) if steps else ()):
        _read_message(chat, message)
    for step in steps:
        chat.answer(str(step.get("response") or ""))
        chat.say("user", text_of(step.get("observation")))
