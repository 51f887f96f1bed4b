"""Detection of the wire format of a list of messages.

Each format says whether it recognizes a message. Many conversations are ambiguous: a message with a role and a text is valid in
three formats. `detect` does not guess; its error names the possible formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import UnknownFormat
from .base import MessageFormat
from .foreign import refuse_foreign
from .openai_chat import openai_chat
from .registry import FORMATS, format_named
from .wire import fields_of, items_of, type_name

_Formats: TypeAlias = tuple[MessageFormat, ...]


def resolve(format: str | MessageFormat | None = None, messages: Sequence[Any] = ()) -> MessageFormat:
    """Return the wire format for a ``format=`` argument.

    Args:
        format: The name of a format, a format, or ``None`` to detect it: chat completions, unless a message can only be in
            another format. Messages that no format recognizes are ignored.
        messages: The conversation; O(messages) for plain chats.

    Raises:
        UnknownFormat: If no format has that name, or the messages are in different formats, in none, or in several but not in
            chat completions.

    >>> resolve("openai-chat")
    openai_chat
    >>> resolve(None, [{"role": "model", "parts": [{"text": "hi"}]}])
    gemini
    """
    if format is not None:
        return format if isinstance(format, MessageFormat) else format_named(format)
    if not fits(messages, openai_chat):
        return _only(_possible(messages, strict=False))
    if (strange := _strange(messages)) is not None:
        raise UnknownFormat(_unknown(strange, messages[strange]))
    return openai_chat


def detect(messages: Iterable[Any]) -> MessageFormat:
    """Return the wire format of a conversation; O(parts).

    Args:
        messages: The conversation, oldest first; dictionaries, or objects of a provider's package.

    Raises:
        UnknownFormat: If several formats are possible, or the messages are in different formats, or in none. The text says
            which of these, and at which message.

    >>> detect([{"role": "user", "parts": [{"text": "hi"}]}])
    gemini
    >>> detect([{"role": "user", "content": "hi"}])
    Traceback (most recent call last):
    ...
    compaction.errors.UnknownFormat: these messages fit openai-chat, openai-responses, anthropic alike; say which with format=
    """
    return _only(_possible(messages))


def _strange(messages: Sequence[Any]) -> int | None:
    """Return the place of the first message without a role if no format recognizes any message."""
    for raw in messages:
        if (raw.__class__ is dict and type(raw.get("content")) is str) or _fitting(raw):
            return None
    return next((place for place, raw in enumerate(messages) if (fields := fields_of(raw)) and "role" not in fields), None)


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether every message can be in this wire format.

    Raises:
        UnknownFormat: If a message is from a known framework or service without a wire format here.
    """
    chat = format is openai_chat
    for raw in messages:
        if chat and raw.__class__ is dict and "type" not in raw and "parts" not in raw:
            content = raw.get("content")
            if type(content) is str or (content is None and "tool_calls" in raw):
                continue
        fitting = _fitting(raw)
        if fitting and format not in fitting:
            return False
    return True


def _fitting(raw: Any) -> list[MessageFormat]:
    """Return the formats that a message can be in.

    Raises:
        UnknownFormat: If the message is from a known framework or service without a wire format here.
    """
    fields = fields_of(raw)
    if fields is None:
        return []
    surely: list[MessageFormat] = []
    perhaps: list[MessageFormat] = []
    for format in FORMATS:
        if found := format.recognizes(fields):
            surely.append(format)
        elif found is None:
            perhaps.append(format)
    fitting = surely or perhaps
    strange = not fitting or "role" not in fields or "parts" in fields
    for part in items_of(fields.get("content")) or ():
        if (part_fields := fields_of(part)) is None:
            continue
        having = [format for format in fitting if format.recognizes_part(part_fields)]
        if having or any(format.recognizes_part(part_fields) for format in FORMATS):
            fitting = having
        else:
            strange = True
    if strange:
        refuse_foreign(fields)
    return fitting


def _possible(messages: Iterable[Any], *, strict: bool = True) -> _Formats:
    """Return the formats that all messages can be in; if not ``strict``, messages that no format recognizes are ignored.

    Raises:
        UnknownFormat: If there is none.
    """
    possible = FORMATS
    first: dict[MessageFormat, int] = {}
    for index, raw in enumerate(messages):
        fitting = _fitting(raw)
        if not fitting:
            if strict:
                raise UnknownFormat(_unknown(index, raw))
            continue
        if len(fitting) == 1:
            first.setdefault(fitting[0], index)
        left = tuple([format for format in possible if format in fitting])
        if not left:
            raise UnknownFormat(_mixed(index, fitting, first))
        possible = left
    return possible


def _only(possible: _Formats) -> MessageFormat:
    first, *others = possible
    if others:
        names = ", ".join([format.name for format in possible])
        raise UnknownFormat(f"these messages fit {names} alike; say which with format=")
    return first


def _unknown(index: int, raw: Any) -> str:
    fields = fields_of(raw)
    if fields is None:
        return f"messages[{index}]: a message is an object with fields (got {type_name(raw)})"
    if items_of(fields.get("messages")) is not None:
        return f"messages[{index}] is a conversation, not a message; pass one conversation at a time, or write one a line"
    names = ", ".join([repr(name) for name in fields][:6]) or "none"
    return (
        f"messages[{index}]: no wire format has such a message (its fields: {names}); name the format with format=, "
        "or convert the messages to one; see docs/formats.md for what there is"
    )


def _mixed(index: int, fitting: Sequence[MessageFormat], first: Mapping[MessageFormat, int]) -> str:
    others = [f"messages[{place}] is {format.name}" for format, place in first.items() if format not in fitting]
    names = " or ".join([format.name for format in fitting])
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, {before}: one list has one format; convert what was added"
