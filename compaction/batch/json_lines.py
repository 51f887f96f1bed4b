"""Conversations as lines of JSONL: read fast, and written so that unchanged parts keep every byte.

Lines are parsed by orjson if it is installed. Only a line that changed is read again with the position of each message, so that
everything beside the messages stays as it was.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, cast

import attrs

from ..errors import InputError, UnreadableFile
from ..files import FileConversation, read_conversations, replace_list

_CHUNK: Final = 1 << 20
_FIELD: Final = b'"messages"'


def _orjson() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None:
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads, orjson.dumps


_fast = _orjson()
load_json: Final[Callable[[bytes], Any]] = json.loads if _fast is None else _fast[0]
"""Parses JSON from bytes; the standard library may read what orjson rejects."""


def dump_json(value: Any) -> bytes:
    """Return a value as JSON bytes, on one line; O(value).

    >>> dump_json({"a": [1, "é"]}).decode()
    '{"a":[1,"é"]}'
    """
    if _fast is not None:
        try:
            return _fast[1](value)
        except TypeError:
            pass
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
    """Return the JSON value of a line.

    Raises:
        InputError: If it is not JSON.
    """
    try:
        return load_json(text)
    except ValueError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        _with_positions(text)  # raises an error that says what is wrong, and where
        raise InputError("it is not JSON; a line is a conversation in JSON") from None


def _with_positions(text: bytes) -> FileConversation:
    """Read a line with the position of each message, as the other commands do."""
    try:
        [conversation] = read_conversations(io.BytesIO(text))
    except UnreadableFile as error:
        raise InputError(str(error).removeprefix("the input: ")) from error
    return conversation


@attrs.define
class JsonLine:
    """Holds state: a line, and its messages once they are read.

    Args:
        text: The line, with its line end.
        ended: Whether it is written with a line end even if it had none.
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
        """Return the line with other messages.

        Raises:
            InputError: If the line cannot be read with the position of each message.
        """
        try:
            text = replace_list(self.text, self._values, messages)
        except (ValueError, RecursionError):
            _with_positions(self.text)  # raises an error that says what is wrong
            raise
        return text + b"\n" if self.ended and not text.endswith(b"\n") else text
