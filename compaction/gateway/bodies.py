"""Bodies: requests are decompressed, parsed, and written with other messages; the usage in answers is read."""

from __future__ import annotations

import contextlib
import importlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import attrs
import msgspec

from ..files import replace_list
from ..formats import StreamedUsage, fields_of, is_event_stream, items_of
from ..tokens import Usage


class Unreadable(Exception):
    """The gateway cannot read a body as a request; the first argument is the reason in a few words."""


def _zstandard() -> Callable[[], Any] | None:
    """Return a factory of zstd decoders; ``None`` if neither Python nor the package ``zstandard`` has one."""
    with contextlib.suppress(ImportError):
        return cast("Callable[[], Any]", importlib.import_module("compression.zstd").ZstdDecompressor)
    with contextlib.suppress(ImportError):
        package: Any = importlib.import_module("zstandard")
        return lambda: package.ZstdDecompressor().decompressobj()
    return None


_DECODERS: Final[dict[str, Callable[[], Any]]] = {"gzip": lambda: zlib.decompressobj(31), "deflate": zlib.decompressobj}
if (_ZSTANDARD := _zstandard()) is not None:
    _DECODERS["zstd"] = _ZSTANDARD
READABLE: Final = ", ".join((*_DECODERS, "identity"))
"""The content encodings that the gateway can read; zstd if Python or ``zstandard`` supports it."""
_CHUNK: Final = 65_536
_LONGEST_ANSWER: Final = 16_777_216


def decoder_of(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that decodes a body piece by piece; ``None`` if the encoding is unknown."""
    name = encoding.strip().lower().removeprefix("x-")
    if name in ("", "identity"):
        return lambda data: data
    made = _DECODERS.get(name)
    return None if made is None else cast("Callable[[bytes], bytes]", made().decompress)


def decoded(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a decompressed body; raise `Unreadable` if that cannot be done, or it would exceed the limit."""
    decode = decoder_of(encoding)
    if decode is None:
        raise Unreadable("content-encoding")
    if encoding.strip().lower() in ("", "identity"):
        return body
    found = bytearray()
    for start in range(0, len(body), _CHUNK):
        try:
            found += decode(body[start : start + _CHUNK])
        except Exception as error:  # each library raises an error type of its own
            raise Unreadable("damaged content-encoding") from error
        if len(found) > limit:
            raise Unreadable("too large")
    return bytes(found)


@attrs.frozen(eq=False)
class ModelRequest:
    """A parsed request to a model: its JSON text, its fields, the key of its messages, and these."""

    text: bytes = attrs.field(repr=False)
    fields: Mapping[str, Any] = attrs.field(repr=False)
    key: str
    messages: list[Any] = attrs.field(repr=False)

    def with_messages(self, messages: Sequence[Any]) -> bytes:
        """Return the text with other messages. Messages that are the same objects, and everything else, keep their bytes."""
        return replace_list(self.text, self.messages, messages, self.key)


def read_request(text: bytes, key: str) -> ModelRequest:
    """Read the JSON text of a request; raise `Unreadable` if it is not an object with a list of messages."""
    try:
        try:
            read: Any = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):  # a few texts that the standard library takes, such as NaN
            read = json.loads(text)
        fields = fields_of(read)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
    if fields is None:
        raise Unreadable("not an object")
    messages = items_of(fields.get(key))
    if messages is None:
        raise Unreadable(f"no list of {key}")
    return ModelRequest(text, fields, key, list(messages))


class UsageReader:
    r"""Reads the usage of one answer from its chunks. Holds state: a decoder, and the body so far unless it is a stream.

    Server-sent events are read line by line. Any other body is parsed once, at its end, unless it exceeds 16 MiB.

    >>> reader = UsageReader("text/event-stream", "identity")
    >>> for piece in (b'data: {"usage": {"prompt_tokens": 9, "comp', b'letion_tokens": 2}}', b"\n\n"):
    ...     reader.feed(piece)
    >>> reader.read().prompt_tokens
    9
    """

    def __init__(self, content_type: str, encoding: str) -> None:
        self._decode = decoder_of(encoding)
        self._is_stream = is_event_stream(content_type)
        self._usage = StreamedUsage()
        self._body = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes of the answer. Bytes that cannot be decoded are skipped; no exception is raised."""
        if self._decode is None:
            return
        try:
            data = self._decode(chunk)
        except Exception:  # each compression library raises an error type of its own, and the answer is streamed in any case
            self._decode = None
            return
        if self._is_stream:
            self._usage.add(data)
        elif len(self._body) <= _LONGEST_ANSWER:
            self._body += data
        else:
            self._decode = None  # too long to be parsed, so the rest is not decoded

    def read(self) -> Usage | None:
        """Return the reported usage, or ``None``. Call it at the end of the answer."""
        if self._body and len(self._body) <= _LONGEST_ANSWER:
            self._usage.add_json(bytes(self._body))
        return self._usage.read()
