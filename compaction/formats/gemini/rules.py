"""Access to the fields of Gemini contents, and the rules of the API, by name.

The REST interface writes names in camel case, the ``google-genai`` package in snake case; both are read everywhere.

``docs/rules/gemini.md`` shows every rule with an example and its source. Rules that depend on the model are not
included, such as whether a list may end with the model's words. Calls must be signed only in a list that has a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from ..base import JoinProblem
from ..pairing import NOT_RECORDED, Fields, Finding, HostedLedger, HostedStep, Pairing, Path, Slot
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_in, items_of, string, type_name

# ------------------------------------------------------------------------ access to fields

_HOSTED: Final[Mapping[str, tuple[Literal["call", "result"], str]]] = {
    "executableCode": ("call", "code"),
    "codeExecutionResult": ("result", "code"),
    "toolCall": ("call", "tool"),
    "toolResponse": ("result", "tool"),
}
"""The fields of calls and results of the provider's own tools, and whether they belong to code or to a tool."""
_DATA: Final = ("text", "functionCall", "functionResponse", "inlineData", "fileData", *_HOSTED)
"""The fields of data, of which a part has exactly one."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SNAKE: Final = {
    name: _HUMP.sub("_", name).lower() for name in (*_DATA, "thoughtSignature", "mimeType", "fileUri", "displayName")
}


def spelled(fields: Mapping[str, Any], name: str) -> str:
    """Return the spelling of a field's name in this object."""
    snake = _SNAKE.get(name, name)
    return snake if fields.get(name) is None and fields.get(snake) is not None else name


def field(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field by its camel-case name, in either spelling."""
    value = fields.get(name)
    return fields.get(_SNAKE.get(name, name)) if value is None else value


def content_role(fields: Mapping[str, Any]) -> str:
    """Return the role of a content; ``user`` if it has none."""
    role = fields.get("role")
    return "user" if role is None else string(role)


def call_body(part: Any) -> Mapping[str, Any] | None:
    """Return the body of a ``functionCall`` part; ``None`` if the part is another."""
    return fields_of(field(fields_of(part) or {}, "functionCall"))


def result_body(part: Any) -> Mapping[str, Any] | None:
    """Return the body of a ``functionResponse`` part; ``None`` if the part is another."""
    return fields_of(field(fields_of(part) or {}, "functionResponse"))


def hosted_step(part: Any) -> HostedStep | None:
    """Return the call or the result of a tool that the provider runs, with the key they share; ``None`` for another part."""
    fields = fields_of(part)
    if fields is None or "text" in fields:
        return None
    for name, (kind, tool) in _HOSTED.items():
        if (body := fields_of(field(fields, name))) is not None:
            return kind, f"{tool}:{string(body.get('id'))}"
    return None


def name_of(body: Mapping[str, Any]) -> str:
    """Return the function that a call or response names; it pairs them, because ids are optional."""
    return string(body.get("name"))


def pairing_key(body: Mapping[str, Any]) -> str:
    """Return the key that a call and its response share."""
    return f"function:{name_of(body)}"


def is_signed(part: Any) -> bool:
    """Whether a part has the signature of a thought."""
    return bool(field(fields_of(part) or {}, "thoughtSignature"))


# ------------------------------------------------------------------------ one message, and two neighbours

_BODIES: Final[Mapping[str, str]] = {"functionCall": "args", "functionResponse": "response"}
_ROLES: Final = frozenset({"user", "model", "function"})


def message_problems(fields: Fields) -> Iterator[Finding]:
    """Yield the rules that a content breaks by itself, independent of its neighbours."""
    role, parts = content_role(fields), fields.get("parts")
    if role not in _ROLES:
        yield ("role",), "unknown-role", f"no such role: {fields.get('role')!r}"
        return
    if parts is not None and items_of(parts) is None:
        yield ("parts",), "malformed-content", f"parts are a list (got {type_name(parts)})"
    elif not parts:
        yield ("parts",), "no-parts", "it is empty"
    for position, part in enumerate(items_in(fields, "parts")):
        yield from _part_problems(("parts", position), role, part)


def _is_empty_part(fields: Mapping[str, Any]) -> bool:
    """Whether a part has no field of data, or only an empty text without a signature."""
    if fields.get("text") == "" and not is_signed(fields):
        return all(field(fields, name) is None for name in _DATA[1:])
    return all(field(fields, name) is None for name in _DATA)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    fields = fields_of(part)
    if fields is None:
        yield (where, "malformed-part", f"a part is an object (got {type_name(part)})")
        return
    if _is_empty_part(fields):
        yield (where, "empty-part", "the part has no data")
    if len(held := [name for name in _DATA if field(fields, name) is not None]) > 1:
        yield (where, "malformed-part", f"it has several fields of data: {' and '.join(held)}")
    if fields.get("text") is not None and not isinstance(fields["text"], str):
        yield ((*where, "text"), "malformed-part", f"its 'text' is not a string (got {type_name(fields['text'])})")
    for name, body in (("functionCall", call_body(part)), ("functionResponse", result_body(part))):
        if field(fields, name) is None:
            continue
        if body is None or not name_of(body):
            yield ((*where, name), "malformed-part", "it has no function name")
        elif (given := body.get(_BODIES[name])) is not None and fields_of(given) is None:
            text = f"its {_BODIES[name]!r} is not an object (got {type_name(given)})"
            yield ((*where, name, _BODIES[name]), "malformed-part", text)
        if (name == "functionCall") != (role == "model"):
            yield (where, "part-not-allowed", f"a {name} is not allowed in a content of role {role!r}")


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> JoinProblem | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if after is None or content_role(after) != "model" or (before is not None and content_role(before) in ("user", "function")):
        return None
    return ("misplaced-call", "after") if any(call_body(part) is not None for part in items_in(after, "parts")) else None


# ------------------------------------------------------------------------ calls and results


def _slots(fields: Fields, body_of: Any, *roles: str) -> Iterator[Slot]:
    for position, part in enumerate(items_in(fields, "parts") if content_role(fields) in roles else ()):
        if (body := body_of(part)) is not None:
            yield Slot(("parts", position), pairing_key(body))


def _calls(fields: Fields) -> list[Slot]:
    return list(_slots(fields, call_body, "model"))


def _stub(call: Any, key: str) -> dict[str, Any]:
    body = call_body(call) or {}
    answer = {"name": name_of(body), "response": {"error": NOT_RECORDED}}
    return {"functionResponse": {"id": body["id"], **answer} if body.get("id") else answer}


_PAIRING: Final = Pairing(
    calls=_calls,
    results=lambda fields: _slots(fields, result_body, "user", "function"),
    continues=lambda before, after: bool(_calls(before)) and any(_slots(after, result_body, "user", "function")),
    only_results=lambda fields: all(result_body(part) is not None for part in items_in(fields, "parts")),
    stub=_stub,
    content="parts",
    counted=True,
    again="result-without-call",
)


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield results of the provider's own tools without a call, and unsigned calls."""
    signs = any(is_signed(part) for fields in contents for part in items_in(fields, "parts"))
    turn = _current_turn(contents) if signs else len(contents)
    hosted: HostedLedger[None] = HostedLedger()
    for index, fields in enumerate(contents):
        parts = items_in(fields, "parts") if content_role(fields) == "model" else ()
        for position, part in enumerate(parts):
            kind, key = hosted_step(part) or ("", "")
            if kind == "call":
                hosted.enter_call(key, index, None)
            elif kind == "result" and not hosted.enter_result(key):
                text = "no call that waits for it is before it"
                yield index, (("parts", position), "server-result-without-call", text)
        calls = _calls(fields)
        if index >= turn and calls and not is_signed(parts[int(calls[0].path[1])]):
            text = "the first call of a step in the current turn is not signed"
            yield index, (calls[0].path, "unsigned-call", text)


def _current_turn(contents: Sequence[Fields]) -> int:
    """Return the place where the current turn begins: after the last content with words of the user."""
    for index in range(len(contents) - 1, -1, -1):
        fields = contents[index]
        said = [part for part in items_in(fields, "parts") if result_body(part) is None]
        if content_role(fields) == "user" and said:
            return index + 1
    return 0


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("send at least one content"),
    "unreadable-message": Rule("pass dictionaries, or the google-genai package's Content objects"),
    "unknown-role": Rule("use one of user, model"),
    "malformed-content": Rule("make 'parts' a list"),
    "no-parts": Rule("give it a part, or leave the content out", "message"),
    "empty-part": Rule("leave the part out", "block"),
    "malformed-part": Rule("make it an object with one field of data"),
    "part-not-allowed": Rule("put calls into the model's contents, responses into the user's"),
    "misplaced-call": Rule("put it directly after a content of the user or a function response", "join"),
    "call-without-result": Rule("put its response into the content directly after it, or leave the call out", "pair"),
    "pending-call": Rule("store the list unchanged; add the response before sending it"),
    "result-without-call": Rule("put it into the content directly after the call, or leave it out", "pair"),
    "server-result-without-call": Rule("keep it with the call before it, or leave it out", "block"),
    "unsigned-call": Rule("send the part as the model wrote it, with its 'thoughtSignature'"),
}

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    shape="a content is an object with parts",
    join=join_problem,
    joins={
        "misplaced-call": (lambda fields: _calls(fields)[0].path, "the call does not follow the user or a function response")
    },
    whole=_list_problems,
)
