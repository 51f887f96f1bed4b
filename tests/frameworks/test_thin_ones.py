"""The OpenAI Agents SDK and pydantic-ai: behaviour that their examples do not cover."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
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
from pydantic_ai import messages as wire

from compaction import CompactionResult, Edit, MessageIndex, compact, nothing, presets
from compaction.errors import ConfigurationError, InvalidMessage
from compaction.integrations.openai_agents import CompactingSession, CompactionFilter
from compaction.integrations.pydantic_ai import CompactionProcessor, pydantic_ai
from compaction.messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.stores import SessionStore
from compaction.strategies import Clear, Truncation
from compaction.strategies import ToolResult as Clearing
from tests.frameworks.model_server import ModelServer


def broken(index: MessageIndex) -> Iterator[Edit]:
    """A strategy that fails."""
    raise ZeroDivisionError("broken strategy")
    yield  # makes it a generator


@function_tool
def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


async def run(server: ModelServer, turns: range, session: Any, **config: Any) -> None:
    async with AsyncOpenAI(api_key="none", base_url=server.url) as client:
        model = OpenAIChatCompletionsModel("m", client)
        agent = Agent(name="Shop", instructions="You are a shop.", tools=[look_up_price], model=model)
        for turn in turns:
            settings = RunConfig(tracing_disabled=True, **config)
            await Runner.run(agent, f"What does item {turn} cost?", session=session, run_config=settings)


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


async def test_an_agents_sdk_strategy_that_raises(tmp_path: Path) -> None:
    """The history is returned whole and the result reports it; or reading fails, with ``on_failure="raise"``."""
    results: list[CompactionResult] = []
    under = SQLiteSession("a", tmp_path / "items.db")
    await under.add_items([{"role": "user", "content": "hi"}])
    assert len(await CompactingSession(under, broken, on_result=results.append).get_items()) == 1
    assert results[0].outcome == "degraded"
    with pytest.raises(ZeroDivisionError):
        await CompactingSession(under, broken, on_failure="raise").get_items()
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
    session = CompactingSession(under, presets.token_budget(300), counter="chars/4")
    items = [{"type": "function_call_output", "call_id": "c9", "output": "x" * 4_000}]
    data = CallModelData(model_data=ModelInputData(input=items, instructions=None), agent=Agent(name="Shop"), context=None)
    assert (await session.filter(data)).input == items
    assert session.skipped is not None
    assert session.turn is None
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


# --- pydantic-ai ------------------------------------------------------------------------------------------------------

PNG = wire.BinaryContent(b"\x89PNG", media_type="image/png")
MESSAGES: dict[str, tuple[Any, str, list[type]]] = {
    "system and user": (
        wire.ModelRequest(parts=[wire.SystemPromptPart("rules"), wire.UserPromptPart("hi")]),
        "system",
        [TextPart, TextPart],
    ),
    "user with media": (
        wire.ModelRequest(parts=[wire.UserPromptPart(["look", PNG, wire.ImageUrl("https://example.com/a.png")])]),
        "user",
        [TextPart, MediaPart, MediaPart],
    ),
    "answer": (
        wire.ModelResponse(
            parts=[wire.ThinkingPart("hm", signature="s"), wire.TextPart("x"), wire.ToolCallPart("look_up", {"a": 1}, "c1")]
        ),
        "assistant",
        [ReasoningPart, TextPart, ToolCallPart],
    ),
    "results": (
        wire.ModelRequest(parts=[wire.ToolReturnPart("look_up", "18", "c1"), wire.ToolReturnPart("b", [PNG], "c2")]),
        "tool",
        [ToolResultPart, ToolResultPart],
    ),
    "native": (wire.ModelResponse(parts=[wire.NativeToolCallPart("web_search", {"q": "x"}, "n1")]), "assistant", [OtherPart]),
}


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_every_part_is_kept_whole(kind: str) -> None:
    """Each part is read as its kind, written as the same object, and survives JSON."""
    raw, role, parts = MESSAGES[kind]
    message = pydantic_ai.read(raw)
    assert (message.role, [type(part) for part in message.parts]) == (role, parts)
    assert message.raw is raw
    restored = pydantic_ai.from_wire(json.loads(json.dumps(pydantic_ai.to_wire(raw))))
    assert pydantic_ai.to_wire(restored) == pydantic_ai.to_wire(raw)


def test_changed_parts_keep_the_rest() -> None:
    """A shorter result keeps its ids; media and other parts next to changed text stay the same objects."""
    results = MESSAGES["results"][0]
    changed = pydantic_ai.read(results).evolve(text="short").raw
    assert (changed.parts[0].content, changed.parts[0].tool_call_id) == ("short", "c1")
    assert changed.parts[1] is results.parts[1]
    asked = pydantic_ai.read(MESSAGES["user with media"][0]).evolve(text="see").raw
    assert asked.parts[0].content[0] == "see"
    assert asked.parts[0].content[1] is PNG


async def test_a_system_prompt_in_the_first_request_stays() -> None:
    """A first request with a system prompt and a question is never dropped."""
    messages: list[Any] = [MESSAGES["system and user"][0]]
    for turn in range(20):
        messages += [
            wire.ModelResponse(parts=[wire.TextPart(f"Answer {turn}. " * 20)]),
            wire.ModelRequest.user_text_prompt(f"Ask {turn}"),
        ]
    result = await compact(messages, presets.token_budget(300), format=pydantic_ai, counter="chars/4")
    assert result.messages[0] is messages[0]
    assert result.messages[-1] is messages[-1]
    assert result.after.tokens < 310
    assert pydantic_ai.validate(result.messages) == []


async def test_a_processor_that_raises() -> None:
    """The history stays whole and the result reports it; or the run fails, with ``on_failure="raise"``."""
    messages = [wire.ModelRequest.user_text_prompt("hi")]
    processor = CompactionProcessor(broken)
    assert await processor(messages) == messages
    assert processor.last is not None
    assert processor.last.outcome == "degraded"
    with pytest.raises(ZeroDivisionError):
        await CompactionProcessor(broken, on_failure="raise")(messages)
    with pytest.raises(InvalidMessage, match="all_messages"):
        await CompactionProcessor(presets.token_budget(300), on_failure="raise")(["hi"])
