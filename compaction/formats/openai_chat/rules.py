"""Access to the fields of chat-completions messages, and the rules of the API, by name.

The API answers an invalid list with status 400 and names one fault. Validation finds all faults, offline.
``docs/rules/openai-chat.md`` shows every rule with an example and its source. Roles need not alternate, and call arguments need
not be valid JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, repeated
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_of, string, type_name

# ------------------------------------------------------------------------ access to fields

ROLES: Final = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
REASONING_FIELDS: Final = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
MEDIA_KINDS: Final[Mapping[str, str]] = {
    "image_url": "image",
    "image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "file": "file",
    "document_url": "file",
}
"""Types of parts with media, of the API and of compatible servers, and the kind of media."""


def call_fields(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field with the body of a call of this kind, and the field of the body with its arguments."""
    return ("custom", "input") if fields.get("type") == "custom" else ("function", "arguments")


def calls_of(fields: Fields) -> Iterator[Slot]:
    """Yield the calls of an assistant message; a result of the legacy ``function_call`` names the function."""
    if fields.get("role") != "assistant":
        return
    for position, call in enumerate(items_of(fields.get("tool_calls")) or ()):
        if (entry := fields_of(call)) is not None:
            path = ("tool_calls", position)
            yield Slot(path, string(entry.get("id")), (*path, "id"))
    if name := string((fields_of(fields.get("function_call")) or {}).get("name")):
        yield Slot(("function_call",), f"function:{name}", optional=True)


def results_of(fields: Fields) -> Iterator[Slot]:
    """Yield the result that a tool message or a legacy function message is."""
    if fields.get("role") == "tool":
        yield Slot((), string(fields.get("tool_call_id")), ("tool_call_id",))
    elif fields.get("role") == "function":
        name = string(fields.get("name"))
        yield Slot((), name and f"function:{name}", ("name",), rule="function-without-call")


def is_empty(value: Any) -> bool:
    """Whether a field is null, zero, an empty text or list, or an object of such values.

    Some servers write every field of a message; a field that does not apply is then an object of empty strings and zeros.
    """
    if value is None:
        return True
    fields = fields_of(value)
    inside = [value] if fields is None else fields.values()
    return all(each is None or (isinstance(each, str | int | float | list | tuple | Mapping) and not each) for each in inside)


# ------------------------------------------------------------------------ one message

_PART_TYPES: Final = {
    **dict.fromkeys(("user", "tool"), ("text", *MEDIA_KINDS)),
    **dict.fromkeys(("system", "developer", "function"), ("text",)),
    "assistant": ("text", "refusal", "reasoning", "thinking", "redacted_thinking"),
}
_NEEDED: Final = ("tool_calls", "function_call", "audio", "refusal")
"""Fields of an answer, of which one is enough instead of a content."""


def message_problems(fields: Fields) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself, independent of its neighbours."""
    role = string(fields.get("role"))
    if not role:
        yield ("role",), "missing-role", f"a role is a non-empty string (got {type_name(fields.get('role'))})"
    elif role not in ROLES:
        yield ("role",), "unknown-role", f"no such role: {role!r}"
    else:
        yield from _content_problems(role, fields, fields.get("content"))
        if role == "assistant":
            yield from _call_problems(fields)


def _content_problems(role: str, fields: Mapping[str, Any], content: Any) -> Iterator[Finding]:
    if isinstance(content, str):
        return
    if content is None and role == "assistant":
        if all(is_empty(fields.get(name)) for name in _NEEDED):
            if all(is_empty(fields.get(name)) for name in REASONING_FIELDS):
                yield ("content",), "empty-assistant", "it has neither content nor calls, refusal or audio"
            else:
                yield ("content",), "reasoning-only", "it has only reasoning"
    elif content is None:
        if role != "function":
            yield ("content",), "no-content", "it is missing"
    elif (parts := items_of(content)) is None:
        yield (("content",), "malformed-content", f"a content is a string or a list (got {type_name(content)})")
    elif not parts:
        yield (("content",), "malformed-content", "a list content has at least one part")
    else:
        for position, part in enumerate(parts):
            yield from _part_problems(("content", position), role, part)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    """Yield the rules that a part of a list content breaks, in a message of a known role."""
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind not in _PART_TYPES[role]:
        yield (where, "part-not-allowed", f"a {role} message does not accept a part of type {kind!r}")
    elif kind in ("text", "refusal") and not isinstance(fields.get(kind), str):
        yield (where, "malformed-part", f"its {kind!r} is not a string (got {type_name(fields.get(kind))})")
    elif kind in MEDIA_KINDS and fields.get(kind) is None and fields.get("source") is None:
        yield (where, "malformed-part", f"its {kind!r} is missing")


def _call_problems(fields: Mapping[str, Any]) -> Iterator[Finding]:
    calls = fields.get("tool_calls")
    if calls is not None and not (entries := items_of(calls)):
        text = f"calls are a list (got {type_name(calls)})" if entries is None else "the list of calls is empty"
        yield (("tool_calls",), "malformed-tool-calls", text)
    for position, call in enumerate(items_of(calls) or ()):
        where = ("tool_calls", position)
        if (entry := fields_of(call)) is None:
            yield (where, "malformed-tool-calls", f"a call is an object (got {type_name(call)})")
        else:
            kind, argument = call_fields(entry)
            yield from _body_problems((*where, kind), entry.get(kind), argument)
    if fields.get("function_call") is not None:
        yield from _body_problems(("function_call",), fields["function_call"], "arguments")
    for key, call in repeated((call.key, call) for call in calls_of(fields)):
        yield call.id, "duplicate-call-id", f"an earlier call of the same message has the id {key!r}"


def _body_problems(where: Path, body: Any, argument: str) -> Iterator[Finding]:
    fields = fields_of(body)
    if fields is None:
        yield (where, "malformed-tool-calls", f"a call's body is an object (got {type_name(body)})")
        return
    if not isinstance(name := fields.get("name"), str) or not name:
        yield ((*where, "name"), "malformed-tool-calls", "the call has no function name")
    if not isinstance(fields.get(argument), str):
        text = f"its {argument!r} is not a string (got {type_name(fields.get(argument))})"
        yield ((*where, argument), "malformed-tool-calls", text)


# ------------------------------------------------------------------------ calls and results


def _is_result(fields: Fields) -> bool:
    return fields.get("role") in ("tool", "function")


_PAIRING: Final = Pairing(
    calls=calls_of,
    results=results_of,
    continues=lambda before, after: _is_result(after),
    only_results=_is_result,
    answers=_is_result,
    stub=lambda call, id: {"role": "tool", "tool_call_id": id, "content": NOT_RECORDED},
)


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("send at least one message"),
    "unreadable-message": Rule("pass dictionaries, or the openai package's message objects"),
    "missing-role": Rule("give it one of developer, system, user, assistant, tool"),
    "unknown-role": Rule("use one of developer, system, user, assistant, tool"),
    "no-content": Rule("give it content; an empty string is enough", "blank"),
    "malformed-content": Rule("make it a string, or a list of at least one part"),
    "malformed-part": Rule("make it an object with a 'type' and the field named by that type"),
    "part-not-allowed": Rule("leave the part out, or move it to a user message"),
    "empty-assistant": Rule("give it content, or leave the message out", "blank"),
    "reasoning-only": Rule("add an empty content; servers that produce such messages may accept them unchanged", "blank"),
    "malformed-tool-calls": Rule("make it a list of objects with 'id', 'type' and 'function', or leave the field out"),
    "call-without-id": Rule("give the call an id, and its result the same id"),
    "duplicate-call-id": Rule("give each call of one message a different id", "id"),
    "call-without-result": Rule("add its result directly after the assistant message, or leave the call out", "pair"),
    "pending-call": Rule("store the list unchanged; add the result before sending it"),
    "result-without-id": Rule("set 'tool_call_id' to the id of the call it answers"),
    "result-without-call": Rule("put it directly after the assistant message that makes the call, or leave it out", "pair"),
    "duplicate-result": Rule("keep one result for each call", "pair"),
    "function-without-call": Rule(
        "put it directly after the assistant message with that function_call, or leave it out", "pair"
    ),
}

BOOK: Final = RuleBook(rules=RULES, pairing=_PAIRING, message=message_problems)
