"""Which lists of contents the Gemini API takes, as rules that each have a name.

``docs/validity.md`` shows every rule with an example of each kind and where it is known from. What depends on the model, such
as whether a list may end with the model's words, is no rule here; that calls are signed is one only where anything is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .base import Problem
from .gemini_fields import (
    DATA,
    call_body,
    call_of,
    field,
    hosted_call,
    hosted_result,
    is_signed,
    name_of,
    parts_of,
    result_body,
    role_of,
)
from .wire import fields_of, items_of, type_name

__all__ = ["RULES", "is_empty_part", "validate"]

RULES: Final[Mapping[str, str]] = {
    "no-messages": "send at least one content",
    "unreadable-message": "pass dictionaries, or the google-genai package's Content objects",
    "unknown-role": "use one of user, model",
    "malformed-content": "make 'parts' a list",
    "no-parts": "give it a part, or leave the content out",
    "empty-part": "leave the part out",
    "malformed-part": "make it an object with one field of data",
    "part-not-allowed": "put calls into the model's contents, responses into the user's",
    "misplaced-call": "put it directly after a content of the user or a function response",
    "call-without-result": "put its response into the content directly after it, or leave the call out",
    "pending-call": "store it as it is; add the response before sending",
    "result-without-call": "put it into the content directly after the call, or leave it out",
    "server-result-without-call": "keep it with the call before it, or leave it out",
    "unsigned-call": "send the part as the model wrote it, with its 'thoughtSignature'",
}
"""Every rule, and what to do where it is broken."""

_BODIES: Final[Mapping[str, str]] = {"functionCall": "args", "functionResponse": "response"}
_ROLES: Final = frozenset({"user", "model", "function"})


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Every rule the list breaks, in order of place; O(parts), and never an exception, whatever the list holds.

    Args:
        raws: Contents as dictionaries or objects of the ``google-genai`` package; anything else is a problem itself.

    >>> print(validate([{"role": "user", "parts": []}])[0])
    messages[0].parts: it says nothing [no-parts]; give it a part, or leave the content out
    """
    if not raws:
        return [_problem("messages", "no-messages", "the list is empty")]
    walk = _Walk([fields_of(raw) for raw in raws])
    for index, raw in enumerate(raws):
        walk.content(index, raw)
    walk.end_run("pending-call", "has no response yet")
    return [problem for _, problem in sorted(walk.found, key=_place)]


class _Walk:
    """Walks the contents; holds the calls of the one before, by what their responses name."""

    def __init__(self, contents: Sequence[Mapping[str, Any] | None]) -> None:
        self.found: list[tuple[int, Problem]] = []
        self.contents = contents
        self.open: dict[str, list[str]] = {}
        self.owner = 0
        self.before = ""
        self.hosted_calls: set[str] = set()
        signs = any(is_signed(part) for content in contents for part in parts_of(content or {}))
        self.turn = _current_turn(contents) if signs else len(contents)

    def add(self, index: int, place: str, rule: str, text: str) -> None:
        self.found.append((index, _problem(f"messages[{index}]{place}", rule, text)))

    def content(self, index: int, raw: Any) -> None:
        fields = self.contents[index]
        role = "" if fields is None else role_of(fields)
        if fields is None:
            self.add(index, "", "unreadable-message", f"a content is an object with parts (got {type_name(raw)})")
        elif role not in _ROLES:
            self.add(index, ".role", "unknown-role", f"no such role: {fields.get('role')!r}")
        else:
            self.found.extend((index, problem) for problem in _content_problems(f"messages[{index}]", role, fields))
        parts = parts_of(fields or {})
        results = any(result_body(part) is not None for part in parts)
        if role != "model" and results:
            self.results(index, parts)
        else:
            self.end_run("call-without-result", "has no response in the content after it")
        if role == "model":
            self.calls(index, parts)
            self.hosted(index, parts)
        self.before = role

    def hosted(self, index: int, parts: Sequence[Any]) -> None:
        """Judge the results of tools that the provider runs."""
        for position, part in enumerate(parts):
            if (call := hosted_call(part)) is not None:
                self.hosted_calls.add(call)
            elif (result := hosted_result(part)) is not None and result not in self.hosted_calls:
                self.add(index, f".parts[{position}]", "server-result-without-call", "its call does not stand before it")

    def calls(self, index: int, parts: Sequence[Any]) -> None:
        bodies = [(position, body) for position, part in enumerate(parts) if (body := call_body(part)) is not None]
        if not bodies:
            return
        self.owner = index
        first = bodies[0][0]
        if self.before not in ("user", "function"):
            self.add(index, f".parts[{first}]", "misplaced-call", "a call follows the user or a function response")
        if index >= self.turn and not is_signed(parts[first]):
            self.add(index, f".parts[{first}]", "unsigned-call", "the first call of a step in the current turn is signed")
        for position, body in bodies:
            self.open.setdefault(call_of(body), []).append(f"messages[{index}].parts[{position}]")

    def results(self, index: int, parts: Sequence[Any]) -> None:
        for position, part in enumerate(parts):
            body = result_body(part)
            if body is None:
                continue
            waiting = self.open.get(call_of(body))
            if waiting:
                waiting.pop()
            else:
                text = f"the content before it has no further call of {name_of(body)!r}"
                self.add(index, f".parts[{position}]", "result-without-call", text)
        last = index + 1 == len(self.contents) and all(result_body(part) is not None for part in parts)
        self.end_run("pending-call" if last else "call-without-result", "has no response")

    def end_run(self, rule: str, text: str) -> None:
        """Report the calls of the content before that nothing here answers."""
        for places in self.open.values():
            self.found.extend((self.owner, _problem(where, rule, f"the call {text}")) for where in places)
        self.open = {}


def _current_turn(contents: Sequence[Mapping[str, Any] | None]) -> int:
    """Where the current turn begins: after the last content in which the user says something."""
    for index in range(len(contents) - 1, -1, -1):
        fields = contents[index] or {}
        said = [part for part in parts_of(fields) if result_body(part) is None]
        if role_of(fields) == "user" and said:
            return index + 1
    return 0


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule])


def _place(found: tuple[int, Problem]) -> int:
    return found[0]


def _content_problems(where: str, role: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with one content, whatever stands around it."""
    parts = fields.get("parts")
    if parts is not None and items_of(parts) is None:
        yield _problem(f"{where}.parts", "malformed-content", f"parts are a list (got {type_name(parts)})")
    elif not parts:
        yield _problem(f"{where}.parts", "no-parts", "it says nothing")
    for position, part in enumerate(parts_of(fields)):
        yield from _part_problems(f"{where}.parts[{position}]", role, part)


def is_empty_part(fields: Mapping[str, Any]) -> bool:
    """Whether a part has nothing the API takes for data: no field of it, or an empty text that carries no signature."""
    if fields.get("text") == "" and not is_signed(fields):
        return all(field(fields, name) is None for name in DATA[1:])
    return all(field(fields, name) is None for name in DATA)


def _part_problems(where: str, role: str, part: Any) -> Iterator[Problem]:
    fields = fields_of(part)
    if fields is None:
        yield _problem(where, "malformed-part", f"a part is an object (got {type_name(part)})")
        return
    if is_empty_part(fields):
        yield _problem(where, "empty-part", "a part holds text, data, a call or a response")
    if len(held := [name for name in DATA if field(fields, name) is not None]) > 1:
        yield _problem(where, "malformed-part", f"it holds one thing, not {' and '.join(held)}")
    if fields.get("text") is not None and not isinstance(fields["text"], str):
        yield _problem(f"{where}.text", "malformed-part", f"its 'text' is no string (got {type_name(fields['text'])})")
    for name, body in (("functionCall", call_body(part)), ("functionResponse", result_body(part))):
        if field(fields, name) is None:
            continue
        if body is None or not name_of(body):
            yield _problem(f"{where}.{name}", "malformed-part", "it names no function")
        elif (given := body.get(_BODIES[name])) is not None and fields_of(given) is None:
            text = f"its {_BODIES[name]!r} is no object (got {type_name(given)})"
            yield _problem(f"{where}.{name}.{_BODIES[name]}", "malformed-part", text)
        if (name == "functionCall") != (role == "model"):
            yield _problem(where, "part-not-allowed", f"a {name} does not belong into a content of role {role!r}")
