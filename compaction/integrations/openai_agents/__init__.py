"""OpenAI Agents SDK: a session that returns a compacted history, a filter for the model's input, and models for both."""

from __future__ import annotations

from .models import CompactingModel, CompactingModels
from .session import CompactingSession, CompactionFilter

__all__ = ["CompactingModel", "CompactingModels", "CompactingSession", "CompactionFilter"]
