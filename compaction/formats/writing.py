"""Writing of changed messages, which the wire formats share, and what may change in thoughts that a provider signed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..errors import ConfigurationError
from ..messages import MediaPart, Message, Part, ReasoningPart, TextPart, ToolResultPart
from .wire import elements_of, items_of, json_object

GO_ON: Final = "Go on from there."
"""The user's message after a summary or a placeholder, where an answer must follow."""


def arguments_object(text: str) -> dict[str, Any]:
    """Return a call's arguments as an object.

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

    Args:
        content: The content before the change. If it is not a list, and no media are left, the new words become the content.
        before: The result before the change.
        after: The changed result.
        read: Reads an element of the content.
        write: Returns a text as an element; the text in its place is given with new words, and has the raw element.
        keep_blank: Whether words that are only blanks are written.

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
    """Return the raw media of a changed result.

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
