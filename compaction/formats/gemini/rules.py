"""The rules of the Gemini API, each with a name.

``docs/validity.md`` shows every rule with an example and its source. What depends on the model, such as whether a list may end
with the model's words, is not a rule here. Calls have to be signed only in a list that holds a signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Problem, Rule, Side
from ..wire import fields_of, items_of, type_name
from .fields import (
    DATA,
    call_body,
    content_role,
    field,
    hosted_call,
    hosted_result,
    is_signed,
    name_of,
    pairing_key,
    parts_of,
    result_body,
)

__all__ = ["RULES", "is_empty_part", "join_problem", "message_problems", "validate"]

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "send at least one content"),
    "unreadable-message": Rule("message", "pass dictionaries, or the google-genai package's Content objects"),
    "unknown-role": Rule("message", "use one of user, model"),
    "malformed-content": Rule("message", "make 'parts' a list"),
    "no-parts": Rule("message", "give it a part, or leave the content out"),
    "empty-part": Rule("message", "leave the part out"),
    "malformed-part": Rule("message", "make it an object with one field of data"),
    "part-not-allowed": Rule("message", "put calls into the model's contents, responses into the user's"),
    "misplaced-call": Rule("join", "put it directly after a content of the user or a function response"),
    "call-without-result": Rule("reach", "put its response into the content directly after it, or leave the call out"),
    "pending-call": Rule("reach", "store it as it is; add the response before sending"),
    "result-without-call": Rule("reach", "put it into the content directly after the call, or leave it out"),
    "server-result-without-call": Rule("reach", "keep it with the call before it, or leave it out"),
    "unsigned-call": Rule("reach", "send the part as the model wrote it, with its 'thoughtSignature'"),
}
"""Every rule: how far it looks, and what to do where it is broken."""

_BODIES: Final[Mapping[str, str]] = {"functionCall": "args", "functionResponse": "response"}
_ROLES: Final = frozenset({"user", "model", "function"})


def validate(raws: Sequence[Any]) -> list[Problem]:
    """Return every rule the list breaks, in order of place; O(parts), without an exception, whatever the list holds.

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
    """Judges the contents one after the other. Holds state: the calls of the one before, by what their responses name."""

    def __init__(self, contents: Sequence[Mapping[str, Any] | None]) -> None:
        self.found: list[tuple[int, Problem]] = []
        self.contents = contents
        self.open: dict[str, list[str]] = {}
        self.owner = 0
        self.before: Mapping[str, Any] | None = None
        self.hosted_calls: set[str] = set()
        signs = any(is_signed(part) for content in contents for part in parts_of(content or {}))
        self.turn = _current_turn(contents) if signs else len(contents)

    def add(self, index: int, place: str, rule: str, text: str) -> None:
        self.found.append((index, _problem(f"messages[{index}]{place}", rule, text)))

    def content(self, index: int, raw: Any) -> None:
        fields = self.contents[index]
        role = "" if fields is None else content_role(fields)
        self.found.extend((index, problem) for problem in message_problems(raw, fields, f"messages[{index}]"))
        parts = parts_of(fields or {})
        results = any(result_body(part) is not None for part in parts)
        if role != "model" and results:
            self.results(index, parts)
        else:
            self.end_run("call-without-result", "has no response in the content after it")
        if role == "model":
            self.calls(index, parts)
            self.hosted(index, parts)
        self.before = {"role": ""} if fields is None else fields

    def hosted(self, index: int, parts: Sequence[Any]) -> None:
        """Judge the results of the provider's own tools."""
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
        if (broken := join_problem(self.before, self.contents[index])) is not None:
            self.add(index, f".parts[{first}]", broken[0], "a call follows the user or a function response")
        if index >= self.turn and not is_signed(parts[first]):
            self.add(index, f".parts[{first}]", "unsigned-call", "the first call of a step in the current turn is signed")
        for position, body in bodies:
            self.open.setdefault(pairing_key(body), []).append(f"messages[{index}].parts[{position}]")

    def results(self, index: int, parts: Sequence[Any]) -> None:
        for position, part in enumerate(parts):
            body = result_body(part)
            if body is None:
                continue
            waiting = self.open.get(pairing_key(body))
            if waiting:
                waiting.pop()
            else:
                text = f"the content before it has no further call of {name_of(body)!r}"
                self.add(index, f".parts[{position}]", "result-without-call", text)
        last = index + 1 == len(self.contents) and all(result_body(part) is not None for part in parts)
        self.end_run("pending-call" if last else "call-without-result", "has no response")

    def end_run(self, rule: str, text: str) -> None:
        """Report the calls of the content before that have no response here."""
        for places in self.open.values():
            self.found.extend((self.owner, _problem(where, rule, f"the call {text}")) for where in places)
        self.open = {}


def _current_turn(contents: Sequence[Mapping[str, Any] | None]) -> int:
    """Return where the current turn begins: after the last content in which the user says something."""
    for index in range(len(contents) - 1, -1, -1):
        fields = contents[index] or {}
        said = [part for part in parts_of(fields) if result_body(part) is None]
        if content_role(fields) == "user" and said:
            return index + 1
    return 0


def _problem(where: str, rule: str, message: str) -> Problem:
    return Problem(where, rule, message, RULES[rule].remedy)


def _place(found: tuple[int, Problem]) -> int:
    return found[0]


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if after is None or content_role(after) != "model" or (before is not None and content_role(before) in ("user", "function")):
        return None
    return ("misplaced-call", "after") if any(call_body(part) is not None for part in parts_of(after)) else None


def message_problems(raw: Any, fields: Mapping[str, Any] | None, where: str) -> Iterator[Problem]:
    """Yield the rules that a content breaks by itself, whatever stands around it.

    Args:
        raw: The content.
        fields: Its fields, if it has any.
        where: Its place.
    """
    if fields is None:
        yield _problem(where, "unreadable-message", f"a content is an object with parts (got {type_name(raw)})")
        return
    role = content_role(fields)
    if role not in _ROLES:
        yield _problem(f"{where}.role", "unknown-role", f"no such role: {fields.get('role')!r}")
        return
    parts = fields.get("parts")
    if parts is not None and items_of(parts) is None:
        yield _problem(f"{where}.parts", "malformed-content", f"parts are a list (got {type_name(parts)})")
    elif not parts:
        yield _problem(f"{where}.parts", "no-parts", "it says nothing")
    for position, part in enumerate(parts_of(fields)):
        yield from _part_problems(f"{where}.parts[{position}]", role, part)


def is_empty_part(fields: Mapping[str, Any]) -> bool:
    """Whether a part has no field of data, or only an empty text without a signature."""
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
