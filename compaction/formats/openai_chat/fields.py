"""Fields of raw chat-completions messages: where reading and rules find what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ..wire import fields_of, items_of

ROLES: Final = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
REASONING_FIELDS: Final = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
MEDIA_KINDS: Final[Mapping[str, str]] = {
    "image_url": "image",
    "image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "file": "file",
    "document_url": "file",
}
"""Types of parts that hold media, the API's own and those of compatible servers, and the kind of media."""

Key: TypeAlias = tuple[str, str]
"""The key that a result and its call share: the result's role, and the call's id (of a legacy function, its name)."""


def role_of(fields: Mapping[str, Any]) -> str:
    """Return the message's role; empty if it has none."""
    role = fields.get("role")
    return role if isinstance(role, str) else ""


def call_fields(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field with the body of a call of this kind, and the field of the body with its arguments."""
    return ("custom", "input") if fields.get("type") == "custom" else ("function", "arguments")


def call_keys(fields: Mapping[str, Any]) -> Iterator[tuple[int | None, Key | None]]:
    """Yield the place of every call in ``tool_calls``, and the key of its result (``None``: it has no id).

    The place of a legacy ``function_call`` is ``None``.
    """
    for position, call in enumerate(items_of(fields.get("tool_calls")) or ()):
        entry = fields_of(call)
        if entry is not None:
            yield position, _key("tool", entry.get("id"))
    legacy = fields_of(fields.get("function_call"))
    if legacy is not None and (key := _key("function", legacy.get("name"))) is not None:
        yield None, key


def result_key(role: str, fields: Mapping[str, Any]) -> Key | None:
    """Return the key of a result message, or ``None`` if it does not say what it answers."""
    return _key(role, fields.get("name" if role == "function" else "tool_call_id"))


def _key(role: str, identifier: Any) -> Key | None:
    return (role, identifier) if isinstance(identifier, str) and identifier else None


def has_calls(fields: Mapping[str, Any]) -> bool:
    """Whether there is anything in the fields for calls, well formed or not."""
    return not (is_empty(fields.get("tool_calls")) and is_empty(fields.get("function_call")))


def is_empty(value: Any) -> bool:
    """Whether it says nothing: null, zero, an empty text or list, or an object of such values.

    Some servers write every field of a message; one that does not apply is then an object of empty strings and zeros.
    """
    if value is None:
        return True
    fields = fields_of(value)
    return _is_nothing(value) if fields is None else all(_is_nothing(field) for field in fields.values())


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float | list | tuple | Mapping) and not value)
