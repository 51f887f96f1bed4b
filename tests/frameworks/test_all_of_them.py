"""All integrations have this in common: their options, and objects that can be copied and pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
from agents import SQLiteSession
from google.adk.agents import LlmAgent

from compaction import presets
from compaction.integrations import IntegrationOptions
from compaction.integrations.agent_framework import CompactionProvider, as_framework_strategy
from compaction.integrations.anthropic import RequestCompaction
from compaction.integrations.google_adk import CompactionPlugin
from compaction.integrations.langchain import CompactionMiddleware, RewritingMiddleware
from compaction.integrations.langgraph import SummarizationNode
from compaction.integrations.openai_agents import CompactingSession, CompactionFilter
from compaction.integrations.pydantic_ai import CompactionProcessor
from compaction.integrations.strands import CompactionConversationManager

STRATEGY = presets.token_budget(8_000)
MAKERS: list[partial[Any]] = [
    partial(CompactionProvider, before_strategy=STRATEGY),
    partial(as_framework_strategy, STRATEGY),
    partial(RequestCompaction, STRATEGY),
    partial(CompactionPlugin, STRATEGY),
    partial(CompactionMiddleware, STRATEGY, compact_tool=True),
    partial(RewritingMiddleware, STRATEGY),
    partial(SummarizationNode, STRATEGY),
    partial(CompactionFilter, STRATEGY),
    partial(CompactionProcessor, STRATEGY),
    partial(CompactionConversationManager, STRATEGY),
]


def name(make: partial[Any]) -> str:
    return str(getattr(make.func, "__name__", ""))


@pytest.mark.parametrize("make", [*MAKERS, partial(CompactingSession, SQLiteSession("a"), STRATEGY)], ids=name)
def test_the_options_of_all_integrations(make: partial[Any]) -> None:
    """Each integration passes its options on, ``on_failure`` among them, to the conversations that all of them share."""
    given: Any = {"counter": "chars/4", "window": 9_000, "overhead_tokens": 7, "clock": None, "on_failure": "raise"}
    made, expected = make(**given).conversations.options, IntegrationOptions(strategy=STRATEGY, **given)
    assert attrs.evolve(made, pin=None) == expected  # Strands' own pins are in this option


def pickled(made: Any) -> Any:
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("make", MAKERS, ids=name)
async def test_a_copy_has_the_options_and_no_conversations(make: partial[Any], copied: Callable[[Any], Any]) -> None:
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
