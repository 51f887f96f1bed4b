"""The wire formats of the server, one a file, and the address of each."""

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
    """Return the format of an address; ``None`` for an unknown one."""
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
