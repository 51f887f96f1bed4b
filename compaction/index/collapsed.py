"""Collapsed tool calls: the text of the message in place of a tool call and its results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

COLLAPSED_BY: Final = "ToolResult"
"""The strategy named in the mark of a collapsed tool call. Such a message is not a summary of the conversation."""

NO_CALL: Final = "result"
"""The text in place of the tool name, for a result without a call."""

_HEAD: Final = "[Tool results]"


def collapsed_text(said: Iterable[str], lines: Iterable[str]) -> str:
    """Return the text that replaces a collapsed tool call.

    Args:
        said: The assistant's texts with the calls.
        lines: A line for each call, ``name(arguments) -> outcome``, without line breaks.

    >>> text = collapsed_text(["I look it up."], ["read_file(path=a.py) -> import os"])
    >>> print(text)
    I look it up.
    [Tool results]
    read_file(path=a.py) -> import os
    >>> tools_of(text)
    ('read_file',)
    """
    return "\n".join([*said, _HEAD, *lines])


def tools_of(text: str) -> tuple[str, ...]:
    """Return the tool names in a text of `collapsed_text`, in order; O(text). A name ends at a bracket or a line break."""
    _, found, lines = text.rpartition(f"{_HEAD}\n")
    calls = [line.partition(" -> ")[0] for line in lines.split("\n")] if found else []
    return tuple([call.partition("(")[0] for call in calls if "(" in call])
