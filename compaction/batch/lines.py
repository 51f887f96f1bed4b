"""A conversation as a line of JSONL: read fast, and written as it stood but for the messages that changed.

A line is parsed by orjson where that is installed. Only a line of which something changed is read again with the place of each
message, so that what stands next to the messages keeps every byte.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, cast

import attrs

from ..errors import InputError, UnreadableFile
from ..files import Conversation, read_conversations
from .splicing import spliced

__all__ = ["Line", "Oversized", "bounded_lines", "dump", "load", "parse"]

_CHUNK: Final = 1 << 20
_FIELD: Final = b'"messages"'


def _orjson() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None:
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads, orjson.dumps


_fast = _orjson()
load: Final[Callable[[bytes], Any]] = json.loads if _fast is None else _fast[0]
"""JSON from bytes; what it cannot read may still be read by the standard library."""


def dump(value: Any) -> bytes:
    """JSON as bytes, on one line; O(value).

    >>> dump({"a": [1, "é"]}).decode()
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
class Oversized:
    """A line that is too long to be read.

    Args:
        size: Its bytes.
    """

    size: int


def bounded_lines(stream: IO[bytes], most: int) -> Iterator[bytes | Oversized]:
    r"""The lines of a stream, none of which is in memory if it is longer than ``most`` bytes.

    >>> list(bounded_lines(io.BytesIO(b"[]\n" + b"x" * 9 + b"\n{}"), 5))
    [b'[]\n', Oversized(size=10), b'{}']
    """
    while line := stream.readline(most + 1):
        if len(line) <= most or line.endswith(b"\n"):
            yield line
            continue
        size = len(line)
        while rest := stream.readline(_CHUNK):
            size += len(rest)
            if rest.endswith(b"\n"):
                break
        yield Oversized(size)


def parse(text: bytes) -> Any:
    """The JSON value of a line.

    Raises:
        InputError: If there is none.
    """
    try:
        return load(text)
    except ValueError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        _careful(text)  # says what is wrong, and where
        raise InputError("it is no JSON; a line is a conversation in JSON") from None


def _careful(text: bytes) -> Conversation:
    """The conversation with the place of each message, as the other commands read it."""
    try:
        [conversation] = read_conversations(io.BytesIO(text))
    except UnreadableFile as error:
        raise InputError(str(error).removeprefix("the input: ")) from error
    return conversation


@attrs.define
class Line:
    """Holds state: a line, and its messages once they are read.

    Args:
        text: The line, its end included.
        ended: Whether it is written with a line end even if it has none.
    """

    text: bytes
    ended: bool = False
    _values: list[Any] = attrs.field(factory=list[Any], init=False)

    def read(self) -> list[Any]:
        """Its messages; parsed each time it is asked."""
        self._values = self._read()
        return self._values

    def _read(self) -> list[Any]:
        try:
            value: Any = load(self.text)
        except ValueError:
            return _careful(self.text).messages
        if isinstance(value, dict) and self.text.count(_FIELD) == 1:
            value = cast("dict[str, Any]", value).get("messages")
        if isinstance(value, list):
            return value  # pyright: ignore[reportUnknownVariableType]
        return _careful(self.text).messages

    def write(self, messages: list[Any]) -> bytes:
        """The line with other messages."""
        text = self.text
        if not _same(messages, self._values):
            text = spliced(text, self._values, messages, load, dump) or self._rewritten(messages)
        return text + b"\n" if self.ended and not text.endswith(b"\n") else text

    def _rewritten(self, messages: list[Any]) -> bytes:
        """The line with messages some of which may be new, read again with the place of each."""
        found = _careful(self.text)
        if len(found.messages) == len(self._values):
            found = attrs.evolve(found, found=attrs.evolve(found.found, values=self._values))
        return found.with_messages(messages).encode()


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(_is, one, other))


def _is(one: object, other: object) -> bool:
    return one is other
