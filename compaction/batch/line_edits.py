"""Removal of messages from a JSON line without parsing it again: the bytes around them are searched for.

To remove messages, only the two ends of each run of kept messages must be found. A message that was written in a common style
is found by writing it again in that style. Anything unusual, or that occurs twice, is left to the parser that knows positions,
and every result is parsed and compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

__all__ = ["keep_messages"]

_COMMA: Final = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_MAX_RUNS: Final = 6
_MAX_NEIGHBOURS: Final = 4
_MIN_MESSAGES: Final = 40  # with fewer messages, parsing positions is as fast
_Write: TypeAlias = Callable[[Any], bytes]


def keep_messages(
    line: bytes,
    values: Sequence[Any],
    kept: Sequence[Any],
    load: Callable[[bytes], Any],
    write: _Write,
    *,
    min_messages: int = _MIN_MESSAGES,
) -> bytes | None:
    """Return a line with some of its messages only; O(line), and much faster than parsing it with positions.

    Args:
        line: A conversation: a list of messages, or an object with one.
        values: Its messages as they were parsed.
        kept: Those that stay: the same objects, in the same order.
        load: Parses JSON.
        write: Writes compact JSON.
        min_messages: With fewer messages it is not tried, >= 2.

    Returns:
        The line, with every byte of what stays as it was; ``None`` if a message is new or its position is uncertain.

    >>> line = b'{"n": 1.0, "messages": [{"role": "user"}, {"role": "system"}, {"role": "tool"}]}'
    >>> values = json.loads(line)["messages"]
    >>> keep_messages(line, values, values[1:], json.loads, lambda value: json.dumps(value).encode(), min_messages=2)
    b'{"n": 1.0, "messages": [{"role": "system"}, {"role": "tool"}]}'
    """
    runs = _runs(values, kept) if len(values) >= min_messages else None
    if runs is None:
        return None
    for style in (_spaced, write, _spaced_unicode):
        first = _find_once(line, style(values[0]))
        between = _COMMA.match(line, first[1]) if first else None
        if first and between and line.startswith(style(values[1]), between.end()):
            break
    else:
        return None
    comma = between[0]
    pieces: list[bytes] = []
    for first_kept, last_kept in runs:
        start, end = _start(line, values, first_kept, style, comma), _end(line, values, last_kept, style, comma)
        if start is None or end is None:
            return None
        pieces.append(line[start:end])
    last = _end(line, values, len(values) - 1, style, comma)
    result = None if last is None else line[: first[0]] + comma.join(pieces) + line[last:]
    return result if result is not None and _contains_exactly(result, kept, load) else None


def _start(line: bytes, values: Sequence[Any], place: int, write: _Write, comma: bytes) -> int | None:
    """Return where a message begins; if it occurs twice, it is searched together with those after it."""
    text = b""
    for message in values[place : place + _MAX_NEIGHBOURS]:
        text += (comma if text else b"") + write(message)
        if span := _find_once(line, text):
            return span[0]
    return None


def _end(line: bytes, values: Sequence[Any], place: int, write: _Write, comma: bytes) -> int | None:
    """Return where a message ends; if it occurs twice, it is searched together with those before it."""
    text = b""
    for message in reversed(values[max(0, place - _MAX_NEIGHBOURS + 1) : place + 1]):
        text = write(message) + (comma if text else b"") + text
        if span := _find_once(line, text):
            return span[1]
    return None


def _runs(values: Sequence[Any], kept: Sequence[Any]) -> list[tuple[int, int]] | None:
    """Return the positions of the first and last message of each run of kept messages."""
    places = {id(value): place for place, value in enumerate(values)}
    runs: list[tuple[int, int]] = []
    for message in kept:
        place = places.get(id(message))
        if place is None:
            return None
        if runs and place == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], place)
        elif len(runs) == _MAX_RUNS:
            return None
        else:
            runs.append((place, place))
    return runs or None


def _find_once(line: bytes, text: bytes) -> tuple[int, int] | None:
    """Return the start and end of a text that occurs exactly once."""
    at = line.find(text)
    if at < 0 or line.find(text, at + 1) >= 0:
        return None
    return at, at + len(text)


def _contains_exactly(line: bytes, messages: Sequence[Any], load: Callable[[bytes], Any]) -> bool:
    try:
        value = load(line)
    except ValueError:
        return False
    found: object = cast("dict[str, Any]", value).get("messages") if isinstance(value, dict) else value
    return found == list(messages)


def _spaced(value: Any) -> bytes:
    return json.dumps(value).encode()


def _spaced_unicode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
