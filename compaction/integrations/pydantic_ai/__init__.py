"""pydantic-ai: a capability that compacts each model request, and its messages as a wire format.

    agent = Agent(model, capabilities=[CompactionProcessor(presets.context_window(32_000))])

A whole program is ``examples/pydantic_ai_history.py``.
"""

from __future__ import annotations

from .format import PydanticAI, pydantic_ai
from .processor import CompactionProcessor

__all__ = ["CompactionProcessor", "PydanticAI", "pydantic_ai"]
