"""Claude Code's session files: JSON lines of which those of type ``user`` and ``assistant`` wrap an Anthropic message.

The format is not documented by its maker; it is read as described at https://github.com/skillsynchq/txcript
(docs/formats/claude-code.md): in file order; an answer stands in several lines that share the message's id; what a subagent
said (``isSidechain``) is another conversation. The agent's own compaction summaries are left out: the whole history is in the
file, and is what is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..recording import Recording
from .chat import Chat, fields_of, items_of, text_of

__all__ = ["is_claude_code", "read_claude_code"]


def is_claude_code(records: Sequence[Any]) -> bool:
    """Whether the first records of a file are Claude Code's."""
    return any(
        fields.get("type") in ("user", "assistant") and fields_of(fields.get("message")).get("role") in ("user", "assistant")
        for fields in map(fields_of, records)
    )


def read_claude_code(records: Sequence[Any], where: str) -> list[Recording]:
    """The session in a file's records."""
    chat = Chat()
    id, answering = "", None
    for fields in map(fields_of, records):
        message = fields_of(fields.get("message"))
        id = id or str(fields.get("sessionId") or "")
        if fields.get("type") not in ("user", "assistant") or fields.get("isSidechain") is True or not message:
            continue
        if fields.get("isCompactSummary") is True:
            chat.note("the agent compacted this session itself; its summary is left out")
        elif fields["type"] == "user":
            answering = None
            _read_user(chat, message.get("content"), fields.get("timestamp"))
        elif message.get("model") == "<synthetic>":
            chat.note("an answer is the client's, not the model's; it is left out")
        else:
            same = message.get("id") is not None and message.get("id") == answering
            _read_answer(chat, message.get("content"), fields.get("timestamp"), more=same)
            answering = message.get("id")
    return [chat.recording(id or where, where)]


def _read_user(chat: Chat, content: Any, time: Any) -> None:
    """A user line: results of calls, each a message of its own, and then what the user said."""
    if isinstance(content, str):
        chat.say("user", content, time=time)
        return
    said: list[Mapping[str, Any]] = []
    for block in map(fields_of, items_of(content)):
        if block.get("type") == "tool_result":
            chat.result(str(block.get("tool_use_id") or ""), text_of(block.get("content")), time=time)
        else:
            said.append(block)
    if said:
        chat.say("user", text_of(said), time=time)


def _read_answer(chat: Chat, content: Any, time: Any, *, more: bool) -> None:
    if isinstance(content, str):
        chat.answer(content, time=time, more=more)
        return
    blocks = [fields_of(block) for block in items_of(content)]
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
