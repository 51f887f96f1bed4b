"""Access to the fields of raw Gemini contents; used for reading and by the rules.

The REST interface writes names in camel case, the ``google-genai`` package in snake case; both are read everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from ..pairing import HostedStep
from ..wire import fields_of, items_of, string

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
"""The fields of data, of which a part has exactly one."""
_HOSTED: Final[Mapping[str, tuple[Literal["call", "result"], str]]] = {
    "executableCode": ("call", "code"),
    "codeExecutionResult": ("result", "code"),
    "toolCall": ("call", "tool"),
    "toolResponse": ("result", "tool"),
}
"""The fields of calls and results of the provider's own tools, and whether they belong to code or to a tool."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).lower()


_SNAKE: Final = {
    name: _snake(name) for name in (*DATA, "thoughtSignature", "mimeType", "fileUri", "displayName") if _snake(name) != name
}


def spelled(fields: Mapping[str, Any], name: str) -> str:
    """Return the spelling of a field's name in this object."""
    snake = _SNAKE.get(name, name)
    return snake if fields.get(name) is None and fields.get(snake) is not None else name


def field(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field by its camel-case name, in either spelling."""
    value = fields.get(name)
    return fields.get(_SNAKE[name]) if value is None and name in _SNAKE else value


def content_role(fields: Mapping[str, Any]) -> str:
    """Return the role of a content; ``user`` if it has none."""
    role = fields.get("role")
    return "user" if role is None else string(role)


def parts_of(fields: Mapping[str, Any]) -> Sequence[Any]:
    """Return the parts of a content; empty if they are not a list."""
    return items_of(fields.get("parts")) or ()


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
