"""ATIF, the Agent Trajectory Interchange Format: a JSON object with ``schema_version`` and ``steps``.

Follows https://pypi.org/project/atif (version 1.7). A step's ``source`` is ``system``, ``user`` or ``agent``; an agent's
step has calls and, as ``observation``, their results. An observation without a call becomes a user message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..recordings import Recording
from .chat_builder import ChatBuilder, list_items, object_fields, text_of

__all__ = ["is_atif", "read_atif"]


def is_atif(document: Any) -> bool:
    """Return whether a JSON document is an ATIF trajectory."""
    fields = object_fields(document)
    return str(fields.get("schema_version") or "").startswith("ATIF") and isinstance(fields.get("steps"), list)


def read_atif(document: Any, where: str) -> list[Recording]:
    """Return the trajectory in a document."""
    fields = object_fields(document)
    chat = ChatBuilder()
    for step in map(object_fields, list_items(fields.get("steps"))):
        _read_step(chat, step)
    if fields.get("subagent_trajectories"):
        chat.note("the trajectory of a subagent is skipped, as it is another conversation")
    return [chat.recording(str(fields.get("session_id") or fields.get("trajectory_id") or where), where)]


def _read_step(chat: ChatBuilder, step: Mapping[str, Any]) -> None:
    time, text = step.get("timestamp"), text_of(step.get("message"))
    if step.get("source") != "agent":
        chat.say("system" if step.get("source") == "system" else "user", text, time=time)
        return
    calls = [object_fields(call) for call in list_items(step.get("tool_calls"))]
    chat.answer(
        text,
        reasoning=str(step.get("reasoning_content") or ""),
        calls=[
            (str(call.get("tool_call_id") or ""), str(call.get("function_name") or ""), call.get("arguments", {}))
            for call in calls
        ],
        time=time,
    )
    for result in map(object_fields, list_items(object_fields(step.get("observation")).get("results"))):
        call_id = result.get("source_call_id")
        if call_id is None:
            chat.say("user", text_of(result.get("content")), time=time)
        else:
            chat.result(str(call_id), text_of(result.get("content")), time=time)
