"""Wire formats: how each provider writes a conversation down, and which sequences it accepts.

One file per format. ``resolve`` turns what a caller passed as ``format=`` into one of them; ``detect`` names the format of a
list; ``convert`` writes a conversation down in another one and says what was lost.
"""

from __future__ import annotations

from .anthropic import Anthropic, anthropic
from .base import MessageFormat, Problem, Repair
from .convert import Conversion, convert
from .detect import detect, fits
from .gemini import Gemini, gemini
from .openai_chat import OpenAIChat, openai_chat
from .openai_responses import OpenAIResponses, openai_responses
from .resolve import resolve

__all__ = [
    "Anthropic",
    "Conversion",
    "Gemini",
    "MessageFormat",
    "OpenAIChat",
    "OpenAIResponses",
    "Problem",
    "Repair",
    "anthropic",
    "convert",
    "detect",
    "fits",
    "gemini",
    "openai_chat",
    "openai_responses",
    "resolve",
]
