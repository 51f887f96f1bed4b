"""The rules of the Responses API, each with a name, and what a repair does about it.

``docs/rules/openai-responses.md`` shows every rule with an example and its source. A list is judged as a whole conversation. An
item reference brings in items that are not known here, so a result after one may have its call among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..fixes import answer_call, drop, drop_result, first_of, give_id, list_content, move_result, name_result, part_at
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot
from ..repairing import Draft
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, json_text, kind_of, string
from .checks import message_problems
from .fields import CALLS, RESULTS, call_id_field, call_of, caller_of, is_answer, item_type, result_of

_STUBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "function_call": {"type": "function_call_output", "output": NOT_RECORDED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": NOT_RECORDED},
    "local_shell_call": {"type": "local_shell_call_output", "output": NOT_RECORDED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": NOT_RECORDED},
}
"""The stubs, by the type of the call; the outputs of other calls cannot be made up, so they get none."""


# ------------------------------------------------------------------------ calls and results


def _calls(fields: Fields) -> Iterator[Slot]:
    if (key := call_of(fields)) is not None:
        kind = CALLS[item_type(fields)]
        yield Slot((), key, (kind.key,), optional=not kind.answered)


def _results(fields: Fields) -> Iterator[Slot]:
    if (key := result_of(fields)) is not None:
        yield Slot((), key, (call_id_field(fields),))


def _stub(call: Any, id: str) -> dict[str, Any] | None:
    stub = _STUBS.get(item_type(fields_of(call) or {}))
    return None if stub is None else {**stub, RESULTS[str(stub["type"])].key: id}


def _belongs(fields: Fields) -> bool:
    """Whether an item is a piece of an answer, or the result of a call."""
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
    """Yield ids that are used twice, reasoning without its item, and calls of programs that do not run."""
    ids: set[str] = set()
    for index, fields in enumerate(contents):
        if (identifier := _item_id(fields)) and identifier in ids:
            yield index, (".id", "duplicate-item-id", f"the id {identifier!r} is that of an earlier item")
        ids.add(identifier)
    followed = False
    for index in range(len(contents) - 1, -1, -1):
        if item_type(contents[index]) == "reasoning" and not followed:
            yield index, ("", "reasoning-without-item", "no item of the same answer comes after it")
        else:
            followed = is_answer(contents[index])
    yield from _caller_problems(contents)


def _item_id(fields: Fields) -> str:
    """Return the id of an item; empty if it has none, or one that names its call."""
    return "" if item_type(fields) in RESULTS and call_id_field(fields) == "id" else string(fields.get("id"))


def _caller_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    running: set[str] = set()
    for index, fields in enumerate(contents):
        kind, program = item_type(fields), caller_of(fields)
        if kind == "item_reference":
            return
        if call_of(fields) is not None and program is not None and program not in running:
            yield index, (".caller", "call-without-program", f"no program {program!r} runs before it")
        if kind == "program":
            running.add(call_of(fields) or "")
        elif kind == "program_output":
            running.discard(result_of(fields) or "")


# ------------------------------------------------------------------------ fixes


def _write_text(draft: Draft, index: int, path: Path) -> str:
    """Write a value as text."""
    value = draft.value(index, path)
    draft.write(index, path, "" if value is None else json_text(value))
    return "it was written as text"


def _write_arguments(draft: Draft, index: int, path: Path) -> str | None:
    if path not in (("arguments",), ("input",)):
        return None
    if draft.value(index, path) is not None:
        return _write_text(draft, index, path)
    draft.write(index, path, "{}" if path == ("arguments",) else "")
    return "it was added"


def _said(draft: Draft, index: int) -> str:
    return "output_text" if draft.fields(index).get("role") == "assistant" else "input_text"


def _part(draft: Draft, index: int, path: Path) -> str | None:
    return part_at(lambda text: {"type": _said(draft, index), "text": text})(draft, index, path)


def _retype(draft: Draft, index: int, path: Path) -> str | None:
    """Give a text the type that the role takes."""
    fields = fields_of(draft.value(index, path)) or {}
    if fields.get("type") not in ("input_text", "output_text", "text") or not isinstance(fields.get("text"), str):
        return None
    said = _said(draft, index)
    draft.write(index, path, {**fields, "type": said})
    return f"it was made {said!r}"


def _drop_id(draft: Draft, index: int, path: Path) -> str:
    """Remove an item that repeats another or only refers to it; of any other the id."""
    first = draft.once(_first_by_id)[draft.value(index, path)]
    if item_type(draft.fields(index)) == "item_reference" or draft.messages[index] == draft.messages[first]:
        draft.remove(index)
        return "the item was removed"
    draft.remove(index, path)
    return "the id was left out"


def _first_by_id(draft: Draft) -> dict[str, int]:
    return {_item_id(fields): place for place, fields in reversed(list(enumerate(draft.contents)))}


def _drop_caller(draft: Draft, index: int, path: Path) -> str:
    """Leave out the caller of a call and of its results."""
    key = call_of(draft.fields(index))
    for place in range(index + 1, len(draft.messages)):
        if result_of(draft.fields(place)) == key and draft.value(place, path) is not None:
            draft.note(place, path, "no program made its call", "the caller was left out")
            draft.remove(place, path)
    draft.remove(index, path)
    return "the caller was left out"


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "There is at least one item.", "send at least one item"),
    "unreadable-message": Rule("message", "An item is an object.", "pass dictionaries, or the openai package's objects"),
    "missing-type": Rule(
        "message",
        "It has a type, or a role and is a message.",
        "give it the type the API documents, or make it a message with a role",
    ),
    "unknown-role": Rule(
        "message",
        "The role of a message is user, assistant, system or developer.",
        "use one of developer, system, user, assistant",
    ),
    "malformed-content": Rule(
        "message",
        "A content, and the output of a function, is a string or a list.",
        "make it a string, or a list of parts",
        first_of(list_content(kind_of), _write_text),
    ),
    "malformed-part": Rule(
        "message",
        "A part is an object with a type, and a text part has its text.",
        "make it an object with a 'type' and the field of that name",
        _part,
    ),
    "part-not-allowed": Rule(
        "message",
        "What the assistant said is `output_text` and `refusal`, what others say `input_...`; parts of chat "
        "completions and of Anthropic Messages are neither.",
        "use 'output_text' and 'refusal' in what the assistant said, and 'input_...' elsewhere",
        _retype,
    ),
    "malformed-item": Rule(
        "message",
        "Calls have a name and arguments that are strings, reasoning has a summary, a compaction item its content.",
        "give it the fields of its type",
        _write_arguments,
    ),
    "duplicate-item-id": Rule("reach", "No two items have one id.", "leave the second item out, or its id", _drop_id, 2),
    "reasoning-without-item": Rule(
        "reach",
        "After reasoning comes the item of the same answer that it led to.",
        "keep the item that came after it in the answer, or leave the reasoning out",
        drop("the item was removed"),
        6,
    ),
    "call-without-id": Rule(
        "message", "A call has a `call_id`.", "give the call a 'call_id', and its output the same", give_id, 3
    ),
    "duplicate-call-id": Rule(
        "reach", "No two open calls have one `call_id`.", "give each call a 'call_id' of its own", give_id, 3
    ),
    "call-without-program": Rule(
        "reach",
        "A call that a program made has the program, still running, before it, unless an item reference may be the program.",
        "keep the program before it, or leave the call and its output out",
        _drop_caller,
        6,
    ),
    "call-without-result": Rule(
        "reach", "A call has an output somewhere after it.", "add its output after it, or leave the call out", answer_call, 5
    ),
    "pending-call": Rule(
        "reach",
        "The same, where only the answer and other outputs follow: an output may still come. Not to be sent, but fine "
        "to store.",
        "store it as it is; add the output before sending",
    ),
    "result-without-id": Rule(
        "message", "An output says what it answers.", "set 'call_id' to that of the call it answers", name_result, 4
    ),
    "result-without-call": Rule(
        "reach",
        "An output has its call before it, unless an item reference before it may be the call.",
        "put it after the call it answers, or leave it out",
        move_result,
        5,
    ),
    "duplicate-result": Rule("reach", "A call has one output.", "keep one output for each call", drop_result, 5),
}
"""Every rule: how far it looks, and what to do where it is broken."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    shape="an item is an object with a type or a role",
    whole=_list_problems,
)
