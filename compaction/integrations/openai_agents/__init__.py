"""OpenAI Agents SDK: a session that returns a compacted history, a filter for the model's input, and models for both."""

from __future__ import annotations

from .models import CompactingModel, CompactingModels, compacting_model
from .session import CompactingSession, CompactionFilter, compaction_filter

__all__ = [
    "CompactingModel",
    "CompactingModels",
    "CompactingSession",
    "CompactionFilter",
    "compacting_model",
    "compaction_filter",
]
