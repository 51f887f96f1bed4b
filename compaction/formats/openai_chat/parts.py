"""Reading of the parts of chat-completions messages: texts, media, reasoning, calls and results.

A part outside the content has a mark in place of its wire part, by which `writing` finds it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ...messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..wire import arguments_text, elements_of, fields_of, items_of, json_text, result_part, string
from .fields import MEDIA_KINDS, REASONING_FIELDS, call_fields, is_empty

_RARE_FIELDS: Final = frozenset({*REASONING_FIELDS, "refusal", "audio", "function_call"})


@attrs.frozen
class OfField:
    """The mark of a part that is the value of a field, such as ``refusal``, and not in the content."""

    name: str


@attrs.frozen
class BadCall:
    """The mark of an element of ``tool_calls`` that is not a call; ``value`` is the element."""

    value: Any = attrs.field(eq=False, repr=False)


def read_parts(fields: Mapping[str, Any]) -> list[Part]:
    """Return the parts of any message but a result, reasoning first, calls last."""
    content, calls = read_content(fields.get("content")), _read_calls(fields.get("tool_calls"))
    if _RARE_FIELDS.isdisjoint(fields):
        return content + calls
    parts: list[Part] = [
        ReasoningPart(_reasoning_text(value), raw=OfField(field))
        for field in REASONING_FIELDS
        if not is_empty(value := fields.get(field))
    ]
    parts += content
    if not is_empty(refusal := fields.get("refusal")):
        parts.append(TextPart(json_text(refusal), raw=OfField("refusal")))
    if not is_empty(audio := fields.get("audio")):
        parts.append(MediaPart("audio", size_bytes=_data_size(audio), raw=OfField("audio")))
    parts += calls
    if not is_empty(legacy := fields.get("function_call")):
        parts.append(_read_legacy_call(legacy))
    return parts


def _read_calls(calls: Any) -> list[Part]:
    """Return the parts of ``tool_calls``; a value that is not a list becomes an `OtherPart`."""
    entries = items_of(calls)
    if entries is not None:
        return [read_call(call) for call in entries]
    return [] if calls is None else [OtherPart(json_text(calls), raw=OfField("tool_calls"))]


def _reasoning_text(value: Any) -> str:
    """Return the visible text of a reasoning field: a string, or the texts in a list of blocks."""
    if isinstance(value, str):
        return value
    if (elements := items_of(value)) is not None:
        blocks = [block for block in map(fields_of, elements) if block is not None]
        texts = [block.get("text") or block.get("summary") or block.get("thinking") for block in blocks]
        return "\n".join(text for text in texts if isinstance(text, str))
    return json_text(value)


def read_content(content: Any) -> list[Part]:
    """Return the parts of a content; a string is one text."""
    return [TextPart(content)] if isinstance(content, str) else list(map(read_part, elements_of(content)))


def read_part(part: Any) -> Part:
    """Read one element of a list content; a value that is not understood becomes an `OtherPart`."""
    if isinstance(part, str):
        return TextPart(part, raw=part)
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        return OtherPart(json_text(part), raw=part)
    if kind in ("text", "refusal") and isinstance(text := fields.get(kind), str):
        return TextPart(text, raw=part)
    if kind in ("reasoning", "thinking"):
        return ReasoningPart(_reasoning_text(fields.get("text") or fields.get(kind) or ""), raw=part)
    if kind in MEDIA_KINDS:
        payload = fields.get(kind, fields)
        body = fields_of(payload) or {}
        detail, name = string(body.get("detail")), string(body.get("filename"))
        return MediaPart(MEDIA_KINDS[kind], detail, _data_size(payload), name, raw=part)
    return OtherPart(json_text(fields), raw=part)


def _data_size(payload: Any) -> int:
    """Return the bytes of data in the message itself; a plain address has none."""
    if isinstance(payload, str):
        return len(payload) if payload.startswith("data:") else 0
    fields = fields_of(payload)
    if fields is None:
        return 0
    data = [string(fields.get(key)) for key in ("data", "file_data")]
    carried = sum(len(value) for value in data if not value.startswith(("http://", "https://")))
    return carried + _data_size(fields.get("url")) + _data_size(fields.get("source"))


def read_call(call: Any) -> Part:
    """Read one element of ``tool_calls``; a malformed one becomes an `OtherPart`."""
    fields = fields_of(call)
    kind, argument = call_fields(fields or {})
    body = None if fields is None else fields_of(fields.get(kind))
    if fields is None or body is None:
        return OtherPart(json_text(call if fields is None else fields), raw=BadCall(call))
    return ToolCallPart(string(fields.get("id")), string(body.get("name")), arguments_text(body.get(argument)), raw=call)


def _read_legacy_call(legacy: Any) -> Part:
    """Read the ``function_call`` field; its result names the function, so the name is the id."""
    fields = fields_of(legacy)
    if fields is None:
        return OtherPart(json_text(legacy), raw=OfField("function_call"))
    name = string(fields.get("name"))
    return ToolCallPart(f"function:{name}", name, arguments_text(fields.get("arguments")), raw=OfField("function_call"))


def read_result(fields: Mapping[str, Any], role: str) -> tuple[Part, ...]:
    """Return the one result of a ``tool`` (or legacy ``function``) message."""
    call_id = f"function:{string(fields.get('name'))}" if role == "function" else string(fields.get("tool_call_id"))
    content = fields.get("content")
    if type(content) is str:
        return (ToolResultPart(call_id, content),)
    return (result_part(call_id, read_content(content)),)
