"""Writing of changed chat-completions messages: results, contents, fields beside the content, and calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ConfigurationError
from ...json_data import same
from ...messages import OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..wire import fields_of
from ..writing import changed_result, unwritable, written_content
from .fields import call_fields
from .parts import BadCall, OfField, read_call, read_part


def write_result(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write a changed result: a string stays a string, a list keeps its unchanged elements."""
    before, after = old[0], parts[0] if len(parts) == 1 else None
    if not isinstance(before, ToolResultPart) or not isinstance(after, ToolResultPart):
        raise ConfigurationError(
            f"parts: a tool message is exactly one ToolResultPart (got {parts!r}); change that one, or pass text="
        )
    if after.call_id != before.call_id:
        legacy = fields["role"] == "function"
        fields["name" if legacy else "tool_call_id"] = after.call_id.removeprefix("function:") if legacy else after.call_id
    if after.text == before.text and same(after.media, before.media):
        return
    fields["content"] = (
        changed_result(fields.get("content"), before, after, read=read_part, write=_write_text, keep_blank=True) or ""
    )


def _write_text(before: Part | None, text: str) -> Any:
    """Return an element with this text, made from the one in its place if that is a text."""
    return _write_part(TextPart(text, raw=before.raw if isinstance(before, TextPart) else None))


def _in_content(part: Part) -> bool:
    """Whether the part is in ``content`` and not in another field."""
    return not isinstance(part, ToolCallPart | ToolResultPart) and not isinstance(part.raw, OfField | BadCall)


def write_content(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed words and media to ``content``, as a string if it was one and still can be."""
    before = [part for part in old if _in_content(part)]
    after = [part for part in parts if _in_content(part)]
    if same(before, after):
        return
    fields["content"] = written_content(fields.get("content"), after, _write_part) or ""


def _write_part(part: Part) -> Any:
    """Write one element of a list content; an unchanged part returns its original element."""
    if read_part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw)
    if isinstance(part, TextPart):
        if fields is None:
            return part.text if isinstance(part.raw, str) else {"type": "text", "text": part.text}
        return {**fields, str(fields["type"]): part.text}
    if isinstance(part, ReasoningPart) and fields is not None:
        return {**fields, "text" if "text" in fields else str(fields["type"]): part.text}
    raise unwritable(part)


def write_fields(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Change or remove the parts with their own field: reasoning, refusal, audio."""
    kept = {part.raw.name: part for part in parts if isinstance(part.raw, OfField)}
    for part in old:
        if not isinstance(part.raw, OfField) or isinstance(part, ToolCallPart | OtherPart):
            continue
        field = part.raw.name
        now = kept.get(field)
        if now is None:
            del fields[field]
        elif isinstance(now, TextPart | ReasoningPart) and isinstance(part, TextPart | ReasoningPart) and now.text != part.text:
            if not isinstance(fields[field], str):
                raise ConfigurationError(f"parts: {field!r} is not plain text, so it cannot be reworded; drop the part instead")
            fields[field] = now.text


def _is_call(part: Part) -> bool:
    """Whether the part is a call, or in the place of one."""
    return isinstance(part, ToolCallPart) or (isinstance(part, OtherPart) and isinstance(part.raw, OfField | BadCall))


def write_calls(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed calls; a field without calls is removed."""
    before = [part for part in old if _is_call(part)]
    after = [part for part in parts if _is_call(part)]
    if before == after:
        return
    legacy = next((part for part in after if part.raw == OfField("function_call")), None)
    listed = [part for part in after if part is not legacy]
    if legacy is None:
        fields.pop("function_call", None)
    elif isinstance(legacy, ToolCallPart) and legacy not in before:
        body = fields_of(fields["function_call"]) or {}
        fields["function_call"] = {**body, "name": legacy.name, "arguments": legacy.arguments}
    if not listed:
        fields.pop("tool_calls", None)
    elif all(part.raw != OfField("tool_calls") for part in listed):
        fields["tool_calls"] = [_write_call(part) for part in listed]


def _write_call(part: Part) -> Any:
    """Write one element of ``tool_calls``; an unchanged call returns its original element."""
    if isinstance(part.raw, BadCall):
        return part.raw.value
    if not isinstance(part, ToolCallPart):
        raise unwritable(part)
    if read_call(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw) or {"type": "function"}
    kind, argument = call_fields(fields)
    body = {**(fields_of(fields.get(kind)) or {}), "name": part.name, argument: part.arguments}
    return {**fields, "id": part.id, kind: body}
