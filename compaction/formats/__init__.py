"""Wire formats: how each provider writes a conversation down, and which sequences it accepts.

One file per format. ``resolve`` turns what a caller passed as ``format=`` into one of them.
"""

from __future__ import annotations

from typing import Final

from ..errors import UnknownFormat
from .base import MessageFormat, Problem, Repair
from .openai_chat import OpenAIChat, openai_chat

__all__ = ["MessageFormat", "OpenAIChat", "Problem", "Repair", "openai_chat", "resolve"]

_BY_NAME: Final[dict[str, MessageFormat]] = {openai_chat.name: openai_chat}


def resolve(format: str | MessageFormat | None = None) -> MessageFormat:
    """The wire format a caller means.

    Args:
        format: A format's name, a format, or ``None`` for OpenAI chat completions.

    Raises:
        UnknownFormat: If no format has that name.

    >>> resolve("openai-chat")
    openai_chat
    """
    if format is None:
        return openai_chat
    if isinstance(format, MessageFormat):
        return format
    if format in _BY_NAME:
        return _BY_NAME[format]
    raise UnknownFormat(f"format={format!r}: no such wire format; use one of {', '.join(sorted(_BY_NAME))}, or a MessageFormat")
