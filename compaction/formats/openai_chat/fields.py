"""Access to the fields of raw chat-completions messages, for reading and for the rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..pairing import Fields, Slot
from ..wire import fields_of, items_of, string

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
"""Types of parts with media, of the API and of compatible servers, and the kind of media."""


def call_fields(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field with the body of a call of this kind, and the field of the body with its arguments."""
    return ("custom", "input") if fields.get("type") == "custom" else ("function", "arguments")


def calls_of(fields: Fields) -> Iterator[Slot]:
    """Yield the calls of an assistant message; a result of the legacy ``function_call`` names the function."""
    if fields.get("role") != "assistant":
        return
    for position, call in enumerate(items_of(fields.get("tool_calls")) or ()):
        if (entry := fields_of(call)) is not None:
            path = ("tool_calls", position)
            yield Slot(path, string(entry.get("id")), (*path, "id"))
    if name := string((fields_of(fields.get("function_call")) or {}).get("name")):
        yield Slot(("function_call",), f"function:{name}", optional=True)


def results_of(fields: Fields) -> Iterator[Slot]:
    """Yield the result that a tool message or a legacy function message is."""
    if fields.get("role") == "tool":
        yield Slot((), string(fields.get("tool_call_id")), ("tool_call_id",))
    elif fields.get("role") == "function":
        name = string(fields.get("name"))
        yield Slot((), name and f"function:{name}", ("name",), rule="function-without-call")


def is_empty(value: Any) -> bool:
    """Whether a field is null, zero, an empty text or list, or an object of such values.

    Some servers write every field of a message; a field that does not apply is then an object of empty strings and zeros.
    """
    if value is None:
        return True
    fields = fields_of(value)
    return _is_nothing(value) if fields is None else all(_is_nothing(field) for field in fields.values())


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float | list | tuple | Mapping) and not value)
