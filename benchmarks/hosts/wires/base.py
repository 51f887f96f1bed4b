"""The base of the server's wire formats, and the parts that they share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from ..script import Asked, Reply

Body: TypeAlias = dict[str, Any]


class Wire(Protocol):
    """A format: it reads requests, writes replies, and words refusals like the provider."""

    name: str
    """The format's name."""
    stream_type: str
    """The content type of a stream."""

    def read(self, path: str, body: Body) -> Asked:
        """Read a request."""
        ...

    def write(self, asked: Asked, reply: Reply) -> Body:
        """Write a reply."""
        ...

    def stream(self, asked: Asked, reply: Reply) -> bytes:
        """Write a reply in pieces."""
        ...

    def too_long(self, tokens: int, window: int) -> Body:
        """Return the body of the error for a request that is longer than the window; the status is 400."""
        ...

    def invalid(self, why: str) -> Body:
        """Return the body of the error for a request that breaks a rule; the status is 400."""
        ...


def characters(value: Any) -> int:
    """Return the number of characters of all texts in a value, without field names."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(characters, value.values()))
    if isinstance(value, list):
        return sum(map(characters, value))
    return 0


def item_of(arguments: Any) -> str:
    """Return the ``item`` of a call's arguments, a mapping or JSON."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return ""
    return str(arguments.get("item", "")) if isinstance(arguments, Mapping) else ""


def pieces(text: str, size: int = 120) -> list[str]:
    """Return a text in the pieces of a stream."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def server_events(events: Iterable[Mapping[str, Any]], *, named: bool) -> bytes:
    """Return events as a text stream; with ``named``, each with its type as its name."""
    lines = ((f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()
