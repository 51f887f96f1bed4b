"""What stands where in a raw Gemini content, for everything that reads one: the format, its rules, the repair.

The REST interface writes names in camel case, the ``google-genai`` package in snake case; both are read everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .wire import fields_of, items_of, string

__all__ = [
    "DATA",
    "call_body",
    "call_of",
    "field",
    "hosted_call",
    "hosted_result",
    "is_signed",
    "links_of",
    "name_of",
    "parts_of",
    "result_body",
    "role_of",
    "spelled",
]

DATA: Final = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
"""The fields of a part of which one must be there."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()


_SNAKE: Final = {
    name: _snake(name) for name in (*DATA, "thoughtSignature", "mimeType", "fileUri", "displayName") if _snake(name) != name
}


def spelled(fields: Mapping[str, Any], name: str) -> str:
    """The name as this object spells it."""
    snake = _SNAKE.get(name, name)
    return snake if fields.get(name) is None and fields.get(snake) is not None else name


def field(fields: Mapping[str, Any], name: str) -> Any:
    """A field by its camel-case name, however it is spelled."""
    value = fields.get(name)
    return fields.get(_SNAKE[name]) if value is None and name in _SNAKE else value


def role_of(fields: Mapping[str, Any]) -> str:
    """The role of a content; the user's where there is none."""
    role = fields.get("role")
    return "user" if role is None else string(role)


def parts_of(fields: Mapping[str, Any]) -> Sequence[Any]:
    """The parts of a content; none if it has no list of them."""
    return items_of(fields.get("parts")) or ()


def call_body(part: Any) -> Mapping[str, Any] | None:
    """What a ``functionCall`` part holds; ``None`` if it is another."""
    return fields_of(field(fields_of(part) or {}, "functionCall"))


def result_body(part: Any) -> Mapping[str, Any] | None:
    """What a ``functionResponse`` part holds; ``None`` if it is another."""
    return fields_of(field(fields_of(part) or {}, "functionResponse"))


def hosted_call(part: Any) -> str | None:
    """What the result of a tool that the provider runs has in common with this part, its call; ``None`` if it is another."""
    return _hosted(part, "executableCode", "toolCall")


def hosted_result(part: Any) -> str | None:
    """What this part, the result of a tool that the provider runs, has in common with its call; ``None`` if it is another."""
    return _hosted(part, "codeExecutionResult", "toolResponse")


def links_of(parts: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the provider began in a content and has no result of there, and what it began earlier and has one of; O(parts)."""
    made: dict[str, bool] = {}
    earlier: list[str] = []
    for part in parts:
        if (call := hosted_call(part)) is not None:
            made[call] = True
        elif (result := hosted_result(part)) is not None:
            if result not in made:
                earlier.append(result)
            made[result] = False
    return tuple([call for call, waits in made.items() if waits]), tuple(earlier)


def _hosted(part: Any, code: str, tool: str) -> str | None:
    fields = fields_of(part)
    if fields is None or "text" in fields:
        return None
    for name in (code, tool):
        if (body := fields_of(field(fields, name))) is not None:
            return f"{name is code}:{string(body.get('id'))}"
    return None


def name_of(body: Mapping[str, Any]) -> str:
    """The function a call or response names; ids are optional in this format, so the name is what pairs them."""
    return string(body.get("name"))


def call_of(body: Mapping[str, Any]) -> str:
    """What a call and its response have in common."""
    return f"function:{name_of(body)}"


def is_signed(part: Any) -> bool:
    """Whether a part carries the signature of a thought."""
    return bool(field(fields_of(part) or {}, "thoughtSignature"))
