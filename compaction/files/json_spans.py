"""A JSON scanner that notes the position of every message in the text.

The standard library parses each value and returns where it ends; only the list of messages, and the object that may contain it,
are walked here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from json import JSONDecodeError
from typing import Any, Final, TypeAlias

import attrs

__all__ = ["JsonDocument", "MessageList", "Span", "scan", "skip_space"]

Span: TypeAlias = tuple[int, int]
"""The start and end of something in a text."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_BYTE_ORDER_MARK: Final = "\ufeff"


@attrs.frozen
class MessageList:
    """A list of messages in a text.

    Args:
        values: The messages.
        spans: The position of each message.
        span: The position of the list, with its brackets.
    """

    values: list[Any]
    spans: list[Span]
    span: Span


@attrs.frozen
class JsonDocument:
    """A JSON value that may be a conversation.

    Args:
        kind: Its first character: ``[`` for a list, ``{`` for an object, or another one.
        fields: An object's fields, except a list in ``messages``.
        lists: The lists of messages; a conversation has exactly one.
    """

    kind: str
    fields: dict[str, Any]
    lists: list[MessageList]


def scan(text: str) -> JsonDocument:
    """Parse the JSON value in a text, which may have white space around it or start with a byte order mark; O(text).

    Raises:
        JSONDecodeError: If it is not JSON. ``NaN`` and ``Infinity`` are accepted, because many writers use them.
        ValueError: If a number is too large for Python to read.
        RecursionError: If it is nested too deeply.

    >>> found = scan('{"id": 7, "messages": [{"role": "user"}]}')
    >>> found.fields, found.lists[0].spans
    ({'id': 7}, [(23, 39)])
    """
    at = skip_space(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    found = JsonDocument(text[at : at + 1], {}, [])

    def read_member(at: int) -> int:
        start = at
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", text, start)
        at = skip_space(text, _after(text, skip_space(text, at), ":"))
        if name == "messages" and text.startswith("[", at):
            found.lists.append(_read_list(text, at))
            return found.lists[-1].span[1]
        found.fields[name], at = _DECODER.raw_decode(text, at)
        return at

    if found.kind == "{":
        at = _walk(text, at, "}", read_member)
    elif found.kind == "[":
        found.lists.append(_read_list(text, at))
        at = found.lists[0].span[1]
    else:
        _, at = _DECODER.raw_decode(text, at)
    at = skip_space(text, at)
    if at != len(text):
        raise JSONDecodeError("Extra data", text, at)
    return found


def skip_space(text: str, at: int) -> int:
    """Return the position of the first character from ``at`` on that is not white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _read_list(text: str, start: int) -> MessageList:
    """Read the list that opens at ``start``."""
    values: list[Any] = []
    spans: list[Span] = []

    def read_element(at: int) -> int:
        value, end = _DECODER.raw_decode(text, at)
        values.append(value)
        spans.append((at, end))
        return end

    end = _walk(text, start, "]", read_element)
    return MessageList(values, spans, (start, end))


def _walk(text: str, start: int, closing: str, read: Callable[[int], int]) -> int:
    """Walk the list or object that opens at ``start``; ``read`` takes an element's start and returns its end."""
    at = skip_space(text, start + 1)
    if text.startswith(closing, at):
        return at + 1
    while True:
        at = skip_space(text, read(at))
        if text.startswith(closing, at):
            return at + 1
        at = skip_space(text, _after(text, at, ","))


def _after(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise JSONDecodeError(f"Expecting {mark!r} delimiter", text, at)
    return at + 1


def _finite(text: str) -> float:
    """Return the number; one beyond a double would be written as ``Infinity``, which is not JSON."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is beyond a double")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite)
