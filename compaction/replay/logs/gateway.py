"""Recordings of ``compaction serve --record``: each line holds the messages that a request added to its conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ...formats import fields_of, items_of, resolve
from ..recordings import Recording


@attrs.define
class _Recorded:
    """A conversation as far as it was read. Holds state: its messages and when each was sent."""

    format: str
    messages: list[Any] = attrs.field(factory=list[Any])
    times: list[float | None] = attrs.field(factory=list["float | None"])


def is_gateway_log(records: Sequence[Any]) -> bool:
    """Whether the first lines of a file are those of a gateway's recording."""
    first = fields_of(records[0]) if records else None
    return first is not None and "gateway" in first and "conversation" in first


def read_gateway_log(records: Sequence[Any], where: str) -> Iterator[Recording]:
    """Yield the conversations of a recording, each as its last request had it.

    Args:
        records: The lines, as JSON values.
        where: The file.
    """
    found: dict[str, _Recorded] = {}
    for record in records:
        line = fields_of(record) or {}
        messages, keep = items_of(line.get("messages")), line.get("keep")
        if messages is None or not isinstance(keep, int):
            continue
        recorded = found.setdefault(str(line.get("conversation")), _Recorded(str(line.get("format"))))
        recorded.messages[keep:] = messages
        recorded.times[keep:] = [line.get("at")] * len(messages)
    for name, recorded in found.items():
        format = resolve(recorded.format)
        yield Recording(id=name, messages=recorded.messages, times=recorded.times, format=format, where=where)
