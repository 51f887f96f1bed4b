"""Conversion of a conversation from one wire format to another: its words, calls and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compaction.formats import MessageFormat, resolve
from compaction.testing.written import write_messages


def convert(messages: Iterable[Any], *, to: MessageFormat | str, format: MessageFormat | str | None = None) -> list[Any]:
    """Return a conversation in another wire format; the same list if it is in that format already."""
    given, target = list(messages), resolve(to)
    source = resolve(format, given)
    return given if source is target else write_messages([source.read(raw, place) for place, raw in enumerate(given)], target)
