"""Microsoft Agent Framework in whole agent runs, with its own client and a model on loopback."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    CharacterEstimatorTokenizer,
    ChatResponse,
    Content,
    ContextProvider,
    InMemoryHistoryProvider,
    Message,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    ToolResultCompactionStrategy,
    apply_compaction,
    tool,
)
from agent_framework import CompactionProvider as TheirProvider
from agent_framework.openai import OpenAIChatCompletionClient

from compaction import compact, last, presets
from compaction.integrations.agent_framework import (
    ChatClientSummarizer,
    CompactionProvider,
    agent_framework,
    as_framework_strategy,
    from_framework_strategy,
)
from compaction.strategies import Pipeline, SlidingWindow, Summarization, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import messages_exceed, tokens_below, tokens_exceed
from tests.frameworks.model_server import SUMMARY, ModelServer, tokens_of


@tool(approval_mode="never_require")
def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


CLIENTS: list[OpenAIChatCompletionClient] = []


@pytest.fixture(autouse=True)
async def closing() -> AsyncIterator[None]:
    """Close the clients that the framework leaves open."""
    yield
    while CLIENTS:
        await CLIENTS.pop().client.close()


def make_client(server: ModelServer) -> OpenAIChatCompletionClient:
    CLIENTS.append(OpenAIChatCompletionClient(model="m", api_key="none", base_url=server.url))
    return CLIENTS[-1]


def make_agent(server: ModelServer, *providers: Any, history: InMemoryHistoryProvider | None = None, **options: Any) -> Agent:
    about: Any = {"name": "Shop", "instructions": "You are a shopping assistant.", "tools": [look_up_price], **options}
    return Agent(client=make_client(server), context_providers=[history or InMemoryHistoryProvider(), *providers], **about)


async def ask(agent: Agent, session: AgentSession, turns: range) -> None:
    for turn in turns:
        await agent.run(f"What does item {turn} cost?", session=session)


# --- the provider -----------------------------------------------------------------------------------------------------


async def test_a_summary_is_history_and_stored_once(server: ModelServer) -> None:
    """A model's summary replaces old turns, later rounds update it, and it is never stored as new input."""
    client = make_client(server)
    summary = Summarization(ChatClientSummarizer(client), trigger=tokens_exceed(2_000), keep=last(groups=4), on_failure="raise")
    agent = make_agent(server, CompactionProvider(before_strategy=summary, counter="chars/4", on_failure="raise"))
    session = agent.create_session()
    await ask(agent, session, range(30))
    stored = session.state["in_memory"]["messages"]
    assert server.summaries > 2
    assert len(stored) == 30 * 4
    assert not any("[compaction" in message.text for message in stored)
    assert sum(SUMMARY.splitlines()[1] in str(message.get("content")) for message in server.requests[-1]["messages"]) == 1


class Terse:
    """A summarizer, and a chat client of the framework, that always write one word."""

    def summarize(self, request: SummaryRequest) -> str:
        return "Before."

    async def get_response(self, messages: Any, **options: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", ["Before."])])


def questions(times: int) -> list[Message]:
    """Return eight questions and answers, whose texts are repeated so many times."""
    pairs = [(f"What is {turn}? " * times, f"It is {turn}. " * times) for turn in range(8)]
    return [Message(role, [text]) for pair in pairs for role, text in zip(("user", "assistant"), pair, strict=True)]


@pytest.mark.parametrize("instructions", [0, 1, 3])
async def test_counts_translate_exactly(instructions: int) -> None:
    """``target_count=4, threshold=2`` triggers at the same lengths and keeps the same messages, with any instructions."""
    talk = [*(Message("system", [f"Rule {number}. "]) for number in range(instructions)), *questions(60)]
    ours = Summarization(Terse(), trigger=messages_exceed(6, system=False), keep=last(messages=4), least_share=0)
    theirs = SummarizationStrategy(client=Terse(), target_count=4, threshold=2)  # type: ignore[arg-type]
    for length in range(1, len(talk) + 1):
        kept = (await compact(talk[:length], ours, format=agent_framework, counter="chars/4")).messages
        shown = await apply_compaction([copy.deepcopy(each) for each in talk[:length]], strategy=theirs)
        left = [each.text for each in kept if "Before." not in each.text]
        assert left == [each.text for each in shown if each.text != "Before."]
        assert (len(kept) < length) == (length > instructions + 6)


async def test_a_window_without_system_messages() -> None:
    """The framework's ``preserve_system=False`` is our ``drop_system=True``."""
    talk = [Message("system", ["You are a shop."]), *questions(1)]
    kept = await compact(talk, SlidingWindow(keep=last(groups=6), drop_system=True), format=agent_framework, counter="chars/4")
    theirs = SlidingWindowStrategy(keep_last_groups=6, preserve_system=False)
    shown = await apply_compaction([copy.deepcopy(each) for each in talk], strategy=theirs)
    assert [each.text for each in kept.messages] == [each.text for each in shown]
    assert len(shown) == 6


# --- strategies that cross over ---------------------------------------------------------------------------------------


class Noting(ContextProvider):
    """Puts a note before each question: the same one, or that of another day."""

    day: str | None = None

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        state["day"] = state.get("day", 0) + 1
        context.extend_messages(self, [Message("user", [f"NOTE: it is day {self.day or state['day']}. {'x' * 200}"])])


class NotingOneDay(Noting):
    day = "one"


@pytest.mark.parametrize(
    ("other", "calls"), [(None, 8), (NotingOneDay, 1), (Noting, 8)], ids=["alone", "a note", "another note each time"]
)
async def test_as_many_summaries_as_the_provider(other: Callable[[str], ContextProvider] | None, calls: int) -> None:
    """Nothing is summarized twice, in each form of our strategy, and with any provider that adds messages to each run."""
    asked: list[int] = []
    for in_loop_only in (False, True):
        with ModelServer(calls_per_turn=calls) as server:
            writer, trigger = ChatClientSummarizer(make_client(server)), tokens_exceed(1_000 + 2_000 * calls)
            summary = Summarization(writer, trigger=trigger, keep=last(groups=4), on_failure="raise")
            others = [] if other is None else [other("notes")]
            if in_loop_only:
                strategy = as_framework_strategy(summary, counter="chars/4", on_failure="raise")
                agent = make_agent(server, *others, compaction_strategy=strategy)
            else:
                provider = CompactionProvider(before_strategy=summary, counter="chars/4", on_failure="raise")
                agent = make_agent(server, *others, provider)
            await ask(agent, agent.create_session(), range(20))
            assert server.refused == []
            asked.append(server.summaries)
            notes = {str(request["messages"]).count("NOTE:") for request in server.requests[4 * calls :]}
            assert notes == {0 if other is None else 1}
    of_provider, of_strategy = asked
    assert 2 < of_strategy <= of_provider


async def test_ours_in_their_provider(server: ModelServer) -> None:
    """The framework's provider runs our strategy like its own, before and after a run."""
    before = as_framework_strategy(presets.context_window(3_600), counter="chars/4")
    after = as_framework_strategy(Truncation(trigger=tokens_exceed(1_500), target=tokens_below(800)), counter="chars/4")
    theirs = TheirProvider(before_strategy=before, after_strategy=after)
    agent = make_agent(server, theirs, history=InMemoryHistoryProvider(skip_excluded=True))
    await ask(agent, agent.create_session(), range(20))
    assert server.refused == []
    assert max(map(tokens_of, server.requests)) < 3_800


def shop_messages(turns: int) -> list[Message]:
    """Return a history with tool calls, as the framework's messages."""
    made = [Message("system", ["You are a shop."])]
    for turn in range(turns):
        made += [
            Message("user", [f"What does item {turn} cost?"]),
            Message("assistant", [Content.from_function_call(f"c{turn}", "look_up", arguments={"item": turn})]),
            Message("tool", [Content.from_function_result(f"c{turn}", result=f"item {turn}: 5 euros. " * 30)]),
            Message("assistant", [f"Item {turn} costs 5 euros."]),
        ]
    return made


async def test_their_projection_is_our_view() -> None:
    """The framework's projection after our strategy equals the result of `compact`, also after a second run on the list."""
    strategy = presets.context_window(3_000)
    messages = shop_messages(30)
    expected = (await compact(messages, strategy, format=agent_framework, counter="chars/4")).messages
    ours = as_framework_strategy(strategy, counter="chars/4")
    for _ in range(2):
        shown = await apply_compaction(messages, strategy=ours)
        assert [message.text for message in shown] == [message.text for message in expected]
    assert len(messages) > len(shown)
    assert agent_framework.validate(shown) == []


async def test_theirs_in_our_pipeline() -> None:
    """Excluded messages are dropped, inserted ones replace the linked ones, and the caller's messages are not annotated."""
    messages = shop_messages(10)
    theirs = (ToolResultCompactionStrategy(keep_last_tool_call_groups=1), SlidingWindowStrategy(keep_last_groups=9))
    pipeline = Pipeline(*map(from_framework_strategy, theirs))
    result = await compact(messages, pipeline, format=agent_framework, counter="chars/4")
    assert result.outcome == "compacted"
    assert agent_framework.validate(result.messages) == []
    assert result.after.groups == 10
    assert not any("_excluded" in message.additional_properties for message in messages)
    assert result.messages[-1] is messages[-1]


async def test_ours_among_theirs() -> None:
    """Next to the framework's strategies on one growing list, ours respects their exclusions, and the view stays valid."""
    messages: list[Message] = []
    tokenizer = CharacterEstimatorTokenizer()
    ours = as_framework_strategy(presets.context_window(2_500), counter="chars/4")
    strategies = [ours, SlidingWindowStrategy(keep_last_groups=12)]
    composed = TokenBudgetComposedStrategy(token_budget=2_500, tokenizer=tokenizer, strategies=strategies)
    for message in shop_messages(40):
        messages.append(message)
        shown = await apply_compaction(messages, strategy=composed, tokenizer=tokenizer)
        assert [problem for problem in agent_framework.validate(shown) if problem.rule != "pending-call"] == []
    assert shown[0] is messages[0]
    assert len(shown) < 40
