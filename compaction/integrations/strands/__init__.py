"""Strands: a conversation manager that compacts what an agent sends and leaves its messages whole.

    agent = Agent(conversation_manager=CompactionConversationManager(presets.context_window(32_000)))

A whole program is ``examples/strands_shopping.py``.
"""

from __future__ import annotations

from .conversation_manager import CompactionConversationManager

__all__ = ["CompactionConversationManager"]
