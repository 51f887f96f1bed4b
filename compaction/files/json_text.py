"""A list inside a JSON text: read with the position of every element, and replaced so that the rest keeps its bytes.

When a recorded conversation or a request is compacted, only the changed messages differ. Other fields, the spelling of numbers,
escapes, white space, line ends and every kept message keep their bytes. The standard library parses each value and returns its
end; this module walks only the list and the object around it. If msgspec is installed, most lines are divided without parsing
their messages.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from json import JSONDecodeError
from typing import Any, Final, TypeAlias, cast

import attrs

from ..json_data import finite_float, is_utf8, same

Span: TypeAlias = tuple[int, int]  # the start and end of something in a text

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_COMMA: Final = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_BYTE_ORDER_MARK: Final = "\ufeff"


def replace_list(text: bytes, old: Sequence[Any], new: Sequence[Any], key: str = "messages") -> bytes:
    r"""Return a JSON text with another list in it; O(text).

    Args:
        text: The JSON text, in UTF-8.
        old: The list that was read from the text, by any parser.
        new: The list to write. An element that is the same object as one in ``old`` keeps its bytes; any other element is
            written as JSON, with the indentation, spacing and escapes of the text's first element.
        key: The key of the list, if the text is an object. If the text is a list, it is that list.

    Raises:
        ValueError: If the text is not JSON, or does not have exactly one such list, as long as ``old``.
        TypeError: If a new element is not a JSON value.

    >>> text = b'{"model": "m", "contents":[{"text":"caf\\u00e9","n":1.50},  {"text":"tea"}]}'
    >>> old = json.loads(text)["contents"]
    >>> replace_list(text, old, [{"text": "thé"}, old[0]], "contents").decode()
    '{"model": "m", "contents":[{"text":"th\\u00e9"},  {"text":"caf\\u00e9","n":1.50}]}'
    """
    if same(old, new):
        return text
    if key == "messages" and (replaced := _replaced_in_plain(text, old, new)) is not None:
        return replaced
    lists = scan(text.decode(), key).lists
    if len(lists) != 1 or len(lists[0].values) != len(old):
        raise ValueError(f"the text does not have exactly one list of {len(old)} elements at {key}")
    return attrs.evolve(lists[0], values=list(old)).replaced(new).encode()


@attrs.frozen
class JsonList:
    """A list inside a JSON text."""

    text: str = attrs.field(repr=False)  # the whole text
    values: list[Any]
    spans: list[Span]  # of each element
    span: Span  # of the list, with its brackets

    def replaced(self, new: Sequence[Any]) -> str:
        """Return the whole text with another list, written as `replace_list` says."""
        text, spans, (start, end) = self.text, self.spans, self.span
        if same(self.values, new):
            return text
        if not new or not spans:
            return f"{text[:start]}{json.dumps(list(new))}{text[end:]}"
        (first, first_end), last_end = spans[0], spans[-1][1]
        known = {id(value): span for value, span in zip(self.values, spans, strict=True)}
        write = _element_writer(text, first, escaped=text.isascii())
        pieces = [text[slice(*known[id(value)])] if id(value) in known else write(value) for value in new]
        comma = text[first_end : spans[1][0]] if len(spans) > 1 else f",{text[start + 1 : first]}"
        return f"{text[:first]}{comma.join(pieces)}{text[last_end:]}"


@attrs.frozen
class JsonDocument:
    """A JSON value that may contain a certain list."""

    kind: str  # its first character: ``[`` for a list, ``{`` for an object, or another one
    fields: dict[str, Any] = attrs.field(factory=dict[str, Any])  # of an object, without that list
    lists: list[JsonList] = attrs.field(factory=list[JsonList])  # that list; several if its key is repeated


def scan(text: str, key: str = "messages") -> JsonDocument:
    """Parse the JSON value in a text, which may have white space around it or start with a byte order mark; O(text).

    >>> found = scan('{"id": 7, "messages": [{"role": "user"}]}')
    >>> found.fields, found.lists[0].spans
    ({'id': 7}, [(23, 39)])
    """
    at = skip_space(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    found = JsonDocument(text[at : at + 1])
    if found.kind == "{":
        at = _fill_from_object(found, text, at, key)
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


def _fill_from_object(found: JsonDocument, text: str, start: int, key: str) -> int:
    """Read the object that opens at ``start`` into a document, and return its end."""
    at = skip_space(text, start + 1)
    if text.startswith("}", at):
        return at + 1
    while True:
        name, end = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        at = skip_space(text, _after(text, skip_space(text, end), ":"))
        if name == key and text.startswith("[", at):
            found.lists.append(_read_list(text, at))
            end = found.lists[-1].span[1]
        else:
            found.fields[name], end = _DECODER.raw_decode(text, at)
        if (comma := _COMMA.match(text, end)) is None:
            return _end(text, end, "}")
        at = comma.end()


def _read_list(text: str, start: int) -> JsonList:
    """Read the list that opens at ``start``. The loop runs once a message, so it calls as little as possible."""
    values: list[Any] = []
    spans: list[Span] = []
    read, comma = cast("Any", _DECODER).scan_once, _COMMA.match
    at = skip_space(text, start + 1)
    if text.startswith("]", at):
        return JsonList(text, values, spans, (start, at + 1))
    while True:
        try:
            value, end = read(text, at)
        except StopIteration as error:
            raise JSONDecodeError("Expecting value", text, error.value) from None
        values.append(value)
        spans.append((at, end))
        if text.startswith(", ", end) and text.startswith("{", end + 2):
            at = end + 2
        elif found := comma(text, end):
            at = found.end()
        else:
            break
    return JsonList(text, values, spans, (start, _end(text, end, "]")))


def _end(text: str, at: int, closing: str) -> int:
    """Return the end of a list or object whose last element ends at ``at``."""
    at = skip_space(text, at)
    return at + 1 if text.startswith(closing, at) else _after(text, at, ",")


def _after(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise JSONDecodeError(f"Expecting {mark!r} delimiter", text, at)
    return at + 1


_DECODER: Final = json.JSONDecoder(parse_float=finite_float)


# ------------------------------------------------------------------------ lines that need no parsing

_START: Final = re.compile(rb'"messages"[ \t\n\r]*:[ \t\n\r]*(\[)[ \t\n\r]*')
_PLAIN_COMMA: Final = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")
_END: Final = re.compile(rb"[ \t\n\r]*\]")


def _divider() -> Callable[[bytes], Any] | None:
    """Return a function that divides a line into its messages without parsing them; ``None`` without msgspec."""
    with contextlib.suppress(ImportError):
        msgspec: Any = import_module("msgspec")
        decoder = msgspec.json.Decoder(msgspec.defstruct("Line", [("messages", list[msgspec.Raw])]))
        return cast("Callable[[bytes], Any]", decoder.decode)
    return None


_divide: Callable[[bytes], Any] | None = _divider()


def _replaced_in_plain(text: bytes, old: Sequence[Any], new: Sequence[Any]) -> bytes | None:
    """Return a text with other messages, without parsing them; ``None`` if it is not plain, or without msgspec.

    A plain text has ``"messages"`` once outside the list, and no escape there, so no other spelling of that key; and all
    elements of the list have the same separator.
    """
    if _divide is None or not new or (opening := _START.search(text)) is None:
        return None
    try:
        elements: list[Any] = _divide(text).messages
    except (ValueError, RecursionError):  # such as NaN, which the standard library reads
        return None
    if not elements or len(elements) != len(old):
        return None
    start = opening.end()
    first_end = start + len(bytes(elements[0]))
    comma = found.group() if (found := _PLAIN_COMMA.match(text, first_end)) else b"," + text[opening.end(1) : start]
    joined = comma.join(elements)
    head, tail = text[:start], text[start + len(joined) :]
    has_only_key = (head + tail).count(b'"messages"') == 1 and b"\\" not in head + tail  # an escape could spell it otherwise
    if not has_only_key or not text.startswith(joined, start) or _END.match(tail) is None:
        return None
    pieces = dict(zip(map(id, old), elements, strict=True))
    if added := {id(value): value for value in new if id(value) not in pieces}:
        write = _element_writer(text[:first_end].decode(), len(head.decode()), escaped=text.isascii())
        pieces |= {key: write(value).encode() for key, value in added.items()}
    return b"".join((head, comma.join([pieces[id(value)] for value in new]), tail))


# ------------------------------------------------------------------------ writing in the style of a text

_FIRST_FIELD: Final = re.compile(r'\{(\s*)"(?:[^"\\]|\\.)*"\s*:(\s*)')


def _element_writer(text: str, first: int, *, escaped: bool) -> Callable[[Any], str]:
    """Return a function that writes an element of a list in the style of the first one, which begins at ``first``.

    Characters beyond ASCII are ``escaped`` if they are in the text.
    """
    fields = _FIRST_FIELD.match(text, first)
    inner, gap = fields.groups() if fields else ("", " ")
    margin = text[text.rindex("[", 0, first) + 1 : first].rpartition("\n")[2]
    indent = inner.rpartition("\n")[2].removeprefix(margin) if "\n" in inner else None
    separators = (", " if gap and indent is None else ",", ": " if gap else ":")

    def write(value: Any) -> str:
        text = json.dumps(value, ensure_ascii=escaped, indent=indent, separators=separators)
        if not is_utf8(text):
            text = json.dumps(value, indent=indent, separators=separators)
        return text if indent is None else text.replace("\n", f"\n{margin}")

    return write
