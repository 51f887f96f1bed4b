"""Writing and reading of stored JSON: `json_of` returns text, `data_of` reads it back, and both raise a `StateError`.

Every store, saved session and checkpoint uses these functions. They accept plain data of limited depth with finite numbers.

>>> data_of(json_of({"edits": [1, None]}, "session 'one'"), "session 'one'", dict)
{'edits': [1, None]}
>>> data_of("[NaN]", "session 'one'", list)
Traceback (most recent call last):
compaction.errors.StateError: session 'one': not the JSON that was stored (NaN is not JSON)
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from .checks import is_count
from .errors import InvalidMessage, StateError

__all__ = [
    "MAX_DEPTH",
    "data_of",
    "finite_float",
    "finite_number",
    "is_utf8",
    "json_of",
    "member_of",
    "natural_number",
    "redacted_json",
    "same",
    "shown",
    "too_deep",
]

_Kind = TypeVar("_Kind", "dict[str, Any]", "list[Any]")

MAX_DEPTH: Final = 200
"""The most levels of nesting of stored data; Python's JSON module fails at some hundreds, depending on the call stack."""


def json_of(data: Any, where: str, *, compact: bool = False, escaped: bool = True, finite: bool = True) -> str:
    """Return data as JSON text.

    Args:
        data: Dictionaries with distinct string keys, lists, strings, finite numbers, booleans and ``None``. Keys that are
            numbers, booleans or ``None`` are written as strings.
        where: A name of the data, for errors.
        compact: Whether to leave out the spaces.
        escaped: Whether to escape characters beyond ASCII; if one is a lone surrogate, all are escaped in any case.
        finite: Whether to refuse NaN and the infinities, which `data_of` does not read.

    Raises:
        StateError: If the data is of another type, or nested deeper than `MAX_DEPTH`.
    """
    separators = (",", ":") if compact else None
    try:
        text = json.dumps(data, allow_nan=not finite, ensure_ascii=escaped, separators=separators)
        if not is_utf8(text):
            text = json.dumps(data, allow_nan=not finite, separators=separators)
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{where} cannot be stored as JSON ({error})") from error
    if _is_deeper(data, MAX_DEPTH):
        raise StateError(f"{where} cannot be stored as JSON (it is nested deeper than {MAX_DEPTH} levels)")
    return text


def data_of(text: object, where: str, kind: type[_Kind]) -> _Kind:
    """Return the data in a stored JSON text.

    Args:
        text: The text, as a string or bytes.
        where: A name of the data, for errors.
        kind: The expected type, ``dict`` or ``list``.

    Raises:
        StateError: If the text is not JSON of this type, or nested deeper than `MAX_DEPTH`.
    """
    try:
        if not isinstance(text, str | bytes):
            raise TypeError(f"{type(text).__name__}, not text")
        data: object = json.loads(text, parse_constant=_no_constant, parse_float=finite_float)
        if not isinstance(data, kind):
            raise TypeError(f"{type(data).__name__}, not {kind.__name__}")
        if _is_deeper(data, MAX_DEPTH):
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{where}: not the JSON that was stored ({error})") from error
    return data


def redacted_json(text: str, redact: Callable[[str], str]) -> str:
    """Return a JSON text without the secrets in it; O(characters).

    Each string is redacted alone, and then the whole, since a name such as ``"password"`` tells what its value is.

    Args:
        text: The text.
        redact: Replaces the secrets in a text.

    >>> redacted_json('{"name": "hunter2", "n": [1, "a hunter2"]}', lambda text: text.replace("hunter2", "[REDACTED:password]"))
    '{"name": "[REDACTED:password]", "n": [1, "a [REDACTED:password]"]}'
    """
    holder = [json.loads(text)]
    waiting: list[Any] = [holder]
    while waiting:
        inner = cast("list[Any] | dict[Any, Any]", waiting.pop())
        keys: Iterable[Any] = range(len(inner)) if isinstance(inner, list) else tuple(inner)
        for key in keys:
            value: Any = inner[key]
            if isinstance(value, str):
                inner[key] = redact(value)
            elif isinstance(value, dict | list):
                waiting.append(value)
    by_strings = json.dumps(holder[0], ensure_ascii=text.isascii())
    whole = redact(by_strings)
    try:
        json.loads(whole)
    except ValueError:
        return by_strings
    return whole


def natural_number(value: object) -> int:
    """Return the value, or raise a ``ValueError`` if it is not a whole number >= 0; booleans are not."""
    if not is_count(value):
        raise ValueError(f"{shown(value)} is not a whole number >= 0")
    return value


def finite_number(value: object) -> float:
    """Return the value as a float, or raise a ``ValueError`` if it is not a number that a float can hold."""
    try:
        if type(value) in (int, float) and math.isfinite(number := float(cast("float", value))):
            return number
    except OverflowError:
        pass
    raise ValueError(f"{shown(value)} is not a finite number")


def shown(value: object) -> str:
    """Return a short description of a value for an error, however large or deep the value is."""
    plain = value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 64)
    return f"{value!r:.50}" if plain else f"a value of type {type(value).__name__}"


def too_deep(raws: Sequence[Any], place: int | None = None) -> InvalidMessage:
    """Return the error for messages that are nested too deep to be read, compared or written; O(contents).

    Args:
        raws: The messages.
        place: The place of the message that is nested too deep; ``None`` to search for it.
    """
    if place is None:
        place = next((place for place, message in enumerate(raws) if _is_deeper(message, MAX_DEPTH)), None)
    where = "messages" if place is None else f"messages[{place}]"
    rule = f"it is nested too deep; up to {MAX_DEPTH} levels are safe"
    return InvalidMessage(where, rule, "pass the nested data as a string of JSON, or leave it out")


def _is_deeper(value: object, depth: int) -> bool:
    """Whether data is nested deeper than this; not recursive, so that any depth is safe."""
    level: dict[int, object] = {0: value}
    for _ in range(depth):
        level = {id(inner): inner for each in level.values() for inner in _nested(each)}
        if not level:
            return False
    return True


def _nested(value: object) -> list[object]:
    """Return the lists and dictionaries that are directly in a value."""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = cast("dict[object, object]", value).values()
    elif isinstance(value, list | tuple):
        inner = cast("Sequence[object]", value)
    return [each for each in inner if isinstance(each, dict | list | tuple)]


def same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two sequences hold the very same objects."""
    return ones is others or (len(ones) == len(others) and all(map(operator.is_, ones, others)))


def is_utf8(text: str) -> bool:
    """Whether the text can be encoded as UTF-8; a lone surrogate can only be escaped."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def finite_float(text: str) -> float:
    """Return the number in a JSON text, or raise a ``ValueError`` if it is beyond a double, which JSON cannot write."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is beyond a double")
    return number


def member_of(source: object, name: str) -> Any:
    """Return an entry of a mapping, or an attribute of any other object; ``None`` if it has none.

    Providers' answers are parsed JSON, or objects of a client library.

    >>> member_of({"code": 400}, "code"), member_of(3 + 4j, "real"), member_of(None, "code")
    (400, 3.0, None)
    """
    return cast("Mapping[str, Any]", source).get(name) if isinstance(source, Mapping) else getattr(source, name, None)
