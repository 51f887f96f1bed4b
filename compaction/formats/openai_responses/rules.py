"""Access to the fields of Responses items, and the rules of the API, by name.

``docs/rules/openai-responses.md`` shows every rule with an example and its source. A list is judged as a whole conversation. An
item reference stands for items that are not in the list, so the call of a later result may be among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, repeated
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_of, kind_of, lacking, string, type_name

# ------------------------------------------------------------------------ access to fields

_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})


CALLS: Final[Mapping[str, str]] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "program": "code",
    "tool_search_call": "arguments",
    "mcp_approval_request": "arguments",
}
"""The types of items that are calls, and the field with the arguments."""
_UNANSWERED: Final = frozenset({"tool_search_call", "mcp_approval_request"})
"""The types of calls for which the provider requires no result."""
RESULTS: Final[Mapping[str, str]] = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "computer_call_output": "",
    "local_shell_call_output": "output",
    "shell_call_output": "output",
    "apply_patch_call_output": "output",
    "program_output": "result",
    "tool_search_output": "",
    "mcp_approval_response": "",
}
"""The types of items that are results, and the field with the output, if it is text that can be shortened."""
_KEYS: Final = {"mcp_approval_request": "id", "local_shell_call_output": "id", "mcp_approval_response": "approval_request_id"}
"""The field with the key that a call and its result share, where it is not ``call_id``."""
ANY_CALL: Final = ""
"""The id that an item reference opens: it stands for items that are not in the list, which any later item may continue."""
OF_THE_CALLER: Final = frozenset({"compaction", "compaction_trigger", "additional_tools", "configuration_update"})


def item_type(fields: Mapping[str, Any]) -> str:
    """Return the type of an item; without one, a role makes it a message, an id alone a reference. Empty for neither."""
    kind = fields.get("type")
    if kind is None and "role" in fields:
        return "message"
    if kind is None and "id" in fields and fields.keys() <= {"id", "type"}:
        return "item_reference"
    return string(kind)


def is_answer(fields: Mapping[str, Any]) -> bool:
    """Whether the item is part of an answer: a message of the assistant, a call, reasoning, a hosted tool."""
    kind = item_type(fields)
    if kind == "message":
        return fields.get("role") == "assistant"
    return kind not in OF_THE_CALLER and result_of(fields) is None


def item_links(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids that an item of an answer opens for later items, and the ids that it continues."""
    kind = item_type(fields)
    if kind == "item_reference":
        return (ANY_CALL,), ()
    if kind == "program" or kind == "mcp_approval_request":
        return (string(fields.get(key_field(kind))),), ()
    earlier = caller_of(fields) or string(fields.get("approval_request_id"))
    return (), (earlier,) if earlier else ()


def caller_of(fields: Mapping[str, Any]) -> str | None:
    """Return the ``call_id`` of the program that made this call; ``None`` if the model made it itself."""
    caller = fields_of(fields.get("caller"))
    return string(caller.get("caller_id")) if caller is not None and caller.get("type") == "program" else None


def call_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id that a result of this call names, empty if it has none; ``None`` if the item is not such a call."""
    kind = item_type(fields)
    key = string(fields.get(key_field(kind))) if kind in CALLS else None
    return key or (None if kind in _UNANSWERED else key)


def result_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id of the call that this result answers, empty if it has none; ``None`` if the item is not a result."""
    kind = item_type(fields)
    key = string(fields.get(call_id_field(fields))) if kind in RESULTS else None
    return key or (None if kind == "tool_search_output" else key)  # the provider may have written this one for its own call


def call_id_field(fields: Mapping[str, Any]) -> str:
    """Return the field in which this result names its call."""
    return "call_id" if fields.get("call_id") is not None else key_field(item_type(fields))


def key_field(kind: str) -> str:
    """Return the field with the key that a call or result of this type shares with the other."""
    return _KEYS.get(kind, "call_id")


_STUBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "function_call": {"type": "function_call_output", "output": NOT_RECORDED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": NOT_RECORDED},
    "local_shell_call": {"type": "local_shell_call_output", "output": NOT_RECORDED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": NOT_RECORDED},
}
"""The stubs by the type of the call. Other calls get no stub, because their outputs cannot be invented."""


# ------------------------------------------------------------------------ one message

_OF_OTHERS: Final = frozenset({"text", "image_url", "file", "tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Types of parts in chat completions and Anthropic Messages, which this API does not know."""

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "function_call": {"name": str, "arguments": str},
    "custom_tool_call": {"name": str, "input": str},
    "reasoning": {"summary": list},
    "compaction": {"encrypted_content": str},
    "item_reference": {"id": str},
}


def message_problems(fields: Fields) -> Iterator[Finding]:
    """Yield the rules that an item breaks by itself, independent of its neighbours."""
    kind = item_type(fields)
    if not kind:
        yield ("type",), "missing-type", f"a type is a non-empty string (got {type_name(fields.get('type'))})"
    elif kind == "message":
        role = fields.get("role")
        if isinstance(role, str) and role in _ROLES:
            yield from _content_problems(("content",), role, fields.get("content"))
        else:
            yield ("role",), "unknown-role", f"no such role: {role!r}"
    for name, value in lacking(fields, _REQUIRED.get(kind, {})):
        yield (name,), "malformed-item", f"a {kind} item needs {name!r} (got {type_name(value)})"
    if kind in ("function_call_output", "custom_tool_call_output"):
        yield from _content_problems(("output",), "user", fields.get("output"))


def _content_problems(where: Path, role: str, content: Any) -> Iterator[Finding]:
    if isinstance(content, str):
        return
    parts = items_of(content)
    if parts is None:
        yield (where, "malformed-content", f"it is a string or a list (got {type_name(content)})")
    for position, part in enumerate(parts or ()):
        yield from _part_problems((*where, position), role, part)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    fields, kind = fields_of(part), kind_of(part)
    if fields is None or not kind:
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind in _OF_OTHERS or (kind.startswith("input_") if role == "assistant" else kind in ("output_text", "refusal")):
        yield (where, "part-not-allowed", f"a part of type {kind!r} is not allowed in a message of the {role}")
    elif kind in ("input_text", "output_text") and not isinstance(fields.get("text"), str):
        yield (where, "malformed-part", f"its 'text' is not a string (got {type_name(fields.get('text'))})")


# ------------------------------------------------------------------------ calls and results


def _calls(fields: Fields) -> Iterator[Slot]:
    if (key := call_of(fields)) is not None:
        kind = item_type(fields)
        yield Slot((), key, (key_field(kind),), optional=kind in _UNANSWERED)


def _results(fields: Fields) -> Iterator[Slot]:
    if (key := result_of(fields)) is not None:
        yield Slot((), key, (call_id_field(fields),))


def _stub(call: Any, id: str) -> dict[str, Any] | None:
    stub = _STUBS.get(item_type(fields_of(call) or {}))
    return None if stub is None else {**stub, key_field(stub["type"]): id}


def _belongs(fields: Fields) -> bool:
    """Whether an item is part of an answer, or the result of a call."""
    return is_answer(fields) or result_of(fields) is not None


_PAIRING: Final = Pairing(
    calls=_calls,
    results=_results,
    continues=lambda before, after: _belongs(before) and _belongs(after),
    only_results=_belongs,
    stub=_stub,
    answers=is_answer,
    anywhere=True,
    counted=True,
    unknown=lambda fields: item_type(fields) == "item_reference",
)


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield repeated ids, reasoning without its item, and calls of programs that are not running."""
    for id, index in repeated((_item_id(fields), index) for index, fields in enumerate(contents)):
        yield index, (("id",), "duplicate-item-id", f"the id {id!r} is that of an earlier item")
    followed = False
    for index in range(len(contents) - 1, -1, -1):
        if item_type(contents[index]) == "reasoning" and not followed:
            yield index, ((), "reasoning-without-item", "no item of the same answer comes after it")
        else:
            followed = is_answer(contents[index])
    yield from _caller_problems(contents)


def _item_id(fields: Fields) -> str:
    """Return the id of an item; empty if it has none, or if the id is that of its call."""
    return "" if item_type(fields) in RESULTS and call_id_field(fields) == "id" else string(fields.get("id"))


def _caller_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    running: set[str] = set()
    for index, fields in enumerate(contents):
        kind, program = item_type(fields), caller_of(fields)
        if kind == "item_reference":
            return
        if call_of(fields) is not None and program is not None and program not in running:
            yield index, (("caller",), "call-without-program", f"no program {program!r} runs before it")
        if kind == "program":
            running.add(call_of(fields) or "")
        elif kind == "program_output":
            running.discard(result_of(fields) or "")


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("send at least one item"),
    "unreadable-message": Rule("pass dictionaries, or the openai package's objects"),
    "missing-type": Rule("give it the type the API documents, or make it a message with a role"),
    "unknown-role": Rule("use one of developer, system, user, assistant"),
    "malformed-content": Rule("make it a string, or a list of parts"),
    "malformed-part": Rule("make it an object with a 'type' and the field named by that type"),
    "part-not-allowed": Rule("use 'output_text' and 'refusal' in messages of the assistant, and 'input_...' elsewhere"),
    "malformed-item": Rule("give it the fields of its type"),
    "duplicate-item-id": Rule("leave the second item out, or its id", "block"),
    "reasoning-without-item": Rule("keep the item that followed it in the answer, or leave the reasoning out", "message"),
    "call-without-id": Rule("give the call an id, and its output the same id"),
    "duplicate-call-id": Rule("give each call a different 'call_id'", "id"),
    "call-without-program": Rule("keep the program before it, or leave the call and its output out"),
    "call-without-result": Rule("add its output after it, or leave the call out", "pair"),
    "pending-call": Rule("store the list unchanged; add the output before sending it"),
    "result-without-id": Rule("set 'call_id' to the id of the call it answers"),
    "result-without-call": Rule("put it after the call it answers, or leave it out", "pair"),
    "duplicate-result": Rule("keep one output for each call", "pair"),
}

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    shape="an item is an object with a type or a role",
    whole=_list_problems,
)
