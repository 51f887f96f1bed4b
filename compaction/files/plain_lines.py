"""Replacing the messages of a plain line of JSON without parsing them, if msgspec is installed.

A plain text has ``"messages"`` once outside the list, and no escape there, so no other spelling of that key; and all elements
of the list have the same separator. `json_text` reads any other text.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, cast

import attrs

from ..json_data import is_utf8

_START: Final = re.compile(rb'"messages"[ \t\n\r]*:[ \t\n\r]*\[[ \t\n\r]*')
_COMMA: Final = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")
_END: Final = re.compile(rb"[ \t\n\r]*\]")
_FIRST_FIELD: Final = re.compile(r'\{(\s*)"(?:[^"\\]|\\.)*"\s*:(\s*)')


def replaced_in_plain(text: bytes, old: Sequence[Any], new: Sequence[Any]) -> bytes | None:
    """Return a text with other messages, without parsing them; ``None`` if it is not plain, or without msgspec.

    Args:
        text: The text.
        old: The messages that were read from it.
        new: The messages to write; see `compaction.files.replace_list`.
    """
    found = _plain_list(text, len(old)) if new else None
    if found is None:
        return None
    known = dict(zip(map(id, old), found.elements, strict=True))
    pieces: list[Any] = [known.get(id(value)) for value in new]
    if None in pieces:
        head = text[: found.start + len(bytes(found.elements[0]))].decode()
        write = element_writer(head, len(text[: found.start].decode()), escaped=text.isascii())
        pieces = [write(value).encode() if piece is None else piece for piece, value in zip(pieces, new, strict=True)]
    return b"".join((text[: found.start], found.comma.join(cast("list[bytes]", pieces)), text[found.end :]))


@attrs.frozen
class _PlainList:
    """The elements of a list, as they are in a text, what is between them, and where the first begins and the last ends."""

    elements: list[Any]
    comma: bytes
    start: int
    end: int


def _plain_list(text: bytes, length: int) -> _PlainList | None:
    """Return the list of messages in a plain text; ``None`` if the text is not plain, or the list has another length."""
    if _divide is None or (opening := _START.search(text)) is None:
        return None
    try:
        elements: list[Any] = _divide(text).messages
    except (ValueError, RecursionError):  # such as NaN, which the standard library reads
        return None
    if not elements or len(elements) != length:
        return None
    start = opening.end()
    found = _COMMA.match(text, start + len(bytes(elements[0])))
    space_before_first = text[text.index(b"[", opening.start()) + 1 : start]
    comma = found.group() if found else b"," + space_before_first
    joined = comma.join(elements)
    end = start + len(joined)
    has_one_comma = text.startswith(joined, start) and _END.match(text, end) is not None
    around = text[:start] + text[end:]
    has_only_key = around.count(b'"messages"') == 1 and b"\\" not in around  # an escape could spell it otherwise
    return _PlainList(elements, comma, start, end) if has_one_comma and has_only_key else None


def _divider() -> Callable[[bytes], Any] | None:
    """Return a function that divides a line into its messages without parsing them; ``None`` without msgspec."""
    with contextlib.suppress(ImportError):
        msgspec: Any = import_module("msgspec")
        decoder = msgspec.json.Decoder(msgspec.defstruct("Line", [("messages", list[msgspec.Raw])]))
        return cast("Callable[[bytes], Any]", decoder.decode)
    return None


_divide: Callable[[bytes], Any] | None = _divider()


def element_writer(text: str, first: int, *, escaped: bool) -> Callable[[Any], str]:
    """Return a function that writes an element of a list in the style of the first one.

    Args:
        text: A text that has the first element.
        first: The place of that element.
        escaped: Whether characters beyond ASCII are escaped.
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
