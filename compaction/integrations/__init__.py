"""Integrations with agent frameworks, one module or folder each; the framework is needed only where its integration is used.

    from compaction.integrations.agent_framework import CompactionProvider
    from compaction.integrations.anthropic import RequestCompaction
    from compaction.integrations.google_adk import CompactionPlugin
    from compaction.integrations.langchain import CompactionMiddleware
    from compaction.integrations.langgraph import SummarizationNode
    from compaction.integrations.litellm import ProxyCompaction
    from compaction.integrations.openai_agents import CompactingSession
    from compaction.integrations.pydantic_ai import CompactionProcessor
    from compaction.integrations.strands import CompactionConversationManager

Importing this folder loads no framework; creating an instance raises `compaction.errors.ConfigurationError` if the framework is
missing or too old, or an option is out of range. ``docs/hooks.md`` compares the hooks of each framework, and
``docs/integration-options.md`` explains the options that all of them take, and deletion on request.
"""

from __future__ import annotations

from ..summarizers import SummaryOptions
from .conversation import FrameworkConversations
from .options import IntegrationOptions, OnStrategyFailure

__all__ = ["FrameworkConversations", "IntegrationOptions", "OnStrategyFailure", "SummaryOptions"]
