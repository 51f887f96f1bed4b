"""Logs that are JSON lines: the session files of Claude Code and Codex CLI, and recordings of ``compaction serve --record``.

In Claude Code's, the lines of type ``user`` and ``assistant`` wrap an Anthropic message. The format has no official
documentation; it is read as described at https://github.com/skillsynchq/txcript (docs/formats/claude-code.md): in file order;
the lines of one answer share the message's id; lines of a subagent (``isSidechain``) belong to another conversation. The
agent's own compaction summaries are skipped, as the file contains the whole history.

In Codex CLI's, the lines of type ``response_item`` are what the model sees; they are read as described at the same place
(docs/formats/codex.md). The other lines repeat the same for display. An answer is everything the model wrote up to the next
result or user message.

In a gateway's recording, each line contains the messages that a request added to its conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...formats import resolve
from ..recordings import Recording, seconds_of
from .chat_builder import ChatBuilder, list_items, object_fields, text_of


def is_claude_code(records: Sequence[Any]) -> bool:
    """Return whether the first records of a file are Claude Code's."""
    return any(
        fields.get("type") in ("user", "assistant")
        and object_fields(fields.get("message")).get("role") in ("user", "assistant")
        for fields in map(object_fields, records)
    )


def read_claude_code(records: Sequence[Any], where: str) -> list[Recording]:
    """Return the session in a file's records."""
    chat = ChatBuilder()
    id, answering = "", None
    for fields in map(object_fields, records):
        message = object_fields(fields.get("message"))
        id = id or str(fields.get("sessionId") or "")
        if fields.get("type") not in ("user", "assistant") or fields.get("isSidechain") is True or not message:
            continue
        if fields.get("isCompactSummary") is True:
            chat.note("a summary that the agent wrote itself is skipped")
        elif fields["type"] == "user":
            answering = None
            _read_user(chat, message.get("content"), fields.get("timestamp"))
        elif message.get("model") == "<synthetic>":
            chat.note("an answer of the client, not of the model, is skipped")
        else:
            same = message.get("id") is not None and message.get("id") == answering
            _read_answer(chat, message.get("content"), fields.get("timestamp"), more=same)
            answering = message.get("id")
    return [chat.recording(id or where, where)]


def _read_user(chat: ChatBuilder, content: Any, time: Any) -> None:
    """Add a user line: a message for each tool result, then a message with the user's own text."""
    said: list[Any] = []
    for block in list_items(content):
        fields = object_fields(block)
        if fields.get("type") == "tool_result":
            chat.result(fields.get("tool_use_id"), text_of(fields.get("content")), time)
        else:
            said.append(fields)
    if said or isinstance(content, str):
        chat.say("user", content if isinstance(content, str) else text_of(said), time)


def _read_answer(chat: ChatBuilder, content: Any, time: Any, *, more: bool) -> None:
    blocks = [object_fields(block) for block in list_items(content)]
    texts = [block for block in blocks if block.get("type") == "text"]
    thoughts = [str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"]
    calls = [
        (block.get("id"), block.get("name"), block.get("input", {})) for block in blocks if block.get("type") == "tool_use"
    ]
    text = content if isinstance(content, str) else text_of(texts)
    chat.answer(text, reasoning="\n".join(thoughts), calls=calls, time=time, more=more)


_ENVELOPES: Final = ("session_meta", "response_item", "event_msg", "turn_context")
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS: Final = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def is_codex(records: Sequence[Any]) -> bool:
    """Return whether the first records of a file are Codex CLI's."""
    return any(fields.get("type") in _ENVELOPES and "payload" in fields for fields in map(object_fields, records))


def read_codex(records: Sequence[Any], where: str) -> list[Recording]:
    """Return the session in a file's records."""
    chat = ChatBuilder()
    id = ""
    for fields in map(object_fields, records):
        kind, payload, time = fields.get("type"), object_fields(fields.get("payload")), fields.get("timestamp")
        if kind == "response_item":
            _read_item(chat, payload, time)
        elif kind == "compacted":
            chat.note("a summary that the agent wrote itself is skipped")
        elif kind == "session_meta":
            id = str(payload.get("id") or "")
            instructions = payload.get("instructions") or object_fields(payload.get("base_instructions")).get("text")
            if isinstance(instructions, str):
                chat.say("system", instructions, time)
    return [chat.recording(id or where, where)]


def _read_item(chat: ChatBuilder, item: Mapping[str, Any], time: Any) -> None:
    """Add an item; items of the model that follow each other are one answer."""
    kind = str(item.get("type"))
    if kind == "message" and item.get("role") == "assistant":
        chat.answer(text_of(item.get("content")), time=time, more=True)
    elif kind == "message":
        chat.say(str(item.get("role") or "user"), text_of(item.get("content")), time)
    elif kind == "reasoning":
        chat.answer(reasoning=text_of(item.get("summary")), time=time, more=True)
    elif kind in _CALLS:
        name = item.get("name") or ("shell" if kind == "local_shell_call" else "")
        chat.answer(calls=[(item.get("call_id"), name, item.get(_CALLS[kind], ""))], time=time, more=True)
    elif kind in _RESULTS:
        output = item.get("output")
        chat.result(item.get("call_id"), text_of(object_fields(output).get("content", output)), time)
    else:
        chat.note(f"an item of type {kind} is skipped")


def is_gateway_log(records: Sequence[Any]) -> bool:
    """Return whether the first records of a file are a gateway's."""
    return bool(records) and object_fields(records[0]).keys() >= {"gateway", "conversation"}


def read_gateway_log(records: Sequence[Any], where: str) -> Iterator[Recording]:
    """Yield the conversations of a gateway's recording, each with the messages of its last request."""
    found: dict[str, tuple[str, list[Any], list[float | None]]] = {}
    for fields in map(object_fields, records):
        added, keep = fields.get("messages"), fields.get("keep")
        if isinstance(added, list | tuple) and isinstance(keep, int):
            _, messages, times = found.setdefault(str(fields.get("conversation")), (str(fields.get("format")), [], []))
            messages[keep:] = list_items(added)
            times[keep:] = [seconds_of(fields.get("at"))] * len(list_items(added))
    for name, (format, messages, times) in found.items():
        yield Recording(id=name, messages=messages, times=times, format=resolve(format), where=where)
