"""The wire formats of this package, found by their name or by the messages of a list.

Each format says whether it recognizes a message. Many conversations are ambiguous: a message with a role and a text is valid in
three formats. `detect` does not guess; its error names the possible formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ..errors import UnknownFormat
from .anthropic import anthropic
from .base import MessageFormat
from .bedrock import bedrock
from .foreign import refuse_foreign
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses
from .wire import fields_of, items_of, type_name

FORMATS: Final[tuple[MessageFormat, ...]] = (openai_chat, openai_responses, anthropic, gemini, bedrock)
"""Every wire format. A new one is one folder and its place in this list."""

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
    if isinstance(format, MessageFormat):
        return format
    if format is not None:
        return _named(format)
    as_chat = _scan(messages, (openai_chat,))
    if not as_chat.possible:
        return _only(_scan(messages, FORMATS))
    if not as_chat.recognized:
        for place, raw in enumerate(messages):
            if (fields := fields_of(raw)) and "role" not in fields:
                raise UnknownFormat(_unknown(place, raw))
    return openai_chat


def _named(name: str) -> MessageFormat:
    """Return the format of that name.

    Raises:
        UnknownFormat: If no format has it.
    """
    known = {format.name: format for format in FORMATS}
    if name in known:
        return known[name]
    names = ", ".join(sorted(known))
    text = f"format={name!r}: no such wire format; use one of {names}, or a MessageFormat"
    raise UnknownFormat(text, argument="format")


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
    compaction.errors.UnknownFormat: these messages can be openai-chat, openai-responses, anthropic; name one with format=
    """
    return _only(_scan(messages, FORMATS, strict=True))


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether every message can be in this wire format; messages that no format recognizes are ignored.

    Raises:
        UnknownFormat: If a message is from a known framework or service without a wire format here.
    """
    return bool(_scan(messages, (format,)).possible)


@attrs.frozen
class _Scan:
    """The possible formats of a list.

    Args:
        possible: The formats that every recognized message can be in; empty if there is none.
        recognized: Whether any format recognizes any message.
        problem: The error about the message at which the scan ended; empty if it read the whole list.
    """

    possible: _Formats
    recognized: bool
    problem: str = ""


def _scan(messages: Iterable[Any], wanted: _Formats, *, strict: bool = False) -> _Scan:
    """Return which of the wanted formats are possible. The scan ends at the message that leaves none.

    Args:
        messages: The conversation.
        wanted: The formats to choose from.
        strict: Whether it also ends at a message that no format recognizes.

    Raises:
        UnknownFormat: If a message is from a known framework or service without a wire format here.
    """
    possible, recognized = wanted, False
    is_chat = wanted == (openai_chat,)
    first: dict[MessageFormat, int] = {}
    for place, raw in enumerate(messages):
        if is_chat and raw.__class__ is dict and "type" not in raw and "parts" not in raw:  # a shortcut for most
            content = raw.get("content")
            if type(content) is str or (content is None and "tool_calls" in raw):
                recognized = True
                continue
        formats = _formats_of(raw)
        if not formats:
            if strict:
                return _Scan(possible, recognized, _unknown(place, raw))
            continue
        recognized = True
        if len(formats) == 1:
            first.setdefault(formats[0], place)
        possible = tuple([format for format in possible if format in formats])
        if not possible:
            return _Scan((), recognized, _mixed(place, formats, first))
    return _Scan(possible, recognized)


def _formats_of(raw: Any) -> list[MessageFormat]:
    """Return the formats that a message can be in, by its fields and the parts of its content.

    Raises:
        UnknownFormat: If the message is from a known framework or service without a wire format here.
    """
    fields = fields_of(raw)
    if fields is None:
        return []
    surely: list[MessageFormat] = []
    perhaps: list[MessageFormat] = []
    for format in FORMATS:
        if (answer := format.recognizes(fields)) is not False:
            (surely if answer else perhaps).append(format)
    formats = surely or perhaps
    may_be_foreign = not formats or "role" not in fields or "parts" in fields
    for part in items_of(fields.get("content")) or ():
        if (part_fields := fields_of(part)) is None:
            continue
        of_part = [format for format in formats if format.recognizes_part(part_fields)]
        if of_part or any(format.recognizes_part(part_fields) for format in FORMATS):
            formats = of_part
        else:
            may_be_foreign = True
    if may_be_foreign:
        refuse_foreign(fields)
    return formats


def _only(scan: _Scan) -> MessageFormat:
    """Return the only possible format; raise an `UnknownFormat` if there are several, or if the scan found a problem."""
    if scan.problem:
        raise UnknownFormat(scan.problem)
    first, *others = scan.possible
    if others:
        names = ", ".join([format.name for format in scan.possible])
        raise UnknownFormat(f"these messages can be {names}; name one with format=")
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


def _mixed(index: int, formats: Sequence[MessageFormat], first: Mapping[MessageFormat, int]) -> str:
    others = [f"messages[{place}] is {format.name}" for format, place in first.items() if format not in formats]
    names = " or ".join([format.name for format in formats])
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, but {before}; one list has one format, so convert what was added"
