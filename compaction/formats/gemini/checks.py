"""What a Gemini content breaks by itself, and what two neighbours break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base import Side
from ..pairing import Fields, Finding
from ..wire import fields_of, items_of, type_name
from .fields import DATA, call_body, content_role, field, is_signed, name_of, parts_of, result_body

_BODIES: Final[Mapping[str, str]] = {"functionCall": "args", "functionResponse": "response"}
_ROLES: Final = frozenset({"user", "model", "function"})


def message_problems(fields: Fields, last: bool) -> Iterator[Finding]:
    """Yield the rules that a content breaks by itself, whatever stands around it."""
    role, parts = content_role(fields), fields.get("parts")
    if role not in _ROLES:
        yield ".role", "unknown-role", f"no such role: {fields.get('role')!r}"
        return
    if parts is not None and items_of(parts) is None:
        yield ".parts", "malformed-content", f"parts are a list (got {type_name(parts)})"
    elif not parts:
        yield ".parts", "no-parts", "it says nothing"
    for position, part in enumerate(parts_of(fields)):
        yield from _part_problems(f".parts[{position}]", role, part)


def _is_empty_part(fields: Mapping[str, Any]) -> bool:
    """Whether a part has no field of data, or only an empty text without a signature."""
    if fields.get("text") == "" and not is_signed(fields):
        return all(field(fields, name) is None for name in DATA[1:])
    return all(field(fields, name) is None for name in DATA)


def _part_problems(where: str, role: str, part: Any) -> Iterator[Finding]:
    fields = fields_of(part)
    if fields is None:
        yield (where, "malformed-part", f"a part is an object (got {type_name(part)})")
        return
    if _is_empty_part(fields):
        yield (where, "empty-part", "a part holds text, data, a call or a response")
    if len(held := [name for name in DATA if field(fields, name) is not None]) > 1:
        yield (where, "malformed-part", f"it holds one thing, not {' and '.join(held)}")
    if fields.get("text") is not None and not isinstance(fields["text"], str):
        yield (f"{where}.text", "malformed-part", f"its 'text' is no string (got {type_name(fields['text'])})")
    for name, body in (("functionCall", call_body(part)), ("functionResponse", result_body(part))):
        if field(fields, name) is None:
            continue
        if body is None or not name_of(body):
            yield (f"{where}.{name}", "malformed-part", "it names no function")
        elif (given := body.get(_BODIES[name])) is not None and fields_of(given) is None:
            text = f"its {_BODIES[name]!r} is no object (got {type_name(given)})"
            yield (f"{where}.{name}.{_BODIES[name]}", "malformed-part", text)
        if (name == "functionCall") != (role == "model"):
            yield (where, "part-not-allowed", f"a {name} does not belong into a content of role {role!r}")


def join_problem(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    if after is None or content_role(after) != "model" or (before is not None and content_role(before) in ("user", "function")):
        return None
    return ("misplaced-call", "after") if any(call_body(part) is not None for part in parts_of(after)) else None
