"""Microsoft Agent Framework: a provider that compacts an agent's conversation, and adapters for strategies in both directions.

    compaction = CompactionProvider(before_strategy=presets.context_window(32_000))
    agent = Agent(client=client, context_providers=[history, compaction])

A whole program is ``examples/agent_framework_shopping.py``.
"""

from __future__ import annotations

from ..summarizers import ChatClientSummarizer
from .format import AgentFramework, agent_framework
from .provider import CompactionProvider
from .strategies import FrameworkStrategy, as_framework_strategy, from_framework_strategy

__all__ = [
    "AgentFramework",
    "ChatClientSummarizer",
    "CompactionProvider",
    "FrameworkStrategy",
    "agent_framework",
    "as_framework_strategy",
    "from_framework_strategy",
]
