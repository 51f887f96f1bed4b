"""What stands where in a raw Gemini content, for everything that reads one: the format, its rules, the repair.

The REST interface writes names in camel case, the ``google-genai`` package in snake case; both are read everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .wire import fields_of, items_of, string

__all__ = ["DATA", "call_body", "call_of", "field", "is_signed", "name_of", "parts_of", "result_body", "role_of", "spelled"]

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


def name_of(body: Mapping[str, Any]) -> str:
    """The function a call or response names; ids are optional in this format, so the name is what pairs them."""
    return string(body.get("name"))


def call_of(body: Mapping[str, Any]) -> str:
    """What a call and its response have in common."""
    return f"function:{name_of(body)}"


def is_signed(part: Any) -> bool:
    """Whether a part carries the signature of a thought."""
    return bool(field(fields_of(part) or {}, "thoughtSignature"))
