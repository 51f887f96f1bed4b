"""Reading of files of conversations: JSON or JSONL, plain or gzip.

A file is a JSON list of messages, a JSON object with such a list in ``messages``, or has one of these on each line (JSONL).
Gzip is detected by the first byte, not by the name. If the first line is a complete value, the file is JSONL; otherwise all
lines are one document, or JSONL with a damaged first line if the next two, or the second alone, are conversations.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, Final, cast

import attrs

from ..errors import UnreadableFile
from .json_text import JsonDocument, JsonList, scan, skip_space

_GZIP: Final = b"\x1f"
_LARGEST: Final = 536_870_912  # bytes of a conversation: an endless or a compressed file must not fill the memory
_SHAPES: Final = "a list of messages, an object with 'messages', or one of these a line"


@attrs.frozen(kw_only=True, eq=False)
class FileConversation:
    """One conversation of a file, with its original text, so that unchanged parts keep their bytes."""

    where: str  # its file, and its line if the file contains several conversations
    id: str  # the ``id`` beside its messages; without one, its number in the file, from 1
    message_list: JsonList = attrs.field(repr=False)  # its messages, with their positions in the text

    @property
    def messages(self) -> list[Any]:
        """Its messages, oldest first, as JSON values."""
        return self.message_list.values

    def with_messages(self, messages: Sequence[Any]) -> str:
        r"""Return the conversation's text with other messages, written as `replace_list` does; O(text).

        Raises:
            TypeError: If a message is not a JSON value.

        >>> text = rb'[{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"tea"}]'
        >>> [read] = read_conversations(io.BytesIO(text))
        >>> print(read.with_messages([read.messages[0], {"role": "user", "content": "thé"}]))
        [{"role":"user","content":"caf\u00e9","cost":1.50}, {"role":"user","content":"th\u00e9"}]
        """
        return self.message_list.replaced(messages)


class _NotJson(UnreadableFile):
    """The text is not JSON. If it is the first of several lines, all lines together may be one document."""


def read_conversations(
    source: Path | IO[bytes], *, on_bad_line: Callable[[UnreadableFile], object] | None = None
) -> Iterator[FileConversation]:
    r"""Yield the conversations of a file; of a JSONL file, two lines are in memory at a time.

    Args:
        source: A path, or a stream of bytes.
        on_bad_line: Called with the error of each line of a JSONL file that is not a conversation; the other lines are read. By
            default, the first such line ends the reading.

    Raises:
        UnreadableFile: If it cannot be read, is not a file of conversations, or has a conversation of more than 512 MiB; the
            message names the place and the remedy.

    >>> import io
    >>> stream = io.BytesIO(b'[]\n{"id": "b7", "messages": [{"role": "user", "content": "hi"}]}\n')
    >>> [first, second] = read_conversations(stream)
    >>> second.where, second.id, second.messages
    ('the input, line 2', 'b7', [{'role': 'user', 'content': 'hi'}])
    """
    name = str(source) if isinstance(source, Path) else "the input"
    with unreadable_errors(name), contextlib.ExitStack() as exit_stack:
        stream = exit_stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        yield from _conversations(_lines(stream), name, on_bad_line)


@contextlib.contextmanager
def unreadable_errors(name: str) -> Generator[None]:
    """Raise the errors that reading a file causes as `UnreadableFile`, with the file's name."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableFile(f"{name}: its gzip data is cut short or damaged ({error}); fetch or compress it again") from error
    except (OSError, ValueError) as error:  # pyarrow reports damaged data as one or the other
        if not isinstance(error, OSError) and not type(error).__module__.startswith("pyarrow"):
            raise
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{name}: it cannot be read ({reason}); give a complete file of conversations") from error


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Return the stream's lines, decompressed if they are gzip; a longer line than a conversation may be comes in pieces."""
    reader: Any = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
    if reader.peek(1)[:1] == _GZIP:
        reader = gzip.GzipFile(fileobj=reader)
    return iter(partial(reader.readline, _LARGEST + 1), b"")


def _records(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield each line that is not blank, with the blank lines around it, and the line number at which this text starts."""
    start, held, filled, size = 1, list[bytes](), False, 0
    for number, line in enumerate(lines, 1):
        blank = line.isspace()
        if filled and not blank:
            yield start, b"".join(held)
            start, held, size = number, [], 0
        size += len(line)
        _check_size(size, f"{name}, line {number}")
        held.append(line)
        filled = filled or not blank
    if not filled:
        raise UnreadableFile(f"{name}: it is empty; a file of conversations is {_SHAPES}")
    yield start, b"".join(held)


def _check_size(size: int, where: str) -> None:
    if size > _LARGEST:
        raise UnreadableFile(
            f"{where}: a conversation has at most {_LARGEST // 1_048_576} MiB; give a file with one conversation a line (JSONL)"
        )


def _decoded(text: bytes, name: str, start: int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        at = start + text.count(b"\n", 0, error.start)
        raise UnreadableFile(
            f"{name}, line {at}: it is not UTF-8 text ({error.reason}); a file of conversations is JSON in UTF-8, plain or gzip"
        ) from error


def _conversations(
    lines: Iterable[bytes], name: str, on_bad_line: Callable[[UnreadableFile], object] | None
) -> Iterator[FileConversation]:
    """Yield one conversation for each line that is not blank, or one for all lines."""
    records = _records(lines, name)
    opening = list(islice(records, 2))
    if len(opening) == 1:
        yield _document(opening, records, name)
        return
    tried = [_tried(opening[0], name, 1)]
    if isinstance(tried[0], _NotJson):
        # the second and third line   all lines are
        # both conversations          JSONL: one document never has two complete values one after the other
        # a conversation, not one     one document if it is JSON, otherwise JSONL
        # not one, any                one document
        opening.extend(islice(records, 1))
        tried.extend([_tried(record, name, number) for number, record in enumerate(opening[1:], 2)])
        is_second, *is_third = [isinstance(each, FileConversation) for each in tried[1:]]
        if not (is_second and is_third == [True]):
            try:
                yield _document(opening, records, name)
                return
            except _NotJson:
                if not is_second:
                    raise
    for number, record in enumerate(chain(opening, records), 1):
        each = tried.pop(0) if tried else _tried(record, name, number)
        if isinstance(each, FileConversation):
            yield each
        elif on_bad_line is None:
            raise each
        else:
            on_bad_line(each)


def _document(opening: list[tuple[int, bytes]], records: Iterable[tuple[int, bytes]], name: str) -> FileConversation:
    """Return the conversation of all lines; the records that were read are added to the opening ones."""
    size = sum([len(text) for _, text in opening])
    for start, text in records:
        size += len(text)
        _check_size(size, f"{name}, line {start}")
        opening.append((start, text))
    first = opening[0][0]
    return _read(_decoded(b"".join([text for _, text in opening]), name, first), name, first, 1)


def _tried(record: tuple[int, bytes], name: str, number: int) -> FileConversation | UnreadableFile:
    """Return the conversation in a record, or the reason why it has none."""
    start, line = record
    try:
        text = _decoded(line, name, start)
        blank_before = text.count("\n", 0, skip_space(text, 0))
        return _read(text, f"{name}, line {start + blank_before}", start, number)
    except UnreadableFile as error:
        return error


def _read(text: str, where: str, start: int, count: int) -> FileConversation:
    try:
        found = scan(text)
    except JSONDecodeError as error:
        end = len(text.rstrip())
        is_cut = error.pos >= end or error.msg.startswith("Unterminated string")
        at = end if is_cut else error.pos
        reason = "it ends in the middle" if is_cut else error.msg
        place = f"line {start + text.count(chr(10), 0, at)}, column {at - text.rfind(chr(10), 0, at)}"
        raise _NotJson(f"{where}: it is not JSON ({reason}: {place}); a file of conversations is {_SHAPES}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{where}: it is nested too deeply to be read; write the inner part as a string") from error
    except ValueError as error:
        raise UnreadableFile(f"{where}: it holds a number that is too large to be read; write it as a string") from error
    if len(found.lists) != 1 or "messages" in found.fields:
        raise UnreadableFile(f"{where}: {_why_not(found)}")
    given = found.fields.get("id")
    id = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else str(count)
    return FileConversation(where=where, id=id, message_list=found.lists[0])


def _why_not(found: JsonDocument) -> str:
    fields = found.fields
    if found.kind != "{":
        return f"it is not a conversation; that is {_SHAPES}"
    if found.lists:
        return "it has more than one 'messages'; keep one of them"
    if "messages" in fields:
        return f"its 'messages' is not a list (got {type(fields['messages']).__name__}); put the messages into a list"
    if "role" in fields:
        return "it is a single message; put the messages of a conversation into one list"
    return f"it has no 'messages'; a conversation is {_SHAPES}"
