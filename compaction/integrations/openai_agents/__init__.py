"""OpenAI Agents SDK: a session that returns a compacted history, and a filter for the model's input."""

from __future__ import annotations

from .session import CompactingSession, compaction_filter

__all__ = ["CompactingSession", "compaction_filter"]
