"""Logs that are JSON lines: the session files of Claude Code and of Codex CLI.

In Claude Code's, the lines of type ``user`` and ``assistant`` wrap an Anthropic message. The format has no official
documentation; it is read as described at https://github.com/skillsynchq/txcript (docs/formats/claude-code.md): in file order;
the lines of one answer share the message's id; lines of a subagent (``isSidechain``) belong to another conversation. The
agent's own compaction summaries are skipped, as the file contains the whole history.

In Codex CLI's, the lines of type ``response_item`` are what the model sees; they are read as described at the same place
(docs/formats/codex.md). The other lines repeat the same for display. Older releases wrote the items without an envelope. An
answer is everything the model wrote up to the next result or user message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..recordings import Recording
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
    """Add a user line: each result of a call as a message of its own, then what the user said."""
    if isinstance(content, str):
        chat.say("user", content, time=time)
        return
    said: list[Mapping[str, Any]] = []
    for block in map(object_fields, list_items(content)):
        if block.get("type") == "tool_result":
            chat.result(str(block.get("tool_use_id") or ""), text_of(block.get("content")), time=time)
        else:
            said.append(block)
    if said:
        chat.say("user", text_of(said), time=time)


def _read_answer(chat: ChatBuilder, content: Any, time: Any, *, more: bool) -> None:
    if isinstance(content, str):
        chat.answer(content, time=time, more=more)
        return
    blocks = [object_fields(block) for block in list_items(content)]
    chat.answer(
        "\n".join([text_of([block]) for block in blocks if block.get("type") == "text"]),
        reasoning="\n".join([str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"]),
        calls=[
            (str(block.get("id") or ""), str(block.get("name") or ""), block.get("input", {}))
            for block in blocks
            if block.get("type") == "tool_use"
        ],
        time=time,
        more=more,
    )


_ENVELOPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_BARE: Final = frozenset({"message", "reasoning", *_CALLS, *_RESULTS})


def is_codex(records: Sequence[Any]) -> bool:
    """Return whether the first records of a file are Codex CLI's."""
    every = [object_fields(record) for record in records]
    if any(fields.get("type") in _ENVELOPES and "payload" in fields for fields in every):
        return True
    return any(fields.get("type") in _BARE for fields in every[1:]) and "role" not in every[0]


def read_codex(records: Sequence[Any], where: str) -> list[Recording]:
    """Return the session in a file's records."""
    reader = _Reader()
    for fields in map(object_fields, records):
        kind, payload = fields.get("type"), object_fields(fields.get("payload"))
        if kind == "response_item":
            reader.read_item(payload, fields.get("timestamp"))
        elif kind == "session_meta":
            reader.read_meta(payload, fields.get("timestamp"))
        elif kind == "compacted":
            reader.chat.note("a summary that the agent wrote itself is skipped")
        elif kind in _BARE:
            reader.read_item(fields, fields.get("timestamp"))
        elif kind is None and "id" in fields:
            reader.read_meta(fields, fields.get("timestamp"))
    return [reader.chat.recording(reader.id or where, where)]


class _Reader:
    """Builds the conversation from items. Holds state: the conversation, and whether the last item belongs to an answer."""

    def __init__(self) -> None:
        self.chat = ChatBuilder()
        self.id = ""
        self._answering = False

    def read_meta(self, payload: Mapping[str, Any], time: Any) -> None:
        self.id = str(payload.get("id") or "")
        given = payload.get("instructions") or object_fields(payload.get("base_instructions")).get("text")
        if isinstance(given, str):
            self.chat.say("system", given, time=time)

    def read_item(self, item: Mapping[str, Any], time: Any) -> None:
        kind = str(item.get("type"))
        if kind == "message" and item.get("role") == "assistant":
            self._answer(text=text_of(item.get("content")), time=time)
        elif kind == "message":
            self._answering = False
            self.chat.say(str(item.get("role") or "user"), text_of(item.get("content")), time=time)
        elif kind == "reasoning":
            self._answer(reasoning=text_of(item.get("summary")), time=time)
        elif kind in _CALLS:
            name = str(item.get("name") or ("shell" if kind == "local_shell_call" else ""))
            self._answer(calls=[(str(item.get("call_id") or ""), name, item.get(_CALLS[kind], ""))], time=time)
        elif kind in _RESULTS:
            self._answering = False
            self.chat.result(str(item.get("call_id") or ""), _output(item.get("output")), time=time)
        else:
            self.chat.note(f"an item of type {kind} is skipped")

    def _answer(self, *, time: Any, **pieces: Any) -> None:
        self.chat.answer(**pieces, time=time, more=self._answering)
        self._answering = True


def _output(output: Any) -> str:
    """Return a result's text: a string, parts, or an object with either as ``content``."""
    return text_of(object_fields(output).get("content", output))
