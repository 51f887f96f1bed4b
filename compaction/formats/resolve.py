"""What a caller means by ``format=``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..errors import UnknownFormat
from .anthropic import anthropic
from .base import MessageFormat
from .detect import read_as
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses

__all__ = ["resolve"]

_BY_NAME: Final[dict[str, MessageFormat]] = {
    format.name: format for format in (openai_chat, openai_responses, anthropic, gemini)
}


def resolve(format: str | MessageFormat | None = None, messages: Sequence[Any] = ()) -> MessageFormat:
    """The wire format a caller means.

    Args:
        format: A format's name, a format, or ``None`` to look at the messages: what does not show another format is read as
            OpenAI chat completions.
        messages: The conversation.

    Raises:
        UnknownFormat: If no format has that name, or the messages are of different formats.

    >>> resolve("openai-chat")
    openai_chat
    >>> resolve(None, [{"role": "model", "parts": [{"text": "hi"}]}])
    gemini
    """
    if format is None:
        return read_as(messages)
    if isinstance(format, MessageFormat):
        return format
    if format in _BY_NAME:
        return _BY_NAME[format]
    raise UnknownFormat(f"format={format!r}: no such wire format; use one of {', '.join(sorted(_BY_NAME))}, or a MessageFormat")
