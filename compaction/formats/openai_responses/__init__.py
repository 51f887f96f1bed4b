"""The OpenAI Responses format: reading, rules."""

from __future__ import annotations

from .reading import OpenAIResponses, openai_responses
from .rules import call_of as call_of
from .rules import result_of as result_of

__all__ = ["OpenAIResponses", "openai_responses"]
