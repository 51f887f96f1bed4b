"""The OpenAI Agents SDK: length errors, reported usage, and compaction on request."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.models import get_default_model
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message
from agents.usage import Usage

from compaction import last, presets
from compaction.integrations.openai_agents import CompactingModel, CompactingModels, CompactingSession, CompactionFilter
from compaction.models import input_limit
from compaction.strategies import Summarization
from compaction.triggers import tokens_exceed
from tests.frameworks.turns import status_of, turn_of
from tests.support.scripted import Scripted


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
    agent = Agent(name="Shop", model=None)
    data = CallModelData(model_data=ModelInputData(input=history(), instructions=None), agent=agent, context=None)
    view = (await shorten(data)).input

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
    empty = CallModelData(model_data=ModelInputData(input=[], instructions=None), agent=agent, context=None)
    await shorten(empty)
    assert await tokens_after(view, used(4_000)) == 0


async def test_instructions_tools_and_the_models_name() -> None:
    """Instructions and tools count; the window is that of the agent's model, of a model object, or of the default model."""

    def look_up_price(item: str) -> str:
        """Look up what an item costs."""
        return "5 euros"

    tool = function_tool(look_up_price)
    windows: list[int | None] = []
    for model in ("gpt-4o", SimpleNamespace(model="gpt-4o"), None, SimpleNamespace(model=7)):
        agent: Any = SimpleNamespace(model=model, tools=[tool])
        data = CallModelData(model_data=ModelInputData(input=history(), instructions="Be brief."), agent=agent, context=None)
        shorten = CompactionFilter(presets.token_budget(100_000), counter="chars/4", window="auto")
        await shorten(data)
        windows.append(turn_of(shorten).index.context.window)
        shown = {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        assert turn_of(shorten).index.context.overhead_tokens == shorten.conversations.count("Be brief.", [shown])
    assert windows == [input_limit("gpt-4o"), input_limit("gpt-4o"), input_limit(get_default_model()), None]


async def test_compaction_on_request(tmp_path: Path) -> None:
    under = SQLiteSession("a", tmp_path / "items.db")
    strategy = Summarization(
        Scripted(lambda request: f"About {request.focus}."), trigger=tokens_exceed(100_000), keep=last(turns=2)
    )
    session = CompactingSession(under, strategy, counter="chars/4")
    await session.add_items(history())
    assert len(await session.get_items()) == 41
    session.compact_next("prices")
    view = await session.get_items()
    assert len(view) < 10
    assert "About prices." in str(view)
    assert await session.get_items() == view
    under.close()


async def test_with_its_filter_a_session_is_compacted_once_in_a_turn(tmp_path: Path) -> None:
    """A run without the filter reads a view; with it, the items are read whole and the model call is compacted."""
    under = SQLiteSession("a", tmp_path / "items.db")
    session = CompactingSession(under, presets.token_budget(300), counter="chars/4")
    await session.add_items(history())
    assert len(await session.get_items()) < 41
    config = RunConfig(call_model_input_filter=session.filter, tracing_disabled=True)
    assert await session.get_items() == await under.get_items()
    inner = ScriptedModel([[assistant_message("5.")]])
    await Runner.run(Agent(name="Shop", model=CompactingModel(inner)), "And milk?", session=session, run_config=config)
    assert len(inner.calls[0].input) < 41
    under.close()
