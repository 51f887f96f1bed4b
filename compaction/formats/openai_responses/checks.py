"""What an item of the Responses API breaks by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..pairing import Fields, Finding
from ..wire import fields_of, items_of, kind_of, type_name
from .fields import CALLS, ROLES, call_id_field, call_of, item_type, result_of

_OF_OTHERS: Final = frozenset({"text", "image_url", "file", "tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Types of parts in chat completions and Anthropic Messages, which this API does not know."""

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "function_call": {"name": str, "arguments": str},
    "custom_tool_call": {"name": str, "input": str},
    "reasoning": {"summary": list},
    "compaction": {"encrypted_content": str},
    "item_reference": {"id": str},
}


def message_problems(fields: Fields, last: bool) -> Iterator[Finding]:
    """Yield the rules that an item breaks by itself, whatever stands around it."""
    kind = item_type(fields)
    if not kind:
        yield ".type", "missing-type", f"a type is a non-empty string (got {type_name(fields.get('type'))})"
    elif kind == "message":
        yield from _said_problems(fields)
    for name, wanted in _REQUIRED.get(kind, {}).items():
        value = fields.get(name)
        if not isinstance(value, wanted) and not (wanted is list and items_of(value) is not None):
            yield f".{name}", "malformed-item", f"a {kind} item needs {name!r} (got {type_name(value)})"
    if kind in ("function_call_output", "custom_tool_call_output"):
        yield from _content_problems(".output", "user", fields.get("output"))
    if call_of(fields) == "":
        yield f".{CALLS[kind].key}", "call-without-id", "the call does not say what its output will name"
    if result_of(fields) == "":
        yield f".{call_id_field(fields)}", "result-without-id", "the output does not say what it answers"


def _said_problems(fields: Mapping[str, Any]) -> Iterator[Finding]:
    role = fields.get("role")
    if not isinstance(role, str) or role not in ROLES:
        yield (".role", "unknown-role", f"no such role: {role!r}")
        return
    yield from _content_problems(".content", role, fields.get("content"))


def _content_problems(where: str, role: str, content: Any) -> Iterator[Finding]:
    if isinstance(content, str):
        return
    parts = items_of(content)
    if parts is None:
        yield (where, "malformed-content", f"it is a string or a list (got {type_name(content)})")
    for position, part in enumerate(parts or ()):
        yield from _part_problems(f"{where}[{position}]", role, part)


def _part_problems(where: str, role: str, part: Any) -> Iterator[Finding]:
    fields, kind = fields_of(part), kind_of(part)
    if fields is None or not kind:
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind in _OF_OTHERS or (kind.startswith("input_") if role == "assistant" else kind in ("output_text", "refusal")):
        yield (where, "part-not-allowed", f"a part of type {kind!r} does not belong to the {role}")
    elif kind in ("input_text", "output_text") and not isinstance(fields.get("text"), str):
        yield (where, "malformed-part", f"its 'text' is no string (got {type_name(fields.get('text'))})")
