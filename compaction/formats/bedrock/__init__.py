"""The Amazon Bedrock Converse format: reading, rules."""

from __future__ import annotations

from .reading import Bedrock, bedrock

__all__ = ["Bedrock", "bedrock"]
