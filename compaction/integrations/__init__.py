"""This toolkit inside agent frameworks: one module for each, which needs that framework and says so where it is missing.

    from compaction.integrations.agent_framework import CompactionProvider
    from compaction.integrations.langchain import CompactionMiddleware
    from compaction.integrations.langgraph import SummarizationNode
    from compaction.integrations.openai_agents import CompactingSession
    from compaction.integrations.pydantic_ai import CompactionProcessor

Importing this folder loads no framework. ``docs/hooks.md`` says which hook to take, and why.
"""

from __future__ import annotations

from .following import Following, OnFailure

__all__ = ["Following", "OnFailure"]
