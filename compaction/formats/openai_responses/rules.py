"""The rules of the Responses API, each with a name.

``docs/validity.md`` shows every rule with an example and its source. A list is judged as a whole conversation. An item
reference brings in items that are not known here, so a result after one may have its call among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Problem, Rule
from ..wire import fields_of, items_of, kind_of, string, type_name
from .fields import CALLS, RESULTS, ROLES, call_id_field, call_of, caller_of, is_answer, item_type, result_of

__all__ = ["RULES", "message_problems", "validate"]

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "send at least one item"),
    "unreadable-message": Rule("message", "pass dictionaries, or the openai package's objects"),
    "missing-type": Rule("message", "give it the type the API documents, or make it a message with a role"),
    "unknown-role": Rule("message", "use one of developer, system, user, assistant"),
    "malformed-content": Rule("message", "make it a string, or a list of parts"),
    "malformed-part": Rule("message", "make it an object with a 'type' and the field of that name"),
    "part-not-allowed": Rule(
        "message", "use 'output_text' and 'refusal' in what the assistant said, and 'input_...' elsewhere"
    ),
    "malformed-item": Rule("message", "give it the fields of its type"),
    "duplicate-item-id": Rule("reach", "leave the second item out, or its id"),
    "reasoning-without-item": Rule("reach", "keep the item that came after it in the answer, or leave the reasoning out"),
    "call-without-id": Rule("message", "give the call a 'call_id', and its output the same"),
    "duplicate-call-id": Rule("reach", "give each call a 'call_id' of its own"),
    "call-without-program": Rule("reach", "keep the program before it, or leave the call and its output out"),
    "call-without-result": Rule("reach", "add its output after it, or leave the call out"),
    "pending-call": Rule("reach", "store it as it is; add the output before sending"),
    "result-without-id": Rule("message", "set 'call_id' to that of the call it answers"),
    "result-without-call": Rule("reach", "put it after the call it answers, or leave it out"),
    "duplicate-result": Rule("reach", "keep one output for each call"),
}
"""Every rule: how far it looks, and what to do where it is broken."""

_OF_OTHERS: Final = frozenset({"text", "image_url", "file", "tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Types of parts in chat completions and Anthropic Messages, which this API does not know."""

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "function_call": {"name": str, "arguments": str},
    "custom_tool_call": {"name": str, "input": str},
    "reasoning": {"summary": list},
    "compaction": {"encrypted_content": str},
    "item_reference": {"id": str},
}


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Return every rule the list breaks, in order of place; O(parts), without an exception, whatever the list holds.

    Args:
        raws: Items as dictionaries or objects of the ``openai`` package; anything else is a problem itself.

    >>> print(validate([{"type": "reasoning", "id": "rs_1", "summary": []}, {"role": "user", "content": "hi"}])[0])
    messages[0]: no item of the same answer comes after it [reasoning-without-item]; keep the item that came after it in the \
answer, or leave the reasoning out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    walk = _Walk()
    for index, raw in enumerate(raws):
        fields = fields_of(raw)
        walk.found.extend((index, problem) for problem in _item_problems(raw, fields, f"messages[{index}]"))
        if fields is None:
            walk.interrupt()
        else:
            walk.item(index, fields)
    walk.end()
    return [problem for _, problem in sorted(walk.found, key=_place)]


class _Walk:
    """Judges the items one after the other. Holds state: ids, open calls, and the reasoning that waits for its item."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Problem]] = []
        self.open: dict[str, list[int]] = {}
        self.waiting: set[int] = set()
        self.answered: set[str] = set()
        self.ids: set[str] = set()
        self.reasoning: list[int] = []
        self.references = False

    def add(self, index: int, place: str, rule: str, text: str) -> None:
        self.found.append((index, _problem(f"messages[{index}]{place}", rule, text)))

    def item(self, index: int, fields: Mapping[str, Any]) -> None:
        kind = item_type(fields)
        self.identify(index, fields, kind)
        self.found.extend((index, problem) for problem in _id_problems(fields, f"messages[{index}]"))
        if (call := call_of(fields)) is not None:
            self.call(index, kind, call)
            self.called_by(index, caller_of(fields))
        if (result := result_of(fields)) is not None:
            self.end_reasoning()
            self.result(index, result)
        elif not is_answer(fields):
            self.interrupt()
        elif kind == "reasoning":
            self.reasoning.append(index)
        else:
            self.reasoning = []
        self.references = self.references or kind == "item_reference"

    def identify(self, index: int, fields: Mapping[str, Any], kind: str) -> None:
        identifier = string(fields.get("id"))
        if not identifier or (kind in RESULTS and call_id_field(fields) == "id"):
            return
        if identifier in self.ids:
            self.add(index, ".id", "duplicate-item-id", f"the id {identifier!r} is that of an earlier item")
        self.ids.add(identifier)

    def call(self, index: int, kind: str, identifier: str) -> None:
        if not identifier:
            return
        if identifier in self.open:
            self.add(index, f".{CALLS[kind].key}", "duplicate-call-id", f"an open call has the id {identifier!r} already")
        self.open.setdefault(identifier, []).append(index if CALLS[kind].answered else -1)
        self.waiting.add(index)

    def called_by(self, index: int, program: str | None) -> None:
        if program is not None and program not in self.open and not self.references:
            self.add(index, ".caller", "call-without-program", f"no program {program!r} runs before it")

    def result(self, index: int, identifier: str) -> None:
        if not identifier:
            return
        if identifier in self.open:
            self.waiting.discard(self.open[identifier].pop())
            if not self.open[identifier]:
                del self.open[identifier]
            self.answered.add(identifier)
        elif identifier in self.answered:
            self.add(index, "", "duplicate-result", f"the call {identifier!r} is answered already")
        elif not self.references:
            self.add(index, "", "result-without-call", f"no call before it has the id {identifier!r}")

    def interrupt(self) -> None:
        """End an answer: its last reasoning has no item, and its calls no longer wait."""
        self.end_reasoning()
        self.waiting.clear()

    def end_reasoning(self) -> None:
        for index in self.reasoning:
            self.add(index, "", "reasoning-without-item", "no item of the same answer comes after it")
        self.reasoning = []

    def end(self) -> None:
        self.end_reasoning()
        for identifier, indexes in self.open.items():
            for index in indexes:
                if index >= 0:
                    rule = "pending-call" if index in self.waiting else "call-without-result"
                    text = "has no output yet" if index in self.waiting else "has no output"
                    self.add(index, "", rule, f"the call {identifier!r} {text}")


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule].remedy)


def _place(found: tuple[int, Problem]) -> int:
    return found[0]


def message_problems(raw: Any) -> Iterator[Problem]:
    """Yield the rules that an item breaks by itself, whatever stands around it."""
    fields = fields_of(raw)
    yield from _item_problems(raw, fields, "messages[0]")
    yield from _id_problems(fields or {}, "messages[0]")


def _id_problems(fields: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Yield the problem of a call or an output that does not name what the other one has."""
    if call_of(fields) == "":
        place = f"{where}.{CALLS[item_type(fields)].key}"
        yield _problem(place, "call-without-id", "the call does not say what its output will name")
    if result_of(fields) == "":
        yield _problem(f"{where}.{call_id_field(fields)}", "result-without-id", "the output does not say what it answers")


def _item_problems(raw: Any, fields: Mapping[str, Any] | None, where: str) -> Iterator[Problem]:
    """Yield the rules of shape that an item breaks."""
    if fields is None:
        text = f"an item is an object with a type or a role (got {type_name(raw)})"
        yield _problem(where, "unreadable-message", text)
        return
    kind = item_type(fields)
    if not kind:
        yield _problem(f"{where}.type", "missing-type", f"a type is a non-empty string (got {type_name(fields.get('type'))})")
    elif kind == "message":
        yield from _message_problems(where, fields)
    for name, wanted in _REQUIRED.get(kind, {}).items():
        value = fields.get(name)
        if not isinstance(value, wanted) and not (wanted is list and items_of(value) is not None):
            yield _problem(f"{where}.{name}", "malformed-item", f"a {kind} item needs {name!r} (got {type_name(value)})")
    if kind in ("function_call_output", "custom_tool_call_output"):
        yield from _content_problems(f"{where}.output", "user", fields.get("output"))


def _message_problems(where: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    role = fields.get("role")
    if not isinstance(role, str) or role not in ROLES:
        yield _problem(f"{where}.role", "unknown-role", f"no such role: {role!r}")
        return
    yield from _content_problems(f"{where}.content", role, fields.get("content"))


def _content_problems(where: str, role: str, content: Any) -> Iterator[Problem]:
    if isinstance(content, str):
        return
    parts = items_of(content)
    if parts is None:
        yield _problem(where, "malformed-content", f"it is a string or a list (got {type_name(content)})")
    for position, part in enumerate(parts or ()):
        yield from _part_problems(f"{where}[{position}]", role, part)


def _part_problems(where: str, role: str, part: Any) -> Iterator[Problem]:
    fields, kind = fields_of(part), kind_of(part)
    if fields is None or not kind:
        yield _problem(where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind in _OF_OTHERS or (kind.startswith("input_") if role == "assistant" else kind in ("output_text", "refusal")):
        yield _problem(where, "part-not-allowed", f"a part of type {kind!r} does not belong to the {role}")
    elif kind in ("input_text", "output_text") and not isinstance(fields.get("text"), str):
        yield _problem(where, "malformed-part", f"its 'text' is no string (got {type_name(fields.get('text'))})")
