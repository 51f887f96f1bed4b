"""The OpenAI Responses format: reading, rules."""

from __future__ import annotations

from .fields import call_of as call_of
from .fields import result_of as result_of
from .reading import OpenAIResponses, openai_responses

__all__ = ["OpenAIResponses", "openai_responses"]
