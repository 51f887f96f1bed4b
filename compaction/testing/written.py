"""Conversion of the sample conversations to other wire formats: words, calls and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from ..formats import MessageFormat, json_object, openai_chat
from ..messages import Message, TextPart, ToolCallPart, ToolResultPart


@attrs.frozen
class _Blocks:
    """The names in a message of blocks, and functions that make the block of a text, a call and a result."""

    content: str
    roles: Mapping[str, str]
    text: Callable[[str], dict[str, Any]]
    call: Callable[[ToolCallPart, Any], dict[str, Any]]
    result: Callable[[ToolResultPart, str], dict[str, Any]]


_BLOCKS: Final[Mapping[str, _Blocks]] = {
    "anthropic": _Blocks(
        content="content",
        roles={"system": "system", "developer": "system", "assistant": "assistant"},
        text=lambda text: {"type": "text", "text": text},
        call=lambda call, given: {"type": "tool_use", "id": call.id, "name": call.name, "input": given},
        result=lambda result, _: {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text},
    ),
    "gemini": _Blocks(
        content="parts",
        roles={"system": "", "developer": "", "assistant": "model"},
        text=lambda text: {"text": text},
        call=lambda call, given: {"functionCall": {"id": call.id, "name": call.name, "args": given}},
        result=lambda result, name: {
            "functionResponse": {"id": result.call_id, "name": name, "response": {"result": result.text}}
        },
    ),
    "bedrock": _Blocks(
        content="content",
        roles={"system": "", "developer": "", "assistant": "assistant"},
        text=lambda text: {"text": text},
        call=lambda call, given: {"toolUse": {"toolUseId": call.id, "name": call.name, "input": given}},
        result=lambda result, _: {"toolResult": {"toolUseId": result.call_id, "content": [{"text": result.text or "-"}]}},
    ),
}
"""The formats that write blocks. An empty role means that instructions are outside the list."""


def write_chat(messages: list[dict[str, Any]], format: MessageFormat) -> list[Any]:
    """Return chat messages in another format, without images, thoughts and unknown fields; O(parts).

    A format without an entry here gets only the texts that may follow one another.
    """
    if format is openai_chat:
        return messages
    read = list(map(openai_chat.read, messages))
    if format.name == "openai-responses":
        return [item for message in read for item in _items(message)]
    return _in_blocks(read, _BLOCKS[format.name]) if format.name in _BLOCKS else _texts(read, format)


def _items(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.tool_results():
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
    calls = list(message.tool_calls())
    if message.role not in ("tool", "function") and (message.text or not calls):
        yield {"type": "message", "role": message.role, "content": message.text}
    for call in calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _in_blocks(messages: list[Message], blocks: _Blocks) -> list[Any]:
    """Return messages of blocks; consecutive messages of one role become one message."""
    names: dict[str, str] = {}
    written: list[dict[str, Any]] = []
    for message in messages:
        role = blocks.roles.get(message.role, "user")
        if role == "system" and any(earlier["role"] != "system" for earlier in written):
            role = "user"
        made = [block for part in message.parts for block in _written(part, names, blocks)]
        if not role or not made:
            continue
        if written and role != "system" and written[-1]["role"] == role:
            written[-1][blocks.content] += made
        else:
            written.append({"role": role, blocks.content: made})
    for raw in written:
        if [block.get("type") for block in raw[blocks.content]] == ["text"]:
            raw[blocks.content] = raw[blocks.content][0]["text"]
    return written


def _written(part: Any, names: dict[str, str], blocks: _Blocks) -> Iterator[dict[str, Any]]:
    if isinstance(part, TextPart) and part.text.strip():
        yield blocks.text(part.text)
    elif isinstance(part, ToolCallPart):
        names[part.id] = part.name
        given = json_object(part.arguments)
        yield blocks.call(part, {"input": part.arguments} if given is None else given)
    elif isinstance(part, ToolResultPart):
        yield blocks.result(part, names.get(part.call_id, "unknown"))


def _texts(messages: list[Message], format: MessageFormat) -> list[Any]:
    said: list[Message] = []
    before: Message | None = None
    for message in messages:
        role = "system" if message.is_system else "user" if message.role == "user" else "assistant"
        made = format.new(role, message.text)
        if format.acceptable(made) is None and format.follows(before, made):
            said.append(made)
            before = made if before is not None or not made.is_system else None
    while said and not format.follows(said[-1], None):
        said.pop()
    return [message.raw for message in said]
