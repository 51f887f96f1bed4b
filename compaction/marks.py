"""How a message this package wrote is recognized later, by another process, in a list that anyone may have stored.

Wire formats have no room for private fields, so the mark is the first line of the text::

    [compaction 5f1c09ab by Summarization round 2]

The eight digits are a digest of the rest. A text that only looks like a mark, or that somebody edited since, does not match its
digest and is read as an ordinary message: it may then be summarized again, but it is never mistaken for ours.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import attrs

from .errors import ConfigurationError
from .messages import Message, Text

__all__ = ["COLLAPSED_BY", "Mark", "marked", "read_mark"]

COLLAPSED_BY: Final = "ToolResult"
"""Who writes the line that a collapsed tool call leaves: it stands for the call, it is no summary of the conversation."""

_START: Final = "[compaction "
_LINE: Final = re.compile(r"\[compaction ([0-9a-f]{8}) by ([A-Za-z_][\w.-]{0,63}) round ([1-9]\d{0,5})\]\n")


@attrs.frozen
class Mark:
    """Who wrote a message, in which round, and its digest.

    Args:
        id: Eight hexadecimal digits, a digest of the other two and the text.
        by: The name of the strategy that wrote it, which alone updates it.
        round: How many times it was written, from 1.
        body: The text after the mark.
    """

    id: str
    by: str
    round: int
    body: str


def marked(body: str, *, by: str, round: int = 1) -> str:
    r"""The text with its mark in front.

    Args:
        body: What the message says.
        by: The strategy's name: a letter or underscore, then up to 63 word characters, dots or dashes.
        round: How many times this summary was written, from 1 to 999,999.

    Raises:
        ConfigurationError: If the name or the round is of another shape.

    >>> marked("The user wants tea.", by="Summarization")
    '[compaction 3a70adca by Summarization round 1]\nThe user wants tea.'
    """
    line = f"{_START}{_digest(body, by, round)} by {by} round {round}]\n"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"marked(by={by!r}, round={round!r}): a mark with these would not be recognized; see its arguments"
        )
    return line + body


def read_mark(message: Message) -> Mark | None:
    """The mark of a message this package wrote, else ``None``; O(1) for any message that does not start like one."""
    for part in message.parts:
        if isinstance(part, Text):
            return _parse(part.text) if part.text.startswith(_START) else None
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
