"""Conversations as lines of JSONL: read fast, and written so that unchanged parts keep every byte.

orjson parses the lines if it is installed. Only a line that changed is read again, with the position of each message, so that
the text around the messages stays the same.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, Any, Final, cast

import attrs

from ..errors import InputError, UnreadableFile
from ..files import FileConversation, read_conversations, replace_list

_CHUNK: Final = 1 << 20
_FIELD: Final = b'"messages"'


_orjson: Any = None
with contextlib.suppress(ImportError):
    _orjson = import_module("orjson")

load_json: Final[Callable[[bytes], Any]] = (lambda text: json.loads(text.decode())) if _orjson is None else _orjson.loads
"""Parses JSON in UTF-8; the standard library reads some texts that orjson rejects."""


def dump_json(value: Any) -> bytes:
    """Return a value as JSON bytes, on one line; O(value).

    >>> dump_json({"a": [1, "é"]}).decode()
    '{"a":[1,"é"]}'
    """
    if _orjson is not None:
        with contextlib.suppress(TypeError):
            return bytes(_orjson.dumps(value))
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


@attrs.frozen
class OversizedLine:
    """A line that is too long to be read.

    Args:
        size: Its size in bytes.
    """

    size: int


def bounded_lines(stream: IO[bytes], max_bytes: int) -> Iterator[bytes | OversizedLine]:
    r"""Yield the lines of a stream without loading those that are longer than ``max_bytes``.

    >>> list(bounded_lines(io.BytesIO(b"[]\n" + b"x" * 9 + b"\n{}"), 5))
    [b'[]\n', OversizedLine(size=10), b'{}']
    """
    while line := stream.readline(max_bytes + 1):
        if len(line) <= max_bytes or line.endswith(b"\n"):
            yield line
            continue
        size = len(line)
        while rest := stream.readline(_CHUNK):
            size += len(rest)
            if rest.endswith(b"\n"):
                break
        yield OversizedLine(size)


def parse_json(text: bytes) -> Any:
    """Return the JSON value of a line."""
    with contextlib.suppress(ValueError):
        return load_json(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        _with_positions(text)  # raises an error with the reason and the position
        raise InputError("it is not JSON; a line is a conversation in JSON") from None


def _with_positions(text: bytes) -> FileConversation:
    """Read a line with the position of each message, as `read_conversations` does."""
    try:
        [conversation] = read_conversations(io.BytesIO(text))
    except UnreadableFile as error:
        raise InputError(str(error).removeprefix("the input: ")) from error
    return conversation


@attrs.define
class JsonLine:
    """Holds state: a line, and its messages after `read`.

    Args:
        text: The line, with its line end.
        ended: Whether a line end is added if it has none.
    """

    text: bytes
    ended: bool = False
    _values: list[Any] = attrs.field(factory=list[Any], init=False)

    def read(self) -> list[Any]:
        """Return its messages; each call parses the line."""
        self._values = self._read()
        return self._values

    def _read(self) -> list[Any]:
        try:
            value: Any = load_json(self.text)
        except ValueError:
            return _with_positions(self.text).messages
        if isinstance(value, dict) and self.text.count(_FIELD) == 1:
            value = cast("dict[str, Any]", value).get("messages")
        if isinstance(value, list):
            return value  # pyright: ignore[reportUnknownVariableType]
        return _with_positions(self.text).messages

    def write(self, messages: list[Any]) -> bytes:
        """Return the line with other messages."""
        try:
            text = replace_list(self.text, self._values, messages)
        except (ValueError, RecursionError):
            _with_positions(self.text)  # raises an error with the reason
            raise
        return text + b"\n" if self.ended and not text.endswith(b"\n") else text
