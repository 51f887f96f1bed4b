"""Integration objects, and agents that hold them, can be copied and pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent

from compaction import presets
from compaction.integrations.agent_framework import CompactionProvider, as_framework_strategy
from compaction.integrations.anthropic import RequestCompaction
from compaction.integrations.google_adk import CompactionPlugin
from compaction.integrations.langchain import CompactionMiddleware, RewritingMiddleware
from compaction.integrations.langgraph import SummarizationNode
from compaction.integrations.openai_agents import CompactionFilter
from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.integrations.strands import CompactionConversationManager

STRATEGY = presets.token_budget(8_000)
MAKERS: list[Callable[[], Any]] = [
    lambda: CompactionProvider(before_strategy=STRATEGY),
    lambda: as_framework_strategy(STRATEGY),
    lambda: RequestCompaction(STRATEGY),
    lambda: CompactionPlugin(STRATEGY),
    lambda: CompactionMiddleware(STRATEGY, compact_tool=True),
    lambda: RewritingMiddleware(STRATEGY),
    lambda: SummarizationNode(STRATEGY),
    lambda: CompactionFilter(STRATEGY),
    lambda: CompactionProcessor(STRATEGY),
    lambda: CompactionConversationManager(STRATEGY),
]


def pickled(made: Any) -> Any:
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: type(make()).__name__)
async def test_a_copy_has_the_options_and_no_conversations(make: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    """A copy of an object that is in use has the same options and conversations of its own."""
    made = make()
    await made.conversations.turn([])
    other = copied(made)
    assert other.conversations.options == made.conversations.options
    assert (other.conversations is made.conversations, other.conversations.last) == (False, None)
    assert (await other.conversations.turn([])).view == []


def test_an_agent_is_copied() -> None:
    """ADK copies an agent with its callbacks. pydantic-ai's agents hold context variables, which Python cannot copy."""
    agent = LlmAgent(name="shop", model="gemini-2.5-flash", **CompactionPlugin(STRATEGY).callbacks)
    assert agent.model_copy(deep=True).before_model_callback is not agent.before_model_callback
