"""Marks by which a message this package wrote is recognized later, and the text that a collapsed tool call leaves.

Wire formats have no room for private fields, so the mark is the first line of the text::

    [compaction 5f1c09ab by Summarization round 2]

The eight digits are a digest of the rest. A text that only looks like a mark, or that was edited since, does not match its
digest and is read as an ordinary message: it may be summarized again, but it is never mistaken for one of ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import attrs

from ..errors import ConfigurationError
from ..messages import Message, TextPart

__all__ = ["COLLAPSED_BY", "MARK_START", "NO_CALL", "Mark", "collapsed_text", "marked", "read_mark", "tools_of"]

COLLAPSED_BY: Final = "ToolResult"
"""The strategy whose messages stand for a collapsed tool call and are not summaries of the conversation."""

MARK_START: Final = "[compaction "
"""The start of every mark."""

NO_CALL: Final = "result"
"""The start of a line for a result without a call."""

_HEAD: Final = "[Tool results]"
_LINE: Final = re.compile(r"\[compaction ([0-9a-f]{8}) by ([A-Za-z_][\w.-]{0,63}) round ([1-9]\d{0,5})\]\n")


@attrs.frozen
class Mark:
    """The mark of a message, and the text after it.

    Args:
        id: Eight hexadecimal digits, a digest of the other three.
        by: The name of the strategy that wrote it, which alone updates it.
        round: Number of the version, from 1.
        body: The text after the mark.
    """

    id: str
    by: str
    round: int
    body: str


def marked(body: str, *, by: str, round: int = 1) -> str:
    r"""Return the text with its mark in front.

    Args:
        body: The text of the message.
        by: The strategy's name: a letter or underscore, then up to 63 word characters, dots or dashes.
        round: Number of the version, from 1 to 999,999.

    Raises:
        ConfigurationError: If the name or the number is not valid.

    >>> marked("The user wants tea.", by="Summarization")
    '[compaction 3a70adca by Summarization round 1]\nThe user wants tea.'
    """
    line = f"{MARK_START}{_digest(body, by, round)} by {by} round {round}]\n"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"marked(by={by!r}, round={round!r}): a mark with these would not be recognized; see its arguments"
        )
    return line + body


def read_mark(message: Message) -> Mark | None:
    """Return the mark of a message this package wrote, else ``None``; O(1) for a message that does not start like one."""
    for part in message.parts:
        if isinstance(part, TextPart):
            return _parse(part.text) if part.text.startswith(MARK_START) else None
    return None


def _parse(text: str) -> Mark | None:
    found = _LINE.match(text)
    if found is None:
        return None
    body = text[found.end() :]
    mark = Mark(found[1], found[2], int(found[3]), body)
    return mark if _digest(body, mark.by, mark.round) == mark.id else None


def _digest(body: str, by: str, round: int) -> str:
    content = f"{by}\n{round}\n{body.strip()}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(content, digest_size=4).hexdigest()


def collapsed_text(said: Iterable[str], lines: Iterable[str]) -> str:
    """Return the text that stands for a collapsed tool call.

    Args:
        said: The assistant's texts beside the calls.
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
    """Return the tool names in such a text, in order; O(text). A name is cut at a bracket or a line break."""
    _, found, lines = text.rpartition(f"{_HEAD}\n")
    calls = [line.partition(" -> ")[0] for line in lines.split("\n")] if found else []
    return tuple([call.partition("(")[0] for call in calls if "(" in call])
