"""Usage read from the bytes of an answer while they are streamed to the client."""

from __future__ import annotations

import json
from typing import Final

from ..formats import fields_of, items_of
from ..integrations import StreamedUsage
from ..tokens import Usage
from .bodies import decoder_of

_LONGEST_LINE: Final = 4_194_304
_LONGEST_BODY: Final = 16_777_216
_SIGNS: Final = (b'"usage"', b'"usageMetadata"', b'"usage_metadata"')


class UsageReader:
    r"""Reads the usage of one answer from its chunks. Holds state: an unfinished line, or the body so far.

    A stream of server-sent events is read line by line; only lines that mention usage are parsed. Any other body is parsed
    once, at its end. Lines above 4 MiB and bodies above 16 MiB are skipped.

    Args:
        content_type: The answer's content type.
        encoding: The answer's content encoding.

    >>> reader = UsageReader("text/event-stream")
    >>> for piece in (b'data: {"usage": {"prompt_tokens": 9, "comp', b'letion_tokens": 2}}', b"\n\n"):
    ...     reader.feed(piece)
    >>> reader.read().prompt_tokens
    9
    """

    def __init__(self, content_type: str, encoding: str = "") -> None:
        self._decode = decoder_of(encoding)
        self._is_stream = content_type.strip().lower().startswith("text/event-stream")
        self._usage = StreamedUsage()
        self._held: list[bytes] = []
        self._size = 0
        self._skips = False

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes of the answer. Bytes that cannot be decoded are skipped; no exception is raised."""
        if self._decode is None:
            return
        try:
            data = self._decode(chunk)
            if self._is_stream:
                self._feed_lines(data)
            else:
                self._hold(data, _LONGEST_BODY)
        except Exception:  # each compression library raises an error type of its own, and the answer is streamed in any case
            self._decode = None

    def _feed_lines(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._hold(line, _LONGEST_LINE)
            self._end_line()
        self._hold(rest, _LONGEST_LINE)

    def _hold(self, data: bytes, most: int) -> None:
        self._size += len(data)
        if self._size > most:
            self._held, self._skips = [], True
        if not self._skips:
            self._held.append(data)

    def _end_line(self) -> None:
        line = b"".join(self._held)
        self._held, self._size, self._skips = [], 0, False
        if line.startswith(b"data:") and any(sign in line for sign in _SIGNS):
            self._take(line[5:])

    def _take(self, text: bytes) -> None:
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return
        for event in items_of(value) or (value,):
            if fields_of(event) is not None:
                self._usage.add(event)

    def read(self) -> Usage | None:
        """Return the reported usage, or ``None``. Call it at the end of the answer."""
        if self._is_stream:
            self._end_line()
        else:
            self._take(b"".join(self._held))
        return self._usage.read()
