"""Logs that are one JSON document: trajectories of ATIF and SWE-agent, and the results of tau-bench.

ATIF, the Agent Trajectory Interchange Format (https://pypi.org/project/atif, version 1.7), is an object with
``schema_version`` and ``steps``. A step's ``source`` is ``system``, ``user`` or ``agent``; an agent's step has calls and, as
``observation``, their results. An observation without a call becomes a user message.

SWE-agent's ``.traj`` files (https://swe-agent.com/latest/usage/trajectories) have the messages in ``history``, in OpenAI form;
additional fields are dropped; a result names its call in ``tool_call_ids``.

tau-bench's result files are a list of runs, each with its messages in OpenAI form in ``traj``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...formats import openai_chat
from ..recordings import Recording
from .chat_builder import ChatBuilder, list_items, object_fields, text_of


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
        chat.say("system" if step.get("source") == "system" else "user", text, time)
        return
    calls = map(object_fields, list_items(step.get("tool_calls")))
    chat.answer(
        text,
        reasoning=str(step.get("reasoning_content") or ""),
        calls=[(call.get("tool_call_id"), call.get("function_name"), call.get("arguments", {})) for call in calls],
        time=time,
    )
    for result in map(object_fields, list_items(object_fields(step.get("observation")).get("results"))):
        content = text_of(result.get("content"))
        if result.get("source_call_id") is None:
            chat.say("user", content, time)
        else:
            chat.result(result["source_call_id"], content, time)


def is_swe_agent(document: Any) -> bool:
    """Return whether a JSON document is an SWE-agent trajectory."""
    fields = object_fields(document)
    return isinstance(fields.get("trajectory"), list) and isinstance(fields.get("history"), list)


def read_swe_agent(document: Any, where: str) -> list[Recording]:
    """Return the run in a document."""
    fields = object_fields(document)
    chat = ChatBuilder()
    for message in map(object_fields, list_items(fields["history"])):
        _read_message(chat, message)
    return [chat.recording(str(fields.get("instance_id") or fields.get("environment") or where), where)]


def _read_message(chat: ChatBuilder, message: Mapping[str, Any]) -> None:
    role, text, time = str(message.get("role") or "user"), text_of(message.get("content")), message.get("timestamp")
    if role == "assistant":
        calls = [object_fields(call) for call in list_items(message.get("tool_calls"))]
        bodies = [object_fields(call.get("function")) for call in calls]
        named = [
            (call.get("id"), body.get("name"), body.get("arguments", "")) for call, body in zip(calls, bodies, strict=True)
        ]
        chat.answer(text, calls=named, time=time)
    elif role == "tool" and (call_ids := list_items(message.get("tool_call_ids"))):
        chat.result(call_ids[0], text, time)
    else:
        chat.say("user" if role == "tool" else role, text, time)


def is_tau_bench(document: Any) -> bool:
    """Return whether a JSON document, or its first item, is a tau-bench run."""
    first = document if not list_items(document) else list_items(document)[0]
    return isinstance(object_fields(first).get("traj"), list)


def read_tau_bench(document: Any, where: str) -> list[Recording]:
    """Return the runs in a document, each named by its task and trial."""
    runs = [object_fields(run) for run in list_items(document)] or [object_fields(document)]
    found: list[Recording] = []
    for number, run in enumerate(runs, 1):
        task, trial = run.get("task_id", number), run.get("trial", 0)
        messages = list_items(run.get("traj"))
        found.append(Recording(id=f"task {task}, trial {trial}", messages=messages, format=openai_chat, where=where))
    return found
