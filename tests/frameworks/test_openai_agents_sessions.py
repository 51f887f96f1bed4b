"""The OpenAI Agents SDK: behaviour that its example does not cover."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from openai import AsyncOpenAI

from compaction import nothing, presets
from compaction.errors import ConfigurationError
from compaction.integrations.openai_agents import CompactingSession, CompactionFilter
from compaction.stores import SessionStore
from compaction.strategies import Clear, Truncation
from compaction.strategies import ToolResult as Clearing


@function_tool
def look_up_price(item: str) -> str:
    return f"{item} costs 5 euros. " * 40


async def test_what_a_session_must_do(tmp_path: Path) -> None:
    """Items are added, limited, popped and cleared as in the wrapped session; clearing removes the edits."""
    store = SessionStore(tmp_path / "compaction.db")
    under = SQLiteSession("a", tmp_path / "items.db")
    session = CompactingSession(under, presets.token_budget(300), store=store, counter="chars/4")
    items: list[Any] = [{"role": "user", "content": f"Note {place}: " + "the shop is open. " * 10} for place in range(20)]
    await session.add_items(items)
    assert len(await session.get_items()) < 20
    assert await session.get_items(limit=3) == items[-3:]
    assert await session.pop_item() == items[-1]
    assert (await session.get_items())[-1] == items[-2]
    assert store.load("a") is not None
    await session.clear_session()
    assert await session.get_items() == []
    assert store.load("a") is None
    under.close()


@pytest.mark.parametrize("kept", [{"conversation_id": "conv_1"}, {"previous_response_id": "resp_1"}, {}], ids=str)
async def test_what_a_service_keeps_is_left_alone(kept: dict[str, str]) -> None:
    """If a service keeps the history, results without calls are sent unchanged, and the filter gives the reason."""
    asked = [function_call("look_up_price", {"item": item}, call_id=item) for item in ("tea", "milk")]
    model = ScriptedModel([asked, [assistant_message("5.")]])
    agent = Agent(name="Shop", instructions="You are a shop.", tools=[look_up_price], model=model)
    shorten = CompactionFilter(Clearing(Clear(min_chars=1), keep=nothing) >> Truncation(keep=nothing), counter="chars/4")
    await Runner.run(agent, "prices?", run_config=RunConfig(call_model_input_filter=shorten, tracing_disabled=True), **kept)
    sent = [item["type"] for item in model.calls[1].input if "type" in item]
    if kept:
        assert sent == ["function_call_output"] * 2
        assert all("5 euros" in item["output"] for item in model.calls[1].input)
        assert shorten.skipped == "the service keeps this conversation: there is nothing here to compact"
    else:
        assert sent == ["function_call"] * 2 + ["function_call_output"] * 2
        assert shorten.skipped is None


async def test_a_sessions_filter_in_a_run_of_a_service(tmp_path: Path) -> None:
    """A session's filter does not change such a call either, and remembers nothing of it."""
    under = SQLiteSession("a", tmp_path / "items.db")
    store = SessionStore(tmp_path / "compaction.db")
    session = CompactingSession(under, presets.token_budget(300), store=store, counter="chars/4")
    items: list[Any] = [{"type": "function_call_output", "call_id": "c9", "output": "x" * 4_000}]
    data = CallModelData(model_data=ModelInputData(input=items, instructions=None), agent=Agent(name="Shop"), context=None)
    assert (await session.filter(data)).input == items
    assert session.skipped is not None
    assert session.conversations.last is None
    notes: list[Any] = [{"role": "user", "content": f"Note {place}: " + "the shop is open. " * 10} for place in range(20)]
    data.model_data.input = notes
    assert len((await session.filter(data)).input) < 20
    assert store.load("a") is not None
    under.close()


def test_sessions_of_a_service_are_refused(tmp_path: Path) -> None:
    """The error names the alternative, also for a session inside another one."""
    client = AsyncOpenAI(api_key="none")
    kept = OpenAIConversationsSession(openai_client=client)
    under = SQLiteSession("a", tmp_path / "items.db")
    compacting = OpenAIResponsesCompactionSession("a", under, client=client)
    for session, words in ((kept, "a service keeps the items"), (compacting, "lets a service compact its items")):
        for each in (session, Around(session)):
            with pytest.raises(ConfigurationError, match=words):
                CompactingSession(each, presets.token_budget(300))
    assert CompactingSession(Around(under), presets.token_budget(300)).session_id == "a"
    under.close()


class Around:
    """A session that wraps another, like the SDK's encrypting session."""

    session_id = "a"

    def __init__(self, underlying: Any) -> None:
        self.underlying_session = underlying
