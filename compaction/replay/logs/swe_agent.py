"""SWE-agent's ``.traj`` files: a JSON object whose ``history`` holds the messages, or whose ``trajectory`` holds the steps.

Shapes as documented at https://swe-agent.com/latest/usage/trajectories. Messages are in OpenAI form with fields of SWE-agent's
own, which are left out; a result names its call in ``tool_call_ids``. Without a history, each step's response and observation
become an answer and a user message, after the messages of the first step's query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..recording import Recording
from .chat import Chat, fields_of, items_of, text_of

__all__ = ["is_swe_agent", "read_swe_agent"]


def is_swe_agent(document: Any) -> bool:
    """Whether a JSON document is a trajectory of SWE-agent's."""
    fields = fields_of(document)
    return isinstance(fields.get("trajectory"), list) and ("history" in fields or "environment" in fields or "info" in fields)


def read_swe_agent(document: Any, where: str) -> list[Recording]:
    """The run in a document."""
    fields = fields_of(document)
    chat = Chat()
    history = items_of(fields.get("history"))
    if history:
        for message in map(fields_of, history):
            _read_message(chat, message)
    else:
        _read_steps(chat, fields)
    return [chat.recording(str(fields.get("instance_id") or fields.get("environment") or where), where)]


def _read_message(chat: Chat, message: Mapping[str, Any]) -> None:
    role, text, time = str(message.get("role") or "user"), text_of(message.get("content")), message.get("timestamp")
    call_ids = items_of(message.get("tool_call_ids"))
    if role == "tool" and call_ids:
        chat.result(str(call_ids[0]), text, time=time)
    elif role == "assistant":
        bodies = [(fields_of(call), fields_of(fields_of(call).get("function"))) for call in items_of(message.get("tool_calls"))]
        calls = [(str(call.get("id") or ""), str(body.get("name") or ""), body.get("arguments", "")) for call, body in bodies]
        chat.answer(text, calls=calls, time=time)
    else:
        chat.say("user" if role == "tool" else role, text, time=time)


def _read_steps(chat: Chat, fields: Mapping[str, Any]) -> None:
    steps = [fields_of(step) for step in items_of(fields.get("trajectory"))]
    for message in map(fields_of, items_of(steps[0].get("query") or steps[0].get("messages")) if steps else ()):
        _read_message(chat, message)
    for step in steps:
        chat.answer(str(step.get("response") or ""))
        chat.say("user", text_of(step.get("observation")))
