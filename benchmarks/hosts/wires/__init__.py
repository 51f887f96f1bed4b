"""The wire formats that the server speaks, one a file, and which address belongs to which."""

from __future__ import annotations

from typing import Final

from .anthropic import Anthropic
from .base import Body, Wire
from .bedrock import Bedrock
from .chat import Chat
from .gemini import Gemini
from .responses import Responses

__all__ = ["WIRES", "Body", "Wire", "wire_of"]

WIRES: Final[dict[str, Wire]] = {wire.name: wire for wire in (Chat(), Responses(), Anthropic(), Gemini(), Bedrock())}


def wire_of(path: str) -> Wire | None:
    """Return the format of an address; ``None`` if there is nothing at it."""
    ends = {
        "/chat/completions": "openai-chat",
        "/responses": "openai-responses",
        "/messages": "anthropic",
        ":generateContent": "gemini",
        ":streamGenerateContent": "gemini",
        "/converse": "bedrock",
        "/converse-stream": "bedrock",
    }
    return next((WIRES[name] for end, name in ends.items() if path.endswith(end)), None)
