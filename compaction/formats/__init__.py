"""Wire formats: how each provider writes a conversation, and which sequences of messages it accepts.

Each format has a folder. `detect` finds the format of a list, `validate` and `repair` judge and fix it, `convert` writes a
conversation in another format and says what was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .anthropic import Anthropic, anthropic
    from .base import MessageFormat, Problem, Repair, Side
    from .base import Rule as Rule
    from .bedrock import Bedrock, bedrock
    from .conversion import Conversion, convert
    from .detect import detect, fits, resolve
    from .gemini import Gemini, gemini
    from .openai_chat import OpenAIChat, openai_chat
    from .openai_responses import OpenAIResponses, openai_responses
    from .registry import FORMATS as FORMATS
    from .validity import as_list as as_list
    from .validity import repair, validate
    from .wire import fields_of as fields_of
    from .wire import items_of as items_of

__all__ = [
    "Anthropic",
    "Bedrock",
    "Conversion",
    "Gemini",
    "MessageFormat",
    "OpenAIChat",
    "OpenAIResponses",
    "Problem",
    "Repair",
    "Side",
    "anthropic",
    "bedrock",
    "convert",
    "detect",
    "fits",
    "gemini",
    "openai_chat",
    "openai_responses",
    "repair",
    "resolve",
    "validate",
]

export_lazily(
    __name__,
    {
        "anthropic": "Anthropic anthropic",
        "base": "MessageFormat Problem Repair Side Rule",
        "bedrock": "Bedrock bedrock",
        "conversion": "Conversion convert",
        "detect": "detect fits resolve",
        "gemini": "Gemini gemini",
        "openai_chat": "OpenAIChat openai_chat",
        "openai_responses": "OpenAIResponses openai_responses",
        "registry": "FORMATS",
        "validity": "as_list repair validate",
        "wire": "fields_of items_of",
    },
)
