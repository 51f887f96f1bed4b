"""Claude Code's session files: JSON lines in which those of type ``user`` and ``assistant`` wrap an Anthropic message.

The format has no official documentation; it is read as described at https://github.com/skillsynchq/txcript
(docs/formats/claude-code.md): in file order; the lines of one answer share the message's id; lines of a subagent
(``isSidechain``) belong to another conversation. The agent's own compaction summaries are skipped, as the file contains the
whole history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..recordings import Recording
from .chat_builder import ChatBuilder, list_items, object_fields, text_of

__all__ = ["is_claude_code", "read_claude_code"]


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
