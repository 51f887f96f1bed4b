"""The rules of the chat-completions API, each with a name.

The API answers an invalid list with status 400 and names one fault. `validate` finds all of them, offline.
``docs/validity.md`` shows every rule with an example and its source. Roles need not alternate, and call arguments need not be
valid JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Problem, Rule
from ..wire import fields_of, items_of
from .fields import MEDIA_KINDS, REASONING_FIELDS, ROLES, Key, call_fields, call_keys, has_calls, is_empty, result_key, role_of

__all__ = ["RULES", "message_problems", "null_rule", "part_problems", "validate"]

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "send at least one message"),
    "unreadable-message": Rule("message", "pass dictionaries, or the openai package's message objects"),
    "missing-role": Rule("message", "give it one of developer, system, user, assistant, tool"),
    "unknown-role": Rule("message", "use one of developer, system, user, assistant, tool"),
    "no-content": Rule("message", "give it a content; an empty string will do"),
    "malformed-content": Rule("message", "make it a string, or a list of at least one part"),
    "malformed-part": Rule("message", "make it an object with a 'type' and the field of that name"),
    "part-not-allowed": Rule("message", "leave the part out, or move it to a user message"),
    "empty-assistant": Rule("message", "give it a content, or leave the message out"),
    "reasoning-only": Rule("message", "add an empty content; servers that produce such messages may take them as they are"),
    "malformed-tool-calls": Rule(
        "message", "make it a list of objects with 'id', 'type' and 'function', or leave the field out"
    ),
    "call-without-id": Rule("message", "give the call an id, and its result the same"),
    "duplicate-call-id": Rule("message", "give each call of one message an id of its own"),
    "call-without-result": Rule("reach", "add its result directly after the assistant message, or leave the call out"),
    "pending-call": Rule("reach", "store it as it is; add the result before sending"),
    "result-without-id": Rule("message", "set 'tool_call_id' to the id of the call it answers"),
    "result-without-call": Rule("reach", "put it directly after the assistant message that makes the call, or leave it out"),
    "duplicate-result": Rule("reach", "keep one result for each call"),
    "function-without-call": Rule(
        "reach", "put it directly after the assistant message with that function_call, or leave it out"
    ),
}
"""Every rule: how far it looks, and what to do where it is broken."""

_TEXT: Final = frozenset({"text"})
_SAID: Final = frozenset({"text", "refusal", "reasoning", "thinking", "redacted_thinking"})
_SHOWN: Final = _TEXT | MEDIA_KINDS.keys()
_PARTS: Final = {"user": _SHOWN, "tool": _SHOWN, "assistant": _SAID, "system": _TEXT, "developer": _TEXT, "function": _TEXT}


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Return every rule the list breaks, in order of place; O(parts), without an exception, whatever the list holds.

    Args:
        raws: Messages as dictionaries or objects of the ``openai`` package; anything else is a problem itself.

    >>> call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    >>> asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    >>> validate([asked, {"role": "tool", "tool_call_id": "call_1", "content": "noon"}])
    []
    >>> print(validate([asked, {"role": "user", "content": "well?"}])[0])
    messages[0].tool_calls[0]: the call 'call_1' has no result directly after it [call-without-result]; add its result \
directly after the assistant message, or leave the call out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    found: list[tuple[int, Problem]] = []
    pairs = _Pairs(found)
    for index, raw in enumerate(raws):
        fields = fields_of(raw)
        found.extend((index, problem) for problem in message_problems(raw, fields, f"messages[{index}]"))
        pairs.message(index, fields or {})
    pairs.end_run("pending-call", "has no result yet")
    return [problem for _, problem in sorted(found, key=_place)]


class _Pairs:
    """Pairs results with calls, message by message. Holds state: the open calls of the last assistant message."""

    def __init__(self, found: list[tuple[int, Problem]]) -> None:
        self.found = found
        self.owner = 0
        self.open: dict[Key, str] = {}
        self.answered: set[Key] = set()

    def message(self, index: int, fields: Mapping[str, Any]) -> None:
        role = role_of(fields)
        if role == "tool" or role == "function":
            self.result(index, role, fields)
            return
        self.end_run("call-without-result", "has no result directly after it")
        if role == "assistant":
            self.calls(index, fields)

    def calls(self, index: int, fields: Mapping[str, Any]) -> None:
        self.owner = index
        for place, key in call_keys(fields):
            if key is not None:
                self.open.setdefault(key, f"messages[{index}].{place}")

    def result(self, index: int, role: str, fields: Mapping[str, Any]) -> None:
        key, where = result_key(role, fields), f"messages[{index}]"
        if key is None:
            return
        if key in self.open:
            del self.open[key]
            self.answered.add(key)
        elif key in self.answered:
            text = f"the call {key[1]!r} is answered already"
            self.found.append((index, _problem(where, "duplicate-result", text)))
        else:
            rule = "function-without-call" if role == "function" else "result-without-call"
            text = f"no assistant message directly before it makes the call {key[1]!r}"
            self.found.append((index, _problem(where, rule, text)))

    def end_run(self, rule: str, text: str) -> None:
        for (kind, identifier), where in self.open.items():
            if kind == "tool":
                self.found.append((self.owner, _problem(where, rule, f"the call {identifier!r} {text}")))
        if self.open or self.answered:
            self.open, self.answered = {}, set()


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule].remedy)


def _place(found: tuple[int, Problem]) -> int:
    return found[0]


def _type(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def message_problems(raw: Any, fields: Mapping[str, Any] | None, where: str) -> Iterator[Problem]:
    """Yield the rules that a message breaks by itself, whatever stands around it.

    Args:
        raw: The message.
        fields: Its fields, if it has any.
        where: Its place.
    """
    if fields is None:
        yield _problem(where, "unreadable-message", f"a message is an object with a role (got {_type(raw)})")
        return
    role = role_of(fields)
    if not role:
        yield _problem(f"{where}.role", "missing-role", f"a role is a non-empty string (got {_type(fields.get('role'))})")
        return
    if role not in ROLES:
        yield _problem(f"{where}.role", "unknown-role", f"no such role: {role!r}")
        return
    content = fields.get("content")
    if not isinstance(content, str):
        yield from _content_problems(where, role, fields, content)
    if role == "assistant":
        yield from _call_problems(where, fields)
        yield from _id_problems(where, fields)
    elif role in ("tool", "function") and result_key(role, fields) is None:
        name = "name" if role == "function" else "tool_call_id"
        yield _problem(f"{where}.{name}", "result-without-id", f"a {role} message needs {name!r}")


def _id_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    known: set[Key] = set()
    for place, key in call_keys(fields):
        if key is None:
            yield _problem(f"{where}.{place}.id", "call-without-id", "the call has no id")
        elif key in known:
            text = f"the id {key[1]!r} is that of an earlier call of the same message"
            yield _problem(f"{where}.{place}.id", "duplicate-call-id", text)
        else:
            known.add(key)


def _content_problems(where: str, role: str, fields: Mapping[str, Any], content: Any) -> Iterator[Problem]:
    if content is None:
        if (rule := null_rule(role, fields)) is not None:
            yield _problem(f"{where}.content", rule, _NULL[rule])
    elif (parts := items_of(content)) is None:
        yield _problem(f"{where}.content", "malformed-content", f"a content is a string or a list (got {_type(content)})")
    elif not parts:
        yield _problem(f"{where}.content", "malformed-content", "a list content has at least one part")
    else:
        for position, part in enumerate(parts):
            yield from part_problems(f"{where}.content[{position}]", role, part)


def null_rule(role: str, fields: Mapping[str, Any]) -> str | None:
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


def part_problems(where: str, role: str, part: Any) -> Iterator[Problem]:
    """Yield the rules that a part of a list content breaks, in a message of a known role."""
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        yield _problem(where, "malformed-part", f"a part is an object with a type (got {_type(part)})")
    elif kind not in _PARTS[role]:
        yield _problem(where, "part-not-allowed", f"a {role} message takes no part of type {kind!r}")
    elif kind in ("text", "refusal") and not isinstance(fields.get(kind), str):
        yield _problem(where, "malformed-part", f"its {kind!r} is no string (got {_type(fields.get(kind))})")
    elif kind in MEDIA_KINDS and fields.get(kind) is None and fields.get("source") is None:
        yield _problem(where, "malformed-part", f"its {kind!r} is missing")


def _call_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    calls = fields.get("tool_calls")
    if calls is not None and not (entries := items_of(calls)):
        text = f"calls are a list (got {_type(calls)})" if entries is None else "the list of calls is empty"
        yield _problem(f"{where}.tool_calls", "malformed-tool-calls", text)
    for position, call in enumerate(items_of(calls) or ()):
        yield from _entry_problems(f"{where}.tool_calls[{position}]", call)
    if fields.get("function_call") is not None:
        yield from _body_problems(f"{where}.function_call", fields["function_call"], "arguments")


def _entry_problems(where: str, call: Any) -> Iterator[Problem]:
    fields = fields_of(call)
    if fields is None:
        yield _problem(where, "malformed-tool-calls", f"a call is an object (got {_type(call)})")
        return
    kind, argument = call_fields(fields)
    yield from _body_problems(f"{where}.{kind}", fields.get(kind), argument)


def _body_problems(where: str, body: Any, argument: str) -> Iterator[Problem]:
    fields = fields_of(body)
    if fields is None:
        yield _problem(where, "malformed-tool-calls", f"a call's body is an object (got {_type(body)})")
        return
    if not isinstance(name := fields.get("name"), str) or not name:
        yield _problem(f"{where}.name", "malformed-tool-calls", "the call names no function")
    if not isinstance(fields.get(argument), str):
        text = f"its {argument!r} is no string (got {_type(fields.get(argument))})"
        yield _problem(f"{where}.{argument}", "malformed-tool-calls", text)
