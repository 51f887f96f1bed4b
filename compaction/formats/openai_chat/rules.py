"""The rules of the chat-completions API, each with a name, and what a repair does about it.

The API answers an invalid list with status 400 and names one fault. Validating finds all of them, offline.
``docs/rules/openai-chat.md`` shows every rule with an example and its source. Roles need not alternate, and call arguments need
not be valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from ..fixes import answer_call, drop_result, first_of, give_id, move_result, name_result, part_at
from ..pairing import NOT_RECORDED, Fields, Pairing, Path, Slot
from ..repairing import Draft
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_of
from .checks import message_problems, part_problems
from .fields import call_fields, call_keys, is_empty, result_key, role_of

# ------------------------------------------------------------------------ calls and results


def _calls(fields: Fields) -> Iterator[Slot]:
    if role_of(fields) != "assistant":
        return
    for position, key in call_keys(fields):
        if position is None:
            yield Slot(("function_call",), "" if key is None else f"function:{key[1]}", optional=True)
        else:
            path = ("tool_calls", position)
            yield Slot(path, "" if key is None else key[1], (*path, "id"))


def _results(fields: Fields) -> Iterator[Slot]:
    role = role_of(fields)
    if role not in ("tool", "function"):
        return
    key = result_key(role, fields)
    if role == "tool":
        yield Slot((), "" if key is None else key[1], ("tool_call_id",))
    else:
        yield Slot((), "" if key is None else f"function:{key[1]}", ("name",), rule="function-without-call")


def _is_result(fields: Fields) -> bool:
    return role_of(fields) in ("tool", "function")


_PAIRING: Final = Pairing(
    calls=_calls,
    results=_results,
    continues=lambda before, after: _is_result(after),
    only_results=_is_result,
    answers=_is_result,
    stub=lambda call, id: {"role": "tool", "tool_call_id": id, "content": NOT_RECORDED},
)


# ------------------------------------------------------------------------ fixes


def _empty(draft: Draft, index: int, path: Path) -> str:
    draft.write(index, path, "")
    return "it was made an empty string"


def _write_content(draft: Draft, index: int, path: Path) -> str | None:
    """Put a content that is one part into a list; write any other value as JSON text, if JSON can say it."""
    content = draft.value(index, path)
    if items_of(content) is not None:
        return _empty(draft, index, path)
    if fields_of(content) is not None and not list(part_problems("", role_of(draft.fields(index)), content)):
        draft.write(index, path, [content])
        return "it was put into a list"
    return _write_json(draft, index, path)


def _write_json(draft: Draft, index: int, path: Path) -> str | None:
    """Write a value as JSON text, if JSON can say it."""
    value = draft.value(index, path)
    try:
        text = json.dumps(fields_of(value) or value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
    draft.write(index, path, text)
    return f"it was written as {text!r}"


def _add_type(draft: Draft, index: int, path: Path) -> str | None:
    fields = fields_of(draft.value(index, path)) or {}
    if fields.get("type") is not None or not isinstance(fields.get("text"), str):
        return None
    draft.write(index, path, {**fields, "type": "text"})
    return "it was made a text part"


def _repair_calls(draft: Draft, index: int, path: Path) -> str | None:
    """Remove an empty field, put a lone call into a list, a bare call into a ``function``; write arguments as text."""
    name, value = path[0], draft.value(index, path[:1])
    if is_empty(value):
        draft.remove(index, path[:1])
        return "the field was removed"
    if path == ("tool_calls",) and fields_of((entry := fields_of(value) or {}).get(call_fields(entry)[0])) is not None:
        draft.write(index, path, [value])
        return "it was put into a list"
    if path[-1] in ("arguments", "input"):
        if draft.value(index, path) is not None:
            return _write_json(draft, index, path)
        draft.write(index, path, "" if path[-1] == "input" else "{}")
        return "it was added"
    bare = fields_of(draft.value(index, path[:2])) or {}
    if name != "tool_calls" or path[2:] != ("function",) or not isinstance(bare.get("name"), str) or "arguments" not in bare:
        return None
    rest = {field: value for field, value in bare.items() if field not in ("name", "arguments", "function")}
    body = {"name": bare["name"], "arguments": bare["arguments"]}
    draft.write(index, path[:2], {**rest, "type": "function", "function": body})
    return "its name and arguments were put into a 'function'"


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "There is at least one message.", "send at least one message"),
    "unreadable-message": Rule(
        "message", "A message is an object.", "pass dictionaries, or the openai package's message objects"
    ),
    "missing-role": Rule("message", "It has a role.", "give it one of developer, system, user, assistant, tool"),
    "unknown-role": Rule("message", "The role is one the API knows.", "use one of developer, system, user, assistant, tool"),
    "no-content": Rule(
        "message",
        "A system, developer, user or tool message has a content.",
        "give it a content; an empty string will do",
        _empty,
    ),
    "malformed-content": Rule(
        "message",
        "A content is a string, or a list that is not empty.",
        "make it a string, or a list of at least one part",
        _write_content,
    ),
    "malformed-part": Rule(
        "message",
        "A part is an object with a type, and has the field of that name.",
        "make it an object with a 'type' and the field of that name",
        first_of(part_at(lambda text: {"type": "text", "text": text}), _add_type),
    ),
    "part-not-allowed": Rule(
        "message", "The part's type is one the role takes.", "leave the part out, or move it to a user message"
    ),
    "empty-assistant": Rule(
        "message",
        "An assistant message has a content, calls, a refusal or audio. An empty string is a content.",
        "give it a content, or leave the message out",
        _empty,
    ),
    "reasoning-only": Rule(
        "message",
        "The same, where there is reasoning. OpenAI has no such field; servers that write one may take the message.",
        "add an empty content; servers that produce such messages may take them as they are",
        _empty,
    ),
    "malformed-tool-calls": Rule(
        "message",
        "`tool_calls` is a list that is not empty, of objects that have a `function` (or `custom`) with a name and "
        "arguments, both strings. `function_call` is such a body.",
        "make it a list of objects with 'id', 'type' and 'function', or leave the field out",
        _repair_calls,
    ),
    "call-without-id": Rule("message", "A call has an id.", "give the call an id, and its result the same", give_id, 3),
    "duplicate-call-id": Rule(
        "message", "The calls of one message have different ids.", "give each call of one message an id of its own", give_id, 3
    ),
    "call-without-result": Rule(
        "reach",
        "Each call is answered by a tool message directly after its message, before any other role.",
        "add its result directly after the assistant message, or leave the call out",
        answer_call,
        5,
    ),
    "pending-call": Rule(
        "reach",
        "The same, where the list ends: a result may still come. Not to be sent, but fine to store.",
        "store it as it is; add the result before sending",
    ),
    "result-without-id": Rule(
        "message",
        "A tool message has a `tool_call_id`, a function message a `name`.",
        "set 'tool_call_id' to the id of the call it answers",
        name_result,
        4,
    ),
    "result-without-call": Rule(
        "reach",
        "A tool message stands in the run directly after an assistant message that has a call with its id.",
        "put it directly after the assistant message that makes the call, or leave it out",
        move_result,
        5,
    ),
    "duplicate-result": Rule("reach", "A call has one result.", "keep one result for each call", drop_result, 5),
    "function-without-call": Rule(
        "reach",
        "A legacy function message stands directly after the `function_call` of that name.",
        "put it directly after the assistant message with that function_call, or leave it out",
        move_result,
        5,
    ),
}
"""Every rule: how far it looks, and what to do where it is broken."""

BOOK: Final = RuleBook(rules=RULES, pairing=_PAIRING, message=message_problems)
