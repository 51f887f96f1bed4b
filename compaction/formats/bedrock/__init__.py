"""The Amazon Bedrock Converse format: reading, rules, repair."""

from __future__ import annotations

from .fields import is_tool_use_id as is_tool_use_id
from .reading import Bedrock, bedrock

__all__ = ["Bedrock", "bedrock"]
