"""The OpenAI chat-completions format: reading, rules."""

from __future__ import annotations

from .reading import OpenAIChat, openai_chat

__all__ = ["OpenAIChat", "openai_chat"]
