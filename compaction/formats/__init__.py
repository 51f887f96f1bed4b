"""Wire formats: how each provider writes a conversation, and which sequences of messages it accepts.

Each format has a module. `detect` finds the format of a list, `validate` and `repair` judge and fix it.
"""

from __future__ import annotations

from ..json_data import same as same
from .anthropic import Anthropic, anthropic
from .anthropic import holds_history as holds_history
from .apis import ANTHROPIC_API as ANTHROPIC_API
from .apis import BEDROCK_API as BEDROCK_API
from .apis import CHAT_API as CHAT_API
from .apis import GEMINI_API as GEMINI_API
from .apis import RESPONSES_API as RESPONSES_API
from .apis import ModelAPI as ModelAPI
from .apis import StreamedUsage as StreamedUsage
from .apis import is_event_stream as is_event_stream
from .apis import may_choose_tools as may_choose_tools
from .apis import tool_names as tool_names
from .base import MessageFormat, Problem, Repair, Side
from .bedrock import Bedrock, bedrock
from .breakpoints import CacheTTL as CacheTTL
from .breakpoints import apply_cache_control as apply_cache_control
from .breakpoints import for_comparison as for_comparison
from .breakpoints import keep_breakpoints as keep_breakpoints
from .breakpoints import should_cache as should_cache
from .detect import FORMATS as FORMATS
from .detect import as_list as as_list
from .detect import detect, fits, repair, resolve, validate
from .gemini import Gemini, gemini
from .openai_chat import OpenAIChat, openai_chat
from .openai_responses import OpenAIResponses, openai_responses
from .openai_responses import call_of as call_of
from .openai_responses import result_of as result_of
from .wire import arguments_object as arguments_object
from .wire import arguments_text as arguments_text
from .wire import fields_of as fields_of
from .wire import items_of as items_of
from .wire import json_object as json_object
from .wire import json_text as json_text
from .wire import media_kind as media_kind
from .wire import result_part as result_part
from .wire import string as string
from .wire import unwritable as unwritable

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
