"""What a chat-completions message breaks by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..pairing import Fields, Finding
from ..wire import fields_of, items_of, type_name
from .fields import MEDIA_KINDS, REASONING_FIELDS, ROLES, Key, call_fields, call_keys, has_calls, is_empty, result_key, role_of

_TEXT: Final = frozenset({"text"})
_SAID: Final = frozenset({"text", "refusal", "reasoning", "thinking", "redacted_thinking"})
_SHOWN: Final = _TEXT | MEDIA_KINDS.keys()
_PARTS: Final = {"user": _SHOWN, "tool": _SHOWN, "assistant": _SAID, "system": _TEXT, "developer": _TEXT, "function": _TEXT}


def message_problems(fields: Fields, last: bool) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself, whatever stands around it."""
    role = role_of(fields)
    if not role:
        yield ".role", "missing-role", f"a role is a non-empty string (got {type_name(fields.get('role'))})"
        return
    if role not in ROLES:
        yield ".role", "unknown-role", f"no such role: {role!r}"
        return
    content = fields.get("content")
    if not isinstance(content, str):
        yield from _content_problems(role, fields, content)
    if role == "assistant":
        yield from _call_problems(fields)
        yield from _id_problems(fields)
    elif role in ("tool", "function") and result_key(role, fields) is None:
        name = "name" if role == "function" else "tool_call_id"
        yield f".{name}", "result-without-id", f"a {role} message needs {name!r}"


def _id_problems(fields: Mapping[str, Any]) -> Iterator[Finding]:
    known: set[Key] = set()
    for place, key in call_keys(fields):
        if key is None:
            yield (f".tool_calls[{place}].id", "call-without-id", "the call has no id")
        elif key in known:
            text = f"the id {key[1]!r} is that of an earlier call of the same message"
            yield (f".tool_calls[{place}].id", "duplicate-call-id", text)
        else:
            known.add(key)


def _content_problems(role: str, fields: Mapping[str, Any], content: Any) -> Iterator[Finding]:
    if content is None:
        if (rule := _null_rule(role, fields)) is not None:
            yield (".content", rule, _NULL[rule])
    elif (parts := items_of(content)) is None:
        yield (".content", "malformed-content", f"a content is a string or a list (got {type_name(content)})")
    elif not parts:
        yield (".content", "malformed-content", "a list content has at least one part")
    else:
        for position, part in enumerate(parts):
            yield from part_problems(f".content[{position}]", role, part)


def _null_rule(role: str, fields: Mapping[str, Any]) -> str | None:
    """Return the rule that a null or missing content breaks; ``None`` where the message may go without one."""
    if role == "assistant":
        if has_calls(fields) or not is_empty(fields.get("audio")) or not is_empty(fields.get("refusal")):
            return None
        return "empty-assistant" if all(is_empty(fields.get(name)) for name in REASONING_FIELDS) else "reasoning-only"
    return None if role == "function" else "no-content"


_NULL: Final = {
    "no-content": "it says nothing",
    "empty-assistant": "it has neither content nor calls, refusal or audio",
    "reasoning-only": "it has reasoning and nothing else",
}


def part_problems(where: str, role: str, part: Any) -> Iterator[Finding]:
    """Yield the rules that a part of a list content breaks, in a message of a known role."""
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind not in _PARTS[role]:
        yield (where, "part-not-allowed", f"a {role} message takes no part of type {kind!r}")
    elif kind in ("text", "refusal") and not isinstance(fields.get(kind), str):
        yield (where, "malformed-part", f"its {kind!r} is no string (got {type_name(fields.get(kind))})")
    elif kind in MEDIA_KINDS and fields.get(kind) is None and fields.get("source") is None:
        yield (where, "malformed-part", f"its {kind!r} is missing")


def _call_problems(fields: Mapping[str, Any]) -> Iterator[Finding]:
    calls = fields.get("tool_calls")
    if calls is not None and not (entries := items_of(calls)):
        text = f"calls are a list (got {type_name(calls)})" if entries is None else "the list of calls is empty"
        yield (".tool_calls", "malformed-tool-calls", text)
    for position, call in enumerate(items_of(calls) or ()):
        yield from _entry_problems(f".tool_calls[{position}]", call)
    if fields.get("function_call") is not None:
        yield from _body_problems(".function_call", fields["function_call"], "arguments")


def _entry_problems(where: str, call: Any) -> Iterator[Finding]:
    fields = fields_of(call)
    if fields is None:
        yield (where, "malformed-tool-calls", f"a call is an object (got {type_name(call)})")
        return
    kind, argument = call_fields(fields)
    yield from _body_problems(f"{where}.{kind}", fields.get(kind), argument)


def _body_problems(where: str, body: Any, argument: str) -> Iterator[Finding]:
    fields = fields_of(body)
    if fields is None:
        yield (where, "malformed-tool-calls", f"a call's body is an object (got {type_name(body)})")
        return
    if not isinstance(name := fields.get("name"), str) or not name:
        yield (f"{where}.name", "malformed-tool-calls", "the call names no function")
    if not isinstance(fields.get(argument), str):
        text = f"its {argument!r} is no string (got {type_name(fields.get(argument))})"
        yield (f"{where}.{argument}", "malformed-tool-calls", text)
