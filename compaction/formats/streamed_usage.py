"""The usage that a streamed reply reports in any wire format, read from its events or from the bytes of the stream."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

from ..json_data import member_of
from ..tokens import Usage
from .wire import fields_of, items_of

_HOLDERS: Final = ("message", "response")  # Anthropic's first event, and the last one of Responses
_LONGEST_LINE: Final = 4_194_304  # bytes; a longer one is skipped
_NAMES: Final = ("usage", "usageMetadata", "usage_metadata")  # the last two are Gemini's


class StreamedUsage:
    """Collects the usage in the events of one stream. Holds state: the figures so far.

    Chat completions report usage once, in the last chunk, and Responses in the event that completes the response. Anthropic
    reports it in two events, where the second may repeat or correct the figures of the first. Gemini reports it in every event.

    >>> usage = StreamedUsage()
    >>> usage.add({"type": "message_start", "message": {"usage": {"input_tokens": 900, "output_tokens": 1}}})
    >>> usage.add({"type": "message_delta", "usage": {"output_tokens": 40}})
    >>> usage.read()
    Usage(prompt_tokens=900, completion_tokens=40, cached_tokens=0, cache_write_tokens=0, reasoning_tokens=0)
    """

    def __init__(self) -> None:
        self._figures: dict[str, Any] = {}
        self._line = bytearray()

    def add(self, event: Any) -> None:
        """Take an event: a mapping, a client library's object, or bytes or text of server-sent events, cut anywhere."""
        if isinstance(event, str | bytes):
            self._add_bytes(event.encode() if isinstance(event, str) else event)
            return
        holders = (event, *(member_of(event, name) for name in _HOLDERS))
        for usage in (member_of(each, name) for each in holders for name in _NAMES):
            for name, value in (fields_of(usage) or {}).items():
                if value or name not in self._figures:
                    self._figures[name] = value

    def _add_bytes(self, data: bytes) -> None:
        for number, piece in enumerate(data.split(b"\n")):
            if number:
                self._end_line()
            if len(self._line) <= _LONGEST_LINE:
                self._line += piece

    def _end_line(self) -> None:
        line, self._line = bytes(self._line), bytearray()
        if line.startswith(b"data:") and b'"usage' in line and len(line) <= _LONGEST_LINE:
            self.add_json(line.removeprefix(b"data:"))

    def add_json(self, text: bytes) -> None:
        """Take the JSON text of an event or of a whole reply, or of a list of them; other texts are ignored."""
        with contextlib.suppress(ValueError, RecursionError):
            read = json.loads(text)
            for event in items_of(read) or (read,):
                if fields_of(event) is not None:
                    self.add(event)

    def read(self) -> Usage | None:
        """Return the usage at the end of the stream; ``None`` if nothing, or nothing about the request, was reported."""
        self._end_line()
        return Usage.read_or_none(self._figures)
