"""Microsoft Agent Framework: a provider that compacts an agent's conversation, and strategies that cross over both ways.

    agent = Agent(client=client, context_providers=[history, CompactionProvider(before_strategy=presets.context_window(32_000))])
"""

from __future__ import annotations

from .format import AgentFramework, agent_framework
from .provider import CompactionProvider
from .strategies import FrameworkStrategy, as_strategy, from_strategy
from .summarizer import ChatClientSummarizer

__all__ = [
    "AgentFramework",
    "ChatClientSummarizer",
    "CompactionProvider",
    "FrameworkStrategy",
    "agent_framework",
    "as_strategy",
    "from_strategy",
]
