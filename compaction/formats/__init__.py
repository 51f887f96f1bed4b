"""Wire formats: how each provider writes a conversation, and which sequences of messages it accepts.

Each format has a folder. `detect` finds the format of a list, `validate` and `repair` judge and fix it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..json_data import same as same
from ..lazy import export_lazily

if TYPE_CHECKING:
    from .answers import StreamedUsage as StreamedUsage
    from .anthropic import Anthropic, anthropic
    from .apis import ANTHROPIC_API as ANTHROPIC_API
    from .apis import BEDROCK_API as BEDROCK_API
    from .apis import CHAT_API as CHAT_API
    from .apis import GEMINI_API as GEMINI_API
    from .apis import RESPONSES_API as RESPONSES_API
    from .apis import ModelAPI as ModelAPI
    from .apis import is_event_stream as is_event_stream
    from .apis import may_choose_tools as may_choose_tools
    from .apis import tool_names as tool_names
    from .base import MessageFormat, Problem, Repair, Side
    from .bedrock import Bedrock, bedrock
    from .blocks import MOST_BREAKPOINTS as MOST_BREAKPOINTS
    from .breakpoints import can_end_in_breakpoint as can_end_in_breakpoint
    from .breakpoints import for_comparison as for_comparison
    from .breakpoints import has_breakpoints as has_breakpoints
    from .breakpoints import keep_breakpoints as keep_breakpoints
    from .breakpoints import with_breakpoint as with_breakpoint
    from .breakpoints import without_breakpoints as without_breakpoints
    from .detect import FORMATS as FORMATS
    from .detect import detect, fits, resolve
    from .gemini import Gemini, gemini
    from .openai_chat import OpenAIChat, openai_chat
    from .openai_responses import OpenAIResponses, openai_responses
    from .validity import as_list as as_list
    from .validity import repair, validate
    from .wire import arguments_text as arguments_text
    from .wire import fields_of as fields_of
    from .wire import items_of as items_of
    from .wire import json_object as json_object
    from .wire import json_text as json_text
    from .wire import media_kind as media_kind
    from .wire import result_part as result_part
    from .wire import string as string
    from .writing import arguments_object as arguments_object
    from .writing import unwritable as unwritable

__all__ = [
    "Anthropic",
    "Bedrock",
    "Gemini",
    "MessageFormat",
    "OpenAIChat",
    "OpenAIResponses",
    "Problem",
    "Repair",
    "Side",
    "anthropic",
    "bedrock",
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
        "answers": "StreamedUsage",
        "anthropic": "Anthropic anthropic",
        "apis": (
            "ANTHROPIC_API BEDROCK_API CHAT_API GEMINI_API RESPONSES_API ModelAPI is_event_stream may_choose_tools tool_names"
        ),
        "base": "MessageFormat Problem Repair Side",
        "bedrock": "Bedrock bedrock",
        "blocks": "MOST_BREAKPOINTS",
        "breakpoints": (
            "can_end_in_breakpoint for_comparison has_breakpoints keep_breakpoints with_breakpoint without_breakpoints"
        ),
        "detect": "FORMATS detect fits resolve",
        "gemini": "Gemini gemini",
        "openai_chat": "OpenAIChat openai_chat",
        "openai_responses": "OpenAIResponses openai_responses",
        "validity": "as_list repair validate",
        "wire": "arguments_text fields_of items_of json_object json_text media_kind result_part string",
        "writing": "arguments_object unwritable",
    },
)
