"""The wire formats of this package, by name. A new format is one folder and one line here."""

from __future__ import annotations

from typing import Final

from ..errors import UnknownFormat
from .anthropic import anthropic
from .base import MessageFormat
from .bedrock import bedrock
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses

FORMATS: Final[tuple[MessageFormat, ...]] = (
    openai_chat,
    openai_responses,
    anthropic,
    gemini,
    bedrock,
)


def format_named(name: str) -> MessageFormat:
    """Return the format of that name.

    Raises:
        UnknownFormat: If no format has it.
    """
    known = {format.name: format for format in FORMATS}
    if name in known:
        return known[name]
    names = ", ".join(sorted(known))
    text = f"format={name!r}: no such wire format; use one of {names}, or a MessageFormat"
    raise UnknownFormat(text, argument="format")
