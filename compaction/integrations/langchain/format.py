"""LangChain's messages as a wire format: every block, call, artifact and extra is kept.

Reducers and checkpointers identify a message by its id. A changed copy keeps its id, so that a graph treats it as the same
message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ...errors import ConfigurationError, InvalidMessage
from ...formats import arguments_object, fields_of, holds_history, items_of, json_text, result_part, string, unwritable
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..message_adapter import MessageAdapter
from ..requirements import import_framework

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "developer",
}
_TYPES: Final[Mapping[str, str]] = {"user": "human", "assistant": "ai", "system": "system", "developer": "system"}
_MEDIA: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "document": "file",
    "text-plain": "file",
}
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_content"})
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"})
_REASONING_EXTRA: Final = "reasoning_content"


@attrs.frozen
class _Extra:
    """The ``raw`` of a part that stands in ``additional_kwargs``."""


class LangChain(MessageAdapter):
    """The format of ``langchain_core.messages``; use the shared instance ``langchain``.

    Reading needs no framework installed: a message is any object with ``type`` and ``content``.
    """

    name = "langchain"
    compared = ("id", "content", "type", "tool_calls")

    def read(self, raw: Any, position: int = 0) -> Message:
        kind, content = getattr(raw, "type", None), getattr(raw, "content", None)
        if not isinstance(kind, str) or kind == "remove" or not isinstance(content, str | list):
            raise InvalidMessage(
                f"messages[{position}]",
                f"a message has a type and a content (got {type(raw).__name__} of type {kind!r})",
                "pass LangChain messages; RemoveMessage is for a reducer",
            )
        role = _ROLES.get(kind) or str(getattr(raw, "role", kind))
        blocks = [TextPart(content)] if content and isinstance(content, str) else list(map(_block, content))
        if kind in ("tool", "function"):
            id = getattr(raw, "tool_call_id", None)
            call_id = id if isinstance(id, str) else f"function:{getattr(raw, 'name', '')}"
            return Message(role, (result_part(call_id, blocks),), raw, self, None)
        held = any(map(holds_history, items_of(content) or ()))
        thought = getattr(raw, "additional_kwargs", {}).get(_REASONING_EXTRA)
        thoughts = [ReasoningPart(thought, raw=_Extra())] if isinstance(thought, str) and thought else []
        calls = [
            ToolCallPart(string(call.get("id")), string(call.get("name")), json_text(call.get("args") or {}), raw=call)
            for call in getattr(raw, "tool_calls", None) or ()
        ]
        return Message(role, (*thoughts, *blocks, *calls), raw, self, getattr(raw, "name", None), holds_history=held)

    def reported_usage(self, raw: Any) -> Any:
        return getattr(raw, "usage_metadata", None)  # what was cached is part of the input tokens

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        raw = message.raw
        update: dict[str, Any] = {}
        if message.role == "tool":
            update["content"] = _result_content(message, parts)
        else:
            update["content"] = _content(raw.content, message.parts, parts)
            if getattr(raw, "tool_calls", None):
                update["tool_calls"] = [_changed_call(part) for part in parts if isinstance(part, ToolCallPart)]
            thought, changed = (_extra_thought(each) for each in (message.parts, parts))
            if changed != thought:
                others = {name: value for name, value in raw.additional_kwargs.items() if name != _REASONING_EXTRA}
                update["additional_kwargs"] = others if changed is None else {**others, _REASONING_EXTRA: changed}
        return self.read(raw.model_copy(update=update))

    def new(self, role: str, text: str) -> Message:
        wire = import_framework("langchain_core.messages")
        kinds = {"human": wire.HumanMessage, "ai": wire.AIMessage, "system": wire.SystemMessage}
        return self.read(kinds[_TYPES.get(role, "human")](content=text))

    def to_wire(self, raw: Any) -> Any:
        return json.loads(json.dumps({"type": raw.type, "data": raw.model_dump(exclude_none=True)}, default=str))

    def from_wire(self, data: Any) -> Any:
        return import_framework("langchain_core.messages").messages_from_dict([data])[0]


langchain = LangChain()


def _block(block: Any) -> Part:
    """Read one content block; a call that is also in ``tool_calls`` is kept but not counted twice."""
    if isinstance(block, str):
        return TextPart(block, raw=block)
    fields = fields_of(block)
    if fields is None:
        return OtherPart(json_text(block), raw=block)
    kind = string(fields.get("type"))
    if kind == "text" and isinstance(fields.get("text"), str):
        return TextPart(fields["text"], raw=block)
    if kind in _THOUGHTS:
        return ReasoningPart(string(fields.get("reasoning") or fields.get("thinking") or fields.get("text")), raw=block)
    if kind in _MEDIA:
        detail = string((fields_of(fields.get("image_url")) or {}).get("detail"))
        return MediaPart(_MEDIA[kind], detail, len(_data(fields)), string(fields.get("filename")), raw=block)
    if kind in _CALL_BLOCKS:
        return OtherPart("", raw=block)
    return OtherPart(json_text(fields), raw=block)


def _data(fields: Mapping[str, Any]) -> str:
    """Return the data in the block itself; empty if it holds a URL."""
    image, source = fields.get("image_url"), fields_of(fields.get("source")) or {}
    url = (fields_of(image) or {"url": image}).get("url")
    if isinstance(url, str) and url.startswith("data:"):
        return url
    return string(fields.get("base64") or fields.get("data") or source.get("data"))


def _extra_thought(parts: Sequence[Part]) -> str | None:
    return next((part.text for part in parts if isinstance(part, ReasoningPart) and isinstance(part.raw, _Extra)), None)


def _result_content(message: Message, parts: Sequence[Part]) -> Any:
    after = parts[0] if len(parts) == 1 else None
    before = message.parts[0]
    if not isinstance(after, ToolResultPart) or not isinstance(before, ToolResultPart) or after.call_id != before.call_id:
        raise ConfigurationError(f"parts: a tool message holds exactly one ToolResultPart (got {parts!r}); change its text")
    media = [each.raw for each in after.media]
    if not media:
        return after.text
    return [*([{"type": "text", "text": after.text}] if after.text else []), *media]


def _content(content: str | list[Any], before: Sequence[Part], after: Sequence[Part]) -> Any:
    """Return the changed content: a string if it was one, else a list that keeps the unchanged blocks.

    A block that repeats a call leaves with that call; if no call leaves, all such blocks stay as they are.
    """
    kept = [part for part in after if not isinstance(part, ToolCallPart) and not isinstance(part.raw, _Extra)]
    if isinstance(content, str) and all(isinstance(part, TextPart) for part in kept):
        return "\n".join([part.text for part in kept if isinstance(part, TextPart)])
    calls = {part.id for part in after if isinstance(part, ToolCallPart)}
    some_call_left = any(isinstance(part, ToolCallPart) and part.id not in calls for part in before)
    blocks = [_changed_block(part, before) for part in kept]
    return [block for block in blocks if not (some_call_left and _repeats_other_call(block, calls))]


def _repeats_other_call(block: Any, calls: set[str]) -> bool:
    """Return whether a block repeats a call that is not one of these."""
    fields = fields_of(block) or {}
    return fields.get("type") in _CALL_BLOCKS and fields.get("id") not in calls


def _changed_block(part: Part, known: Sequence[Part]) -> Any:
    if any(part is each for each in known):
        return {"type": "text", "text": part.text} if part.raw is None and isinstance(part, TextPart) else part.raw
    if isinstance(part, TextPart):
        return {**(fields_of(part.raw) or {"type": "text"}), "text": part.text}
    raise unwritable(part)


def _changed_call(part: ToolCallPart) -> Any:
    if part.raw is not None and json_text(part.raw.get("args") or {}) == part.arguments:
        return part.raw
    return {"name": part.name, "args": arguments_object(part.arguments), "id": part.id, "type": "tool_call"}
