"""The OpenAI Agents SDK: behaviour of the session, the filter and the model that its example does not cover."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
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
from agents.models import get_default_model
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from openai import AsyncOpenAI

from compaction import last, nothing, presets
from compaction.errors import ConfigurationError
from compaction.integrations.openai_agents import CompactingModel, CompactingModels, CompactingSession, CompactionFilter
from compaction.models import input_limit
from compaction.stores import SessionStore
from compaction.strategies import Clear, Summarization, Truncation
from compaction.strategies import ToolResult as Clearing
from compaction.triggers import tokens_exceed
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Scripted

NOTES: list[Any] = [{"role": "user", "content": f"Note {place}: " + "the shop is open. " * 10} for place in range(20)]


@function_tool
def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


@pytest.fixture
def under(tmp_path: Path) -> Iterator[SQLiteSession]:
    """Yield a session of the SDK that ours wraps."""
    session = SQLiteSession("a", tmp_path / "items.db")
    yield session
    session.close()


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "compaction.db")


def data_of(items: list[Any], *, agent: Any = None, instructions: str | None = None) -> CallModelData[Any]:
    """Return the data of a model call, as the SDK passes them to a filter."""
    given = ModelInputData(input=items, instructions=instructions)
    return CallModelData(model_data=given, agent=agent or Agent(name="Shop"), context=None)


def history() -> list[Any]:
    items: list[Any] = []
    for place in range(20):
        items.append({"role": "user", "content": f"Question {place}: " + "the shop is open. " * 20})
        items.append({"role": "assistant", "content": f"Answer {place}."})
    return [*items, {"role": "user", "content": "And now?"}]


class Inner:
    """A model, and the provider of it. Holds state: the calls of its methods."""

    def __init__(self, *usages: Any) -> None:
        self.usages, self.called, self.refusals = list(usages), list[str](), 0

    def get_retry_advice(self) -> str:
        return "none"

    def refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            self.called.append("refused")
            raise ValueError("prompt is too long: 9000 tokens > 4000 maximum")

    async def close(self) -> None:
        self.called.append("close")

    aclose = _cleanup_on_run_end = close

    def get_model(self, name: str | None) -> Inner:
        self.called.append(str(name))
        return self

    async def get_response(self, instructions: Any, items: Any, *more: Any, **options: Any) -> Any:
        self.refuse()
        return SimpleNamespace(usage=self.usages.pop(0), items=items, more=(*more, options))

    async def stream_response(self, instructions: Any, items: Any, *more: Any, **options: Any) -> Any:
        """Yield two events with a usage each, of which only the last is that of the response."""
        self.refuse()
        for kind in ("response.created", "response.completed"):
            yield SimpleNamespace(type=kind, response=SimpleNamespace(usage=self.usages.pop(0)))
        yield "an event of another library"


async def test_a_wrapped_model_is_the_model() -> None:
    """Other methods and fields are those of the application's model, also of a copy."""
    inner = Inner()
    model = CompactingModel(inner)
    assert model.called is inner.called is copy.copy(model).called
    assert copy.deepcopy(model).called == []
    assert (model.get_retry_advice(), await model.close(), inner.called) == ("none", None, ["close"])
    provider = CompactingModels(inner)
    assert isinstance(provider.get_model("m"), CompactingModel)
    await provider.aclose()
    assert inner.called == ["close", "m", "close"]
    assert CompactingModels()._provider is not None


def used(tokens: int) -> Usage:
    return Usage(requests=1, input_tokens=tokens, output_tokens=5, total_tokens=tokens + 5)


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_belongs_to_the_request_that_the_filter_prepared(stream: bool) -> None:
    """Usage of the filter's view is recorded; of other items, of zeros, or of an earlier event of a stream it is not."""
    shorten = CompactionFilter(presets.token_budget(100_000), counter="chars/4")
    view = (await shorten(data_of(history()))).input

    async def tokens_after(items: Any, usage: Any) -> int:
        inner = Inner(*([used(9_000), usage] if stream else [usage]))
        model = CompactingModel(inner)
        if stream:
            assert len([event async for event in model.stream_response(None, items)]) == 3
        else:
            assert (await model.get_response("Be brief.", items, 1, a=2)).more == (1, {"a": 2})
        tokens: int = status_of(shorten).tokens
        return tokens

    before = await tokens_after(history(), used(3_000))
    assert before < 3_000
    for items, usage in (("text", used(3_000)), ([], used(3_000)), (view, None), (view, used(0))):
        assert await tokens_after(items, usage) == before
    assert await tokens_after(view, used(3_000)) == 3_000
    inner = Inner()
    inner.usages = [used(1), used(3_500)]
    inner.refusals = 1
    if stream:
        assert len([event async for event in CompactingModel(inner).stream_response(None, view)]) == 3
    else:
        await CompactingModel(inner).get_response(None, view)
    assert inner.called == ["refused"]
    await shorten(data_of([]))
    assert await tokens_after(view, used(4_000)) == 0


async def test_instructions_tools_and_the_models_name() -> None:
    """Instructions and tools count; the window is that of the agent's model, of a model object, or of the default model."""
    tool, windows = look_up_price, list[int | None]()
    shown = {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
    for model in ("gpt-4o", SimpleNamespace(model="gpt-4o"), None, SimpleNamespace(model=7)):
        agent = SimpleNamespace(model=model, tools=[look_up_price])
        shorten = CompactionFilter(presets.token_budget(100_000), counter="chars/4", window="auto")
        await shorten(data_of(history(), agent=agent, instructions="Be brief."))
        windows.append(turn_of(shorten).index.context.window)
        assert turn_of(shorten).index.context.overhead_tokens == shorten.conversations.count("Be brief.", [shown])
    assert windows == [input_limit("gpt-4o"), input_limit("gpt-4o"), input_limit(get_default_model()), None]


async def test_compaction_on_request(under: SQLiteSession) -> None:
    writer = Scripted(lambda request: f"About {request.focus}.")
    strategy = Summarization(writer, trigger=tokens_exceed(100_000), keep=last(turns=2))
    session = CompactingSession(under, strategy, counter="chars/4")
    await session.add_items(history())
    assert len(await session.get_items()) == 41
    session.compact_next("prices")
    view = await session.get_items()
    assert len(view) < 10
    assert "About prices." in str(view)
    assert await session.get_items() == view


async def test_with_its_filter_a_session_is_compacted_once_in_a_turn(under: SQLiteSession) -> None:
    """A run without the filter reads a view; with it, the items are read whole and the model call is compacted."""
    session = CompactingSession(under, presets.token_budget(300), counter="chars/4")
    await session.add_items(history())
    assert len(await session.get_items()) < 41
    config = RunConfig(call_model_input_filter=session.filter, tracing_disabled=True)
    assert await session.get_items() == await under.get_items()
    inner = ScriptedModel([[assistant_message("5.")]])
    await Runner.run(Agent(name="Shop", model=CompactingModel(inner)), "And milk?", session=session, run_config=config)
    assert len(inner.calls[0].input) < 41


async def test_what_a_session_must_do(under: SQLiteSession, store: SessionStore) -> None:
    """Items are added, limited, popped and cleared as in the wrapped session; clearing removes the edits."""
    session = CompactingSession(under, presets.token_budget(300), store=store, counter="chars/4")
    await session.add_items(NOTES)
    assert len(await session.get_items()) < 20
    assert await session.get_items(limit=3) == NOTES[-3:]
    assert await session.pop_item() == NOTES[-1]
    assert (await session.get_items())[-1] == NOTES[-2]
    assert store.load("a") is not None
    await session.clear_session()
    assert await session.get_items() == []
    assert store.load("a") is None


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


async def test_a_sessions_filter_in_a_run_of_a_service(under: SQLiteSession, store: SessionStore) -> None:
    """A session's filter does not change such a call either, and remembers nothing of it."""
    session = CompactingSession(under, presets.token_budget(300), store=store, counter="chars/4")
    items: list[Any] = [{"type": "function_call_output", "call_id": "c9", "output": "x" * 4_000}]
    assert (await session.filter(data_of(items))).input == items
    assert session.skipped is not None
    assert session.conversations.last is None
    assert len((await session.filter(data_of(NOTES))).input) < 20
    assert store.load("a") is not None


def test_sessions_of_a_service_are_refused(under: SQLiteSession) -> None:
    """The error names the alternative, also for a session inside another one."""
    client = AsyncOpenAI(api_key="none")
    kept = OpenAIConversationsSession(openai_client=client)
    compacting = OpenAIResponsesCompactionSession("a", under, client=client)
    for session, words in ((kept, "a service keeps the items"), (compacting, "lets a service compact its items")):
        for each in (session, Around(session)):
            with pytest.raises(ConfigurationError, match=words):
                CompactingSession(each, presets.token_budget(300))
    assert CompactingSession(Around(under), presets.token_budget(300)).session_id == "a"


class Around:
    """A session that wraps another, like the SDK's encrypting session."""

    session_id = "a"

    def __init__(self, underlying: Any) -> None:
        self.underlying_session = underlying
