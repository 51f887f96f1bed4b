"""Reading a file of conversations, whatever shape it has.

A file is a JSON list of messages, a JSON object with such a list in ``messages``, or one of these a line (JSONL); plain or
gzip, which its first byte tells, not its name. If its first line is whole by itself, it is JSONL; if not, all lines are one
document.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, Final, cast

from ..errors import UnreadableFile
from .conversation import Conversation
from .spans import Document, scan, skip_space

__all__ = ["read_conversations"]

_GZIP: Final = b"\x1f"
_SHAPES: Final = "a list of messages, an object with 'messages', or one of these a line"


class _NotJson(UnreadableFile):
    """A text is no JSON. If it is the first line of several, they may be one document."""


def read_conversations(source: Path | IO[bytes]) -> Iterator[Conversation]:
    r"""The conversations of a file, one after the other; of a JSONL file, two lines are in memory at a time.

    Args:
        source: A path, or a stream of bytes.

    Raises:
        UnreadableFile: If it cannot be read, or holds something else: says where, and what to do.

    >>> import io
    >>> stream = io.BytesIO(b'[]\n{"id": "b7", "messages": [{"role": "user", "content": "hi"}]}\n')
    >>> [first, second] = read_conversations(stream)
    >>> second.where, second.id, second.messages
    ('the input, line 2', 'b7', [{'role': 'user', 'content': 'hi'}])
    """
    name = str(source) if isinstance(source, Path) else "the input"
    try:
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(source.open("rb")) if isinstance(source, Path) else source
            yield from _conversations(_lines(stream), name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"{name}: its gzip data is cut short or damaged ({error}); fetch or pack it again") from error
    except OSError as error:
        raise UnreadableFile(f"{name}: it cannot be read ({error.strerror or error}); name a file of conversations") from error


def _lines(stream: IO[bytes]) -> Iterable[bytes]:
    """The stream's lines, unpacked if they are gzip."""
    reader: Any = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
    return gzip.GzipFile(fileobj=reader) if reader.peek(1)[:1] == _GZIP else reader


def _records(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    """Each line that holds something, with the blank lines around it, and the number of the first of these lines."""
    start, held, filled = 1, b"", False
    for number, line in enumerate(lines, 1):
        blank = line.isspace()
        if filled and not blank:
            yield start, _decoded(held, name, start)
            start, held = number, b""
        held = held + line if held else line
        filled = filled or not blank
    if not filled:
        raise UnreadableFile(f"{name}: it is empty; a file of conversations is {_SHAPES}")
    yield start, _decoded(held, name, start)


def _decoded(line: bytes, name: str, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        at = number + line.count(b"\n", 0, error.start)
        raise UnreadableFile(
            f"{name}, line {at}: it is no UTF-8 text ({error.reason}); a file of conversations is JSON in UTF-8, plain or gzip"
        ) from error


def _conversations(lines: Iterable[bytes], name: str) -> Iterator[Conversation]:
    """One conversation for each line that holds something, or one for all lines."""
    records = _records(lines, name)
    start, first = next(records)
    second = next(records, None)
    if second is None:
        yield _read(first, name, start, 1)
        return
    try:
        yield _read(first, _place(name, start, first), start, 1)
    except _NotJson as broken:
        yield _document([first, second[1], *(text for _, text in records)], name, start, broken)
        return
    yield _read(second[1], _place(name, *second), second[0], 2)
    for count, (number, text) in enumerate(records, 3):
        yield _read(text, _place(name, number, text), number, count)


def _place(name: str, number: int, text: str) -> str:
    blank_before = text.count("\n", 0, skip_space(text, 0))
    return f"{name}, line {number + blank_before}"


def _document(texts: list[str], name: str, start: int, broken: _NotJson) -> Conversation:
    """The conversation that all lines make together. If only the second is one by itself, the first is ``broken``."""
    try:
        return _read("".join(texts), name, start, 1)
    except _NotJson as error:
        raise (broken if _is_whole(texts[1]) else error) from None


def _is_whole(text: str) -> bool:
    try:
        return bool(scan(text).lists)
    except (ValueError, RecursionError):
        return False


def _read(text: str, where: str, start: int, count: int) -> Conversation:
    """The conversation that a text holds.

    Args:
        text: One JSON value, with white space around it.
        where: Its place, for messages.
        start: The number of its first line.
        count: Its number in the file.
    """
    try:
        found = scan(text)
    except JSONDecodeError as error:
        at = min(error.pos, len(text.rstrip()))
        place = f"line {start + text.count(chr(10), 0, at)}, column {at - text.rfind(chr(10), 0, at)}"
        raise _NotJson(f"{where}: it is no JSON ({error.msg}: {place}); a file of conversations is {_SHAPES}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{where}: it is nested too deeply to be read; write the inner part as a string") from error
    except ValueError as error:
        raise UnreadableFile(f"{where}: it holds a number that is too large to be read; write it as a string") from error
    if len(found.lists) != 1 or "messages" in found.fields:
        raise UnreadableFile(f"{where}: {_why_no_conversation(found)}")
    return Conversation(where=where, id=_id(found.fields, count), fields=found.fields, text=text, found=found.lists[0])


def _id(fields: Mapping[str, Any], count: int) -> str:
    given = fields.get("id")
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else str(count)


def _why_no_conversation(found: Document) -> str:
    fields = found.fields
    if found.kind != "{":
        return f"it is no conversation; that is {_SHAPES}"
    if found.lists:
        return "it has more than one 'messages'; keep one of them"
    if "messages" in fields:
        return f"its 'messages' is no list (got {type(fields['messages']).__name__}); put the messages into a list"
    if "role" in fields:
        return "it is a single message; put the messages of a conversation into one list"
    return f"it has no 'messages'; a conversation is {_SHAPES}"
