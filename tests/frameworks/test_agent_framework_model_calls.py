"""The provider's model calls in Microsoft Agent Framework: usage, length errors, approvals, requests to compact, and state."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, InMemoryHistoryProvider, tool
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.hosts.server import StrictServer
from compaction import last, presets
from compaction.errors import BudgetUnsatisfiable, CompactionError
from compaction.integrations.agent_framework import CompactionProvider, as_framework_strategy
from compaction.strategies import Summarization
from compaction.triggers import never, tokens_exceed
from tests.frameworks.model_server import ModelServer, prefix_breaks, tokens_of
from tests.support.scripted import Scripted

CLIENTS: list[OpenAIChatCompletionClient] = []


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    """Close the clients that the framework leaves open."""
    yield
    while CLIENTS:
        await CLIENTS.pop().client.close()


@tool(approval_mode="never_require")
def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


def make_agent(server: StrictServer, strategy: Any, *, tools: Any = look_up_price, model: str = "m", **options: Any) -> Agent:
    CLIENTS.append(OpenAIChatCompletionClient(model=model, api_key="none", base_url=f"{server.address}/v1"))
    CLIENTS[-1].client.max_retries = 0
    compaction = CompactionProvider(before_strategy=strategy, counter="chars/4", **options)
    return Agent(client=CLIENTS[-1], name="Shop", tools=[tools], context_providers=[InMemoryHistoryProvider(), compaction])


async def ask(agent: Agent, session: AgentSession, turns: range, *, stream: bool = False) -> None:
    for turn in turns:
        if stream:
            await agent.run(f"What does item {turn} cost?", session=session, stream=True).get_final_response()
        else:
            await agent.run(f"What does item {turn} cost?", session=session)


def saved(session: AgentSession) -> dict[str, Any]:
    """Return the provider's state in a session."""
    found: dict[str, Any] = session.state["compaction"]["conversation"]
    return found


def restored(session: AgentSession) -> AgentSession:
    """Return the session as another process restores it."""
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


# --- usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_the_anchor_is_saved_with_every_call(server: ModelServer, stream: bool) -> None:
    """The session's state has the newest report; without edits, nothing else is written."""
    agent = make_agent(server, presets.context_window(400_000))
    session = agent.create_session()
    await ask(agent, session, range(1), stream=stream)
    index, learned = saved(session)["index"], saved(session)["learned"]
    await ask(agent, session, range(1, 4), stream=stream)
    assert saved(session)["index"] is index
    assert saved(session)["learned"][1] > learned[1] > 0


# --- length errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_cannot_be_shortened(stream: bool) -> None:
    """The typed error lists what uses the space; its cause is the provider's error."""
    with ModelServer(window=10) as server:
        agent = make_agent(server, presets.context_window(4_000))
        with pytest.raises(BudgetUnsatisfiable) as raised:
            await ask(agent, agent.create_session(), range(1), stream=stream)
        assert "maximum context length" in str(raised.value.__cause__)
        assert len(server.refused) == 1


# --- on request -------------------------------------------------------------------------------------------------------


async def test_the_host_asks_to_compact(server: ModelServer) -> None:
    """The next request is compacted once, whatever the trigger says, with the focus; also in the process that resumes."""
    summarizer = Scripted("The user asked what items cost.")
    strategy = Summarization(summarizer, trigger=never, keep=last(groups=2))
    agent = make_agent(server, strategy)
    session = agent.create_session()
    await ask(agent, session, range(6))
    provider = agent.context_providers[-1]
    assert isinstance(provider, CompactionProvider)
    provider.compact_next(session, "prices")
    session = restored(session)
    await ask(make_agent(server, strategy), session, range(6, 8))
    assert [request.focus for request in summarizer.requests] == ["prices"]
    assert len(prefix_breaks(server.requests)) == 1


async def test_the_model_asks_to_compact(server: ModelServer) -> None:
    """The model gets the tool; after a call of it, the next request of the same run is compacted."""
    summarizer = Scripted("The user asked what items cost.")
    strategy = Summarization(summarizer, trigger=never, keep=last(groups=2))
    agent = make_agent(server, strategy)
    session = agent.create_session()
    await ask(agent, session, range(6))
    talking = make_agent(server, strategy, compact_tool=True)
    talking.default_options["tools"] = []
    await ask(talking, session, range(6, 7))
    assert [each["function"]["name"] for each in server.requests[-1]["tools"]] == ["compact_conversation"]
    assert len(summarizer.requests) == 1
    assert "item 6" in str(summarizer.requests[0].focus)


# --- the rest ---------------------------------------------------------------------------------------------------------


async def test_the_window_of_the_model_by_its_name(server: ModelServer) -> None:
    """The client names the model; an unknown model is an error."""
    agent = make_agent(server, presets.context_window(4_000), window="auto", model="gpt-5")
    await ask(agent, agent.create_session(), range(1))
    with pytest.raises(CompactionError, match="no-such-model"):
        await ask(
            make_agent(server, presets.context_window(4_000), window="auto", model="no-such-model"), AgentSession(), range(1)
        )


async def test_without_the_loop(server: ModelServer) -> None:
    """Only the loaded history is compacted, once before a run."""
    agent = make_agent(server, presets.context_window(2_000), in_loop=False)
    await ask(agent, agent.create_session(), range(20))
    assert server.refused == []
    assert 3 < len(prefix_breaks(server.requests)) < 20
    assert max(map(tokens_of, server.requests)) <= 3_000


async def test_a_strategy_that_knows_the_agents_name(server: ModelServer) -> None:
    """A named agent's messages have the name from the start, so that requests do not change after a run."""
    for name, breaks in (("Shop", 0), (None, 5)):
        CLIENTS.append(OpenAIChatCompletionClient(model="m", api_key="none", base_url=server.url))
        strategy = as_framework_strategy(presets.context_window(40_000), agent_name=name, counter="chars/4")
        agent = Agent(
            client=CLIENTS[-1],
            name="Shop",
            tools=[look_up_price],
            context_providers=[InMemoryHistoryProvider()],
            compaction_strategy=strategy,
        )
        start = len(server.requests)
        await ask(agent, agent.create_session(), range(6))
        assert len(prefix_breaks(server.requests[start:])) == breaks


async def test_what_a_strategy_excludes_is_stored_as_it_was(server: ModelServer) -> None:
    """Messages of a run that were summarized in it are stored without a flag, because the store has no summary of them."""
    server.calls_per_turn = 12
    strategy = Summarization(Scripted("Prices were looked up."), trigger=tokens_exceed(2_000), keep=last(groups=2))
    CLIENTS.append(OpenAIChatCompletionClient(model="m", api_key="none", base_url=server.url))
    agent = Agent(
        client=CLIENTS[-1],
        tools=[look_up_price],
        context_providers=[InMemoryHistoryProvider()],
        compaction_strategy=as_framework_strategy(strategy, counter="chars/4"),
    )
    session = agent.create_session()
    await ask(agent, session, range(2))
    stored = session.state["in_memory"]["messages"]
    assert len(server.requests[-1]["messages"]) < len(stored)
    assert not any(message.additional_properties.get("_excluded") for message in stored)
