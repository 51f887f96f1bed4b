"""Messages taken out of a line without reading it again: the bytes between are found, not parsed.

To drop messages only the ends of what stays have to be known. A message that was written in a usual manner is found in the
line by writing it so again. Whatever is odd, or stands there twice, is left to the careful way, and what comes out is read and
compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

__all__ = ["spliced"]

_COMMA: Final = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_MOST_RUNS: Final = 6
_MOST_TOGETHER: Final = 4
_LEAST: Final = 40  # of fewer messages the places are read as fast
_Write: TypeAlias = Callable[[Any], bytes]


def spliced(
    line: bytes,
    values: Sequence[Any],
    messages: Sequence[Any],
    load: Callable[[bytes], Any],
    write: _Write,
    *,
    least: int = _LEAST,
) -> bytes | None:
    """The line with some of its messages only; O(line), and much faster than to parse it with places.

    Args:
        line: A conversation: a list of messages, or an object with one.
        values: Its messages as they were read.
        messages: Those of them that stay, the same objects, in their order.
        load: Reads JSON.
        write: Writes JSON in its most compact manner.
        least: With fewer messages it is not tried, >= 2.

    Returns:
        The line, every byte of what stays as it was; ``None`` if there is something new, or it cannot be told where things are.

    >>> line = b'{"n": 1.0, "messages": [{"role": "user"}, {"role": "system"}, {"role": "tool"}]}'
    >>> values = json.loads(line)["messages"]
    >>> spliced(line, values, values[1:], json.loads, lambda value: json.dumps(value).encode(), least=2)
    b'{"n": 1.0, "messages": [{"role": "system"}, {"role": "tool"}]}'
    """
    runs = _runs(values, messages) if len(values) >= least else None
    if runs is None:
        return None
    for style in (_spaced, write, _spaced_unicode):
        first = _found(line, style(values[0]))
        between = _COMMA.match(line, first[1]) if first else None
        if first and between and line.startswith(style(values[1]), between.end()):
            break
    else:
        return None
    comma = between[0]
    pieces: list[bytes] = []
    for start, end in runs:
        found, until = _start(line, values, start, style, comma), _end(line, values, end, style, comma)
        if found is None or until is None:
            return None
        pieces.append(line[found:until])
    last = _end(line, values, len(values) - 1, style, comma)
    made = None if last is None else line[: first[0]] + comma.join(pieces) + line[last:]
    return made if made is not None and _holds(made, messages, load) else None


def _start(line: bytes, values: Sequence[Any], place: int, write: _Write, comma: bytes) -> int | None:
    """Where a message begins; with those after it, if it stands there twice."""
    text = b""
    for message in values[place : place + _MOST_TOGETHER]:
        text += (comma if text else b"") + write(message)
        if found := _found(line, text):
            return found[0]
    return None


def _end(line: bytes, values: Sequence[Any], place: int, write: _Write, comma: bytes) -> int | None:
    """Where a message ends; with those before it, if it stands there twice."""
    text = b""
    for message in reversed(values[max(0, place - _MOST_TOGETHER + 1) : place + 1]):
        text = write(message) + (comma if text else b"") + text
        if found := _found(line, text):
            return found[1]
    return None


def _runs(values: Sequence[Any], messages: Sequence[Any]) -> list[tuple[int, int]] | None:
    """Places of the first and last message of each run that stays."""
    places = {id(value): place for place, value in enumerate(values)}
    runs: list[tuple[int, int]] = []
    for message in messages:
        place = places.get(id(message))
        if place is None:
            return None
        if runs and place == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], place)
        elif len(runs) == _MOST_RUNS:
            return None
        else:
            runs.append((place, place))
    return runs or None


def _found(line: bytes, text: bytes) -> tuple[int, int] | None:
    """Where a text stands, if it does so once."""
    at = line.find(text)
    if at < 0 or line.find(text, at + 1) >= 0:
        return None
    return at, at + len(text)


def _holds(line: bytes, messages: Sequence[Any], load: Callable[[bytes], Any]) -> bool:
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
