"""Repair one chat-completions message by itself, where that adds nothing it did not say.

A value of the wrong type is written as JSON text, a part or body that lacks its wrapping gets it, a field that says nothing
goes. What would need a guess stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..wire import Changes, fields_of, items_of
from .fields import ROLES, call_fields, is_empty, role_of
from .rules import null_rule, part_problems

__all__ = ["repair_message"]


def repair_message(index: int, raw: Any, changes: Changes) -> Any:
    """Return the message repaired; the same object if nothing was changed."""
    fields = fields_of(raw)
    if fields is None or (role := role_of(fields)) not in ROLES:
        return raw
    repaired = dict(fields)
    before = len(changes)
    if role == "assistant":
        _repair_calls(index, repaired, changes)
    content = repaired.get("content")
    if content is None:
        _repair_null(index, role, repaired, changes)
    elif (elements := items_of(content)) is not None:
        parts = [kept for position, part in enumerate(elements) for kept in _repaired_part(index, position, part, changes)]
        repaired["content"] = parts or ""
        if not elements:
            changes.add(index, ".content", "malformed-content", "the list is empty", _EMPTIED)
    elif not isinstance(content, str):
        _repair_content(index, role, repaired, changes)
    return raw if len(changes) == before else repaired


_EMPTIED = "it was made an empty string"


def _repair_null(index: int, role: str, repaired: dict[str, Any], changes: Changes) -> None:
    rule = null_rule(role, repaired)
    if rule is not None:
        repaired["content"] = ""
        changes.add(index, ".content", rule, "it is null or missing", _EMPTIED)


def _repair_content(index: int, role: str, repaired: dict[str, Any], changes: Changes) -> None:
    """Put a content that is one part into a list; write any other value as JSON text, if JSON can say it."""
    content = repaired["content"]
    if fields_of(content) is not None and not list(part_problems("", role, content)):
        repaired["content"], done = [content], "it was put into a list"
    elif (text := _json(content)) is not None:
        repaired["content"], done = text, "it was written as JSON text"
    else:
        return
    changes.add(index, ".content", "malformed-content", "it is neither a string nor a list", done)


def _repaired_part(index: int, position: int, part: Any, changes: Changes) -> list[Any]:
    """Return the part, repaired if possible; none for a null."""
    fields = fields_of(part)
    if part is None:
        repaired, text, done = [], "it is null", "the part was removed"
    elif isinstance(part, str):
        repaired, text, done = [{"type": "text", "text": part}], "it is a bare string", "it was made a text part"
    elif fields is not None and fields.get("type") is None and isinstance(fields.get("text"), str):
        repaired, text, done = [{**fields, "type": "text"}], "it has no type", "it was made a text part"
    else:
        return [part]
    changes.add(index, f".content[{position}]", "malformed-part", text, done)
    return repaired


def _repair_calls(index: int, repaired: dict[str, Any], changes: Changes) -> None:
    for name in ("tool_calls", "function_call"):
        if repaired.get(name) is not None and is_empty(repaired[name]):
            del repaired[name]
            changes.add(index, f".{name}", "malformed-tool-calls", "it is empty", "the field was removed")
    calls = repaired.get("tool_calls")
    if (entries := items_of(calls)) is not None:
        repaired["tool_calls"] = [_repaired_call(index, f".tool_calls[{n}]", call, changes) for n, call in enumerate(entries)]
    elif (entry := fields_of(calls)) is not None and fields_of(entry.get(call_fields(entry)[0])) is not None:
        changes.add(index, ".tool_calls", "malformed-tool-calls", "it is one call, not a list", "it was put into a list")
        repaired["tool_calls"] = [_repaired_call(index, ".tool_calls[0]", calls, changes)]
    legacy = fields_of(repaired.get("function_call"))
    if legacy is not None:
        repaired["function_call"] = _repaired_body(index, ".function_call", legacy, "arguments", changes)


def _repaired_call(index: int, place: str, call: Any, changes: Changes) -> Any:
    """Return the call with its name and arguments in their places; the same object if nothing was changed."""
    fields = fields_of(call)
    if fields is None:
        return call
    if not {"function", "custom"} & fields.keys() and isinstance(fields.get("name"), str) and "arguments" in fields:
        body = {"name": fields["name"], "arguments": fields["arguments"]}
        rest = {name: value for name, value in fields.items() if name not in body}
        call = fields = {**rest, "type": "function", "function": body}
        changes.add(
            index, place, "malformed-tool-calls", "its name and arguments stand bare", "they were put into a 'function'"
        )
    kind, argument = call_fields(fields)
    inner = fields_of(fields.get(kind))
    if inner is None:
        return call
    repaired = _repaired_body(index, f"{place}.{kind}", inner, argument, changes)
    return call if repaired is inner else {**fields, kind: repaired}


def _repaired_body(index: int, place: str, body: Mapping[str, Any], argument: str, changes: Changes) -> Mapping[str, Any]:
    """Return the call's body with its arguments as a string; the same object if nothing was changed."""
    value = body.get(argument)
    if isinstance(value, str):
        return body
    text = {"input": "", "arguments": "{}"}[argument] if value is None else _json(value)
    if text is None:
        return body
    changes.add(index, f"{place}.{argument}", "malformed-tool-calls", "it is no string", f"it was written as {text!r}")
    return {**body, argument: text}


def _json(value: Any) -> str | None:
    """Return the value as JSON text, or ``None`` if JSON cannot say it."""
    fields = fields_of(value)
    try:
        return json.dumps(value if fields is None else fields, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
