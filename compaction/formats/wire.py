"""Access to a caller's objects, and the writing of changed messages, which the wire formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ..errors import ConfigurationError
from ..json_data import same
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolResultPart


def fields_of(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a message, call or part: a mapping itself, or a pydantic object such as the ``openai`` package's.

    Returns:
        The mapping; of an object, what was set and whatever is not ``None``. ``None`` if the value has no fields.
    """
    if type(value) is dict or isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    if isinstance(value, type) or not callable(getattr(value, "model_dump", None)):
        return None
    dump: Any = value.model_dump
    try:
        return {**dump(exclude_unset=True, warnings=False), **dump(exclude_none=True, warnings=False)}
    except (TypeError, ValueError):
        return None


def items_of(value: Any) -> Sequence[Any] | None:
    """Return the items of a list or tuple; ``None`` if it is neither."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None


def items_in(value: Any, name: str) -> Sequence[Any]:
    """Return the items of a list in a field; empty if the field is not a list, or the value has no fields."""
    return items_of((fields_of(value) or {}).get(name)) or ()


def elements_of(value: Any) -> Sequence[Any]:
    """Return the items of a list or tuple; any other value counts as its only item, null as none."""
    items = items_of(value)
    return items if items is not None else () if value is None else (value,)


def string(value: Any) -> str:
    """Return the value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def says_something(fields: Mapping[str, Any]) -> bool:
    """Whether a message has a content field of chat completions or a similar format."""
    return any(name in fields for name in ("content", "tool_calls", "function_call", "refusal", "audio"))


def kind_of(part: Any) -> str:
    """Return the ``type`` of a part; empty if it has none."""
    fields = fields_of(part)
    return "" if fields is None else string(fields.get("type"))


def type_name(value: Any) -> str:
    """Return the name of a value's type, for a message to a reader."""
    return "null" if value is None else type(value).__name__


def json_text(value: Any) -> str:
    """Return a value as JSON text, or its ``repr`` if JSON cannot express it; a string is returned unchanged.

    Raises:
        RecursionError: If the value is nested too deep. No shorter text is returned instead, since messages are measured by it.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_json)
    except (TypeError, ValueError):
        return repr(value)


def arguments_text(value: Any) -> str:
    """Return a call's arguments as text; empty if there are none."""
    return "" if value is None else json_text(value)


def data_size(data: Any) -> int:
    """Return the bytes of media as sent: of a text its length, of bytes their length in base64."""
    return (len(data) + 2) // 3 * 4 if isinstance(data, bytes | bytearray) else len(string(data))


def media_kind(media_type: str | None) -> str:
    """Return the kind of a `MediaPart` for a media type such as ``"image/png"``."""
    kind = (media_type or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def json_object(text: Any) -> dict[str, Any] | None:
    """Return the object that a JSON text describes, an empty one for no text; ``None`` for anything else."""
    try:
        value: Any = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _as_json(value: Any) -> Any:
    return repr(value) if (fields := fields_of(value)) is None else dict(fields)


def plain(value: Any) -> Any:
    """Return the value as nested dictionaries and lists; the same object if nothing has to change."""
    if type(value) is dict:
        fields = cast("dict[str, Any]", value)
        changed = {
            name: made for name, field in fields.items() if type(field) is not str and (made := plain(field)) is not field
        }
        return {**fields, **changed} if changed else fields
    if value is None or isinstance(value, str | int | float):
        return value
    if (elements := items_of(value)) is not None:
        items = [plain(item) for item in elements]
        return elements if type(value) is list and same(items, elements) else items
    found = fields_of(value)
    return value if found is None else {name: plain(field) for name, field in found.items()}


def lacking(fields: Mapping[str, Any], required: Mapping[str, type], *, empty: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each required field that is missing or of another type, or an empty text if it may not.

    An object of a package is a ``Mapping``.
    """
    for name, wanted in required.items():
        value = fields.get(name)
        read = fields_of(value) if wanted is Mapping else items_of(value) if wanted is list else value
        if read is None or (wanted is str and not isinstance(value, str)) or (value == "" and not empty):
            yield name, value


def read_role(role: str, parts: Sequence[Part]) -> str:
    """Return the role in which a message with these parts is read: ``"tool"`` for a user message that has only results."""
    only_results = role == "user" and bool(parts) and all(isinstance(part, ToolResultPart) for part in parts)
    return "tool" if only_results else role


def result_part(call_id: str, parts: Sequence[Part], failed: bool | None = None, raw: Any = None) -> ToolResultPart:
    """Return a result made of these parts: its words joined, its media beside them."""
    text = "\n".join([part.text for part in parts if isinstance(part, TextPart | ReasoningPart | OtherPart)])
    return ToolResultPart(call_id, text, tuple([part for part in parts if isinstance(part, MediaPart)]), failed, raw=raw)


# ------------------------------------------------------------------------ writing

GO_ON: Final = "Go on from there."
"""The user's message after a summary or a placeholder, where an answer must follow."""


def arguments_object(text: str) -> dict[str, Any]:
    """Return a call's arguments as an object; raise a `ConfigurationError` if they are not a JSON object.

    Raises:
        ConfigurationError: If they are not a JSON object.
    """
    value = json_object(text)
    if value is None:
        raise ConfigurationError(f"parts: a call's arguments are a JSON object in this format (got {text!r})")
    return value


def unwritable(part: Part) -> ConfigurationError:
    """Return the error for a part that cannot be written."""
    return ConfigurationError(f"parts: this format cannot write {part!r}; pass the part that was read, or drop it")


def without_new_blanks(old: Sequence[Part], parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a changed message without new texts of blanks, which providers refuse."""
    known = {id(part) for part in old}
    return [part for part in parts if id(part) in known or not isinstance(part, TextPart) or part.text.strip()]


def written_content(
    content: Any, parts: Sequence[Part], write: Callable[[Part], Any], *, listed: Sequence[Part] | None = None
) -> Any:
    """Return the parts of a changed message as its content: a text if it was not a list and all parts are texts, else a list.

    A list has the parts ``listed`` if these are given.
    """
    if items_of(content) is None and all(isinstance(part, TextPart) for part in parts):
        return "\n".join([part.text for part in parts if isinstance(part, TextPart)])
    return list(map(write, parts if listed is None else listed))


def changed_result(
    content: Any,
    before: ToolResultPart,
    after: ToolResultPart,
    *,
    read: Callable[[Any], Part],
    write: Callable[[TextPart], Any],
    keep_blank: bool = False,
) -> Any:
    """Return the content of a changed result: the new words in place of the first ones, and the media that are left.

    If the content was not a list, and no media are left, the new words become the content. ``write`` returns a text as an
    element; the text in its place is given with new words, and has the raw element. Words that are only blanks are written if
    ``keep_blank`` says so. It raises a `ConfigurationError` if one of the media is not among the elements.

    Raises:
        ConfigurationError: If one of the media is not among the elements.
    """
    if items_of(content) is None and not after.media:
        return after.text
    elements = elements_of(content)
    media = kept_media(after, elements)
    changed = after.text != before.text
    unwritten = after.text if changed and (keep_blank or after.text.strip()) else ""
    written: list[Any] = []
    for element in elements:
        part = read(element)
        if isinstance(part, MediaPart):
            written.extend(element for raw in media if raw is element)
        elif not changed:
            written.append(element)
        elif unwritten:
            written.append(write(TextPart(unwritten, raw=part.raw if isinstance(part, TextPart) else None)))
            unwritten = ""
    return [write(TextPart(unwritten)), *written] if unwritten else written


def kept_media(result: ToolResultPart, elements: Iterable[Any]) -> list[Any]:
    """Return the raw media of a changed result; raise a `ConfigurationError` if one is not among the elements.

    Raises:
        ConfigurationError: If one of them is not among the elements.
    """
    media = [part.raw for part in result.media]
    if not {id(raw) for raw in media} <= {id(element) for element in elements}:
        raise ConfigurationError("parts: a result's media can be kept or dropped, not created; pass those that were read")
    return media


def thoughts_changed(
    before: Sequence[Message], after: Sequence[Message | None], of: Callable[[Any], bool] = lambda raw: True
) -> bool:
    """Return whether a rewrite, see `MessageFormat.rewrite_problem`, changes or removes raw thoughts that count, by ``of``."""

    def bound(message: Message | None) -> list[Any]:
        parts = () if message is None else message.parts
        return [part.raw for part in parts if isinstance(part, ReasoningPart) and of(part.raw)]

    return any(old is not new and bound(old) != bound(new) for old, new in zip(before, after, strict=True))


def signed_thoughts_problem(before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
    """Return what `MessageFormat.rewrite_problem` does, where thoughts are signed and begin an answer."""
    if current and thoughts_changed(before, after):
        return "thoughts of the current turn stay as the provider signed them"

    def thoughts(message: Message) -> list[bool]:
        return [isinstance(part, ReasoningPart) for part in message.parts]

    for old, new in zip(before, after, strict=True):
        if new is not None and new is not old and any(thoughts(old)[:1]) and any(thoughts(new)) and not thoughts(new)[0]:
            return "an answer that began with thoughts still begins with them, or has none"
    return None
