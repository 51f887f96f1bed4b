"""Find the wire format of a list of messages.

Each format says of a message whether it may be written so. Many conversations show nothing: a role and a text are a message in
three formats. `detect` does not guess then, its error names the possible formats.
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
    """Return the wire format that a caller means.

    Args:
        format: A format's name, a format, or ``None`` to detect it: a list that does not show another format is read as OpenAI
            chat completions.
        messages: The conversation.

    Raises:
        UnknownFormat: If no format has that name, the messages are of different formats, or of none.

    >>> resolve("openai-chat")
    openai_chat
    >>> resolve(None, [{"role": "model", "parts": [{"text": "hi"}]}])
    gemini
    """
    if format is None:
        return read_as(messages)
    return format if isinstance(format, MessageFormat) else format_named(format)


def detect(messages: Iterable[Any]) -> MessageFormat:
    """Return the wire format of a conversation; O(parts).

    Args:
        messages: The conversation, oldest first; dictionaries, or objects of a provider's package.

    Raises:
        UnknownFormat: If more than one format is possible, if the messages are of different formats, or of none. The text says
            which of the three, and where.

    >>> detect([{"role": "user", "parts": [{"text": "hi"}]}])
    gemini
    >>> detect([{"role": "user", "content": "hi"}])
    Traceback (most recent call last):
    ...
    compaction.errors.UnknownFormat: these messages fit openai-chat, openai-responses, anthropic alike; say which with format=
    """
    return _only(_possible(messages))


def candidates(messages: Iterable[Any]) -> Sequence[MessageFormat]:
    """Return every wire format that a conversation can be in; O(parts).

    Raises:
        UnknownFormat: If there is none. The text says at which message that shows.
    """
    return list(_possible(messages))


def read_as(messages: Sequence[Any]) -> MessageFormat:
    """Return the wire format to read a conversation in if the caller named none; O(messages) for plain chat messages.

    Chat completions, unless a message can only be of another format. A message that no format has shows nothing beside others.

    Raises:
        UnknownFormat: If the messages are of different formats, of none, or fit several formats that are not chat completions.

    >>> read_as([{"role": "user", "content": "hi"}])
    openai_chat
    """
    if fits(messages, openai_chat):
        if (strange := _strange(messages)) is not None:
            raise UnknownFormat(_unknown(strange, messages[strange]))
        return openai_chat
    return _only(_possible(messages, strict=False))


def _strange(messages: Sequence[Any]) -> int | None:
    """Return the place of a message without a role, where no message is one that a format has."""
    for raw in messages:
        if (raw.__class__ is dict and type(raw.get("content")) is str) or _fitting(raw):
            return None
    return next((place for place, raw in enumerate(messages) if (fields := fields_of(raw)) and "role" not in fields), None)


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether no message shows that the conversation is in another wire format.

    Raises:
        UnknownFormat: If a message is that of a framework or service which is known and is not a wire format here.
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
    """Return the formats that a message can be in; none if no format has such a message.

    Raises:
        UnknownFormat: If it is one of somebody else's.
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
    """Return the formats that every message can be in; if not strict, every message that a format has.

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
    if fields_of(raw) is None:
        return f"messages[{index}]: a message is an object with fields (got {type_name(raw)})"
    names = ", ".join([repr(name) for name in fields_of(raw) or {}][:6]) or "none"
    return (
        f"messages[{index}]: no wire format has such a message (its fields: {names}); name the format with format=, "
        "or convert the messages to one; see docs/formats.md for what there is"
    )


def _mixed(index: int, fitting: Sequence[MessageFormat], first: Mapping[MessageFormat, int]) -> str:
    others = [f"messages[{place}] is {format.name}" for format, place in first.items() if format not in fitting]
    names = " or ".join([format.name for format in fitting])
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, {before}: one list has one format; convert what was added"
