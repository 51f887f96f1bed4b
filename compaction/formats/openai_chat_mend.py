"""Mends one chat-completions message by itself, where that adds nothing it did not say.

A value of the wrong type is written as JSON text, a part or body that lacks its wrapping gets it, a field that says nothing
goes. What would need a guess stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .openai_chat_fields import ROLES, call_fields, is_empty, role_of
from .openai_chat_rules import null_rule, part_problems
from .wire import Changes, fields_of, items_of

__all__ = ["mend_message"]


def mend_message(index: int, raw: Any, changes: Changes) -> Any:
    """The message with its own faults mended; the same object if it has none that can be."""
    fields = fields_of(raw)
    if fields is None or (role := role_of(fields)) not in ROLES:
        return raw
    mended = dict(fields)
    before = len(changes)
    if role == "assistant":
        _mend_calls(index, mended, changes)
    content = mended.get("content")
    if content is None:
        _mend_null(index, role, mended, changes)
    elif (elements := items_of(content)) is not None:
        parts = [kept for position, part in enumerate(elements) for kept in _mended_part(index, position, part, changes)]
        mended["content"] = parts or ""
        if not elements:
            changes.add(index, ".content", "malformed-content", "the list is empty", _EMPTIED)
    elif not isinstance(content, str):
        _mend_content(index, role, mended, changes)
    return raw if len(changes) == before else mended


_EMPTIED = "it was made an empty string"


def _mend_null(index: int, role: str, mended: dict[str, Any], changes: Changes) -> None:
    rule = null_rule(role, mended)
    if rule is not None:
        mended["content"] = ""
        changes.add(index, ".content", rule, "it is null or missing", _EMPTIED)


def _mend_content(index: int, role: str, mended: dict[str, Any], changes: Changes) -> None:
    """Put a content that is one part into a list; write any other value as JSON text, if JSON can say it."""
    content = mended["content"]
    if fields_of(content) is not None and not list(part_problems("", role, content)):
        mended["content"], done = [content], "it was put into a list"
    elif (text := _json(content)) is not None:
        mended["content"], done = text, "it was written as JSON text"
    else:
        return
    changes.add(index, ".content", "malformed-content", "it is neither a string nor a list", done)


def _mended_part(index: int, position: int, part: Any, changes: Changes) -> list[Any]:
    """The part, mended if that is possible; none for a null."""
    fields = fields_of(part)
    if part is None:
        mended, text, done = [], "it is null", "the part was removed"
    elif isinstance(part, str):
        mended, text, done = [{"type": "text", "text": part}], "it is a bare string", "it was made a text part"
    elif fields is not None and fields.get("type") is None and isinstance(fields.get("text"), str):
        mended, text, done = [{**fields, "type": "text"}], "it has no type", "it was made a text part"
    else:
        return [part]
    changes.add(index, f".content[{position}]", "malformed-part", text, done)
    return mended


def _mend_calls(index: int, mended: dict[str, Any], changes: Changes) -> None:
    for name in ("tool_calls", "function_call"):
        if mended.get(name) is not None and is_empty(mended[name]):
            del mended[name]
            changes.add(index, f".{name}", "malformed-tool-calls", "it is empty", "the field was removed")
    calls = mended.get("tool_calls")
    if (entries := items_of(calls)) is not None:
        mended["tool_calls"] = [_mended_call(index, f".tool_calls[{n}]", call, changes) for n, call in enumerate(entries)]
    elif (entry := fields_of(calls)) is not None and fields_of(entry.get(call_fields(entry)[0])) is not None:
        changes.add(index, ".tool_calls", "malformed-tool-calls", "it is one call, not a list", "it was put into a list")
        mended["tool_calls"] = [_mended_call(index, ".tool_calls[0]", calls, changes)]
    legacy = fields_of(mended.get("function_call"))
    if legacy is not None:
        mended["function_call"] = _mended_body(index, ".function_call", legacy, "arguments", changes)


def _mended_call(index: int, place: str, call: Any, changes: Changes) -> Any:
    """The call with name and arguments where and what they should be; the same object if they are, or cannot be."""
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
    mended = _mended_body(index, f"{place}.{kind}", inner, argument, changes)
    return call if mended is inner else {**fields, kind: mended}


def _mended_body(index: int, place: str, body: Mapping[str, Any], argument: str, changes: Changes) -> Mapping[str, Any]:
    """The call's body with its arguments as a string; the same object if they are one, or cannot be."""
    value = body.get(argument)
    if isinstance(value, str):
        return body
    text = {"input": "", "arguments": "{}"}[argument] if value is None else _json(value)
    if text is None:
        return body
    changes.add(index, f"{place}.{argument}", "malformed-tool-calls", "it is no string", f"it was written as {text!r}")
    return {**body, argument: text}


def _json(value: Any) -> str | None:
    """The value as JSON text, or ``None`` if JSON cannot say it."""
    fields = fields_of(value)
    try:
        return json.dumps(value if fields is None else fields, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
