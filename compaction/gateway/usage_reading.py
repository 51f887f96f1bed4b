"""Usage read from the bytes of an answer while they are streamed to the client."""

from __future__ import annotations

from typing import Final

from ..formats import StreamedUsage, is_event_stream
from ..tokens import Usage
from .bodies import decoder_of

_LONGEST_BODY: Final = 16_777_216


class UsageReader:
    r"""Reads the usage of one answer from its chunks. Holds state: a decoder, and the body so far unless it is a stream.

    Server-sent events are read line by line. Any other body is parsed once, at its end, unless it exceeds 16 MiB.

    Args:
        content_type: The answer's content type.
        encoding: The answer's content encoding.

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
        elif len(self._body) <= _LONGEST_BODY:
            self._body += data

    def read(self) -> Usage | None:
        """Return the reported usage, or ``None``. Call it at the end of the answer."""
        if self._body and len(self._body) <= _LONGEST_BODY:
            self._usage.add_json(bytes(self._body))
        return self._usage.read()
