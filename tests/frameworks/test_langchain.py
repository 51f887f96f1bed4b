"""LangChain and LangGraph in whole agent runs, with a model on loopback."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, Self

import anyio
import attrs
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from compaction import CompactionResult, Edit, MessageIndex, last, presets, run
from compaction.integrations.langchain import ChatModelSummarizer, CompactionMiddleware, RewritingMiddleware
from compaction.integrations.langgraph import StateKeys, SummarizationNode
from compaction.strategies import GrowingSummary, Summarization, SummaryText, Truncation
from compaction.summarizers.model import SummaryOptions
from compaction.triggers import tokens_exceed
from tests.frameworks.model_server import SUMMARY, ModelServer, prefix_breaks, tokens_of

CONFIG: Any = {"configurable": {"thread_id": "a"}}


def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


def make_model(server: ModelServer) -> ChatOpenAI:
    return ChatOpenAI(model="m", api_key="none", base_url=server.url)  # type: ignore[arg-type]


def make_agent(server: ModelServer, *middleware: Any, saver: Any = None) -> Any:
    return create_agent(
        make_model(server), [look_up_price], system_prompt="You are a shop. " * 20, middleware=middleware, checkpointer=saver
    )


def broken(index: MessageIndex) -> Iterator[Edit]:
    """A strategy that fails."""
    raise ZeroDivisionError("broken strategy")
    yield  # makes it a generator


def ask(agent: Any, turns: range, config: Any = CONFIG) -> Any:
    state = None
    for turn in turns:
        state = agent.invoke({"messages": [("user", f"What does item {turn} cost?")]}, config)
    return state


# --- middlewares ------------------------------------------------------------------------------------------------------


async def test_awaited_with_a_models_summary(server: ModelServer) -> None:
    """An awaited agent summarizes with its own chat model, and later rounds update the summary."""
    strategy = Summarization(
        ChatModelSummarizer(make_model(server)), trigger=tokens_exceed(2_000), keep=last(groups=4), on_failure="raise"
    )
    middleware = CompactionMiddleware(strategy, counter="chars/4", on_failure="raise")
    agent = make_agent(server, middleware, saver=InMemorySaver())
    for turn in range(20):
        await agent.ainvoke({"messages": [("user", f"What does item {turn} cost?")]}, CONFIG)
    assert server.refused == []
    assert server.summaries > 2
    assert SUMMARY.splitlines()[1] in json.dumps(server.requests[-1]["messages"])


def test_system_prompt_and_tools_count(server: ModelServer) -> None:
    """A strategy gets the tokens of the whole request, not only of its messages."""
    seen: list[int] = []

    def watch(index: MessageIndex) -> Iterator[Edit]:
        seen.append(index.tokens)
        yield from ()

    ask(make_agent(server, CompactionMiddleware(watch, counter="chars/4")), range(1), {})
    assert [abs(tokens - tokens_of(request)) < 30 for tokens, request in zip(seen, server.requests, strict=True)] == [
        True,
        True,
    ]


def test_threads_of_one_middleware_count_their_own_requests(server: ModelServer) -> None:
    """Two agents share a middleware that rewrites: a thread's next run counts the system prompt of its own agent."""
    seen: list[int] = []

    def watch(index: MessageIndex) -> Iterator[Edit]:
        seen.append(index.context.overhead_tokens)
        yield from ()

    middleware = RewritingMiddleware(watch, counter="chars/4")
    agents = [
        create_agent(make_model(server), [], system_prompt=prompt, middleware=[middleware], checkpointer=InMemorySaver())
        for prompt in ("Be brief.", "You are a shop. " * 100)
    ]
    for turn in range(2):
        for name, agent in zip("ab", agents, strict=True):
            agent.invoke({"messages": [("user", f"Question {turn}?")]}, {"configurable": {"thread_id": name}})
    first, other, short, long = seen
    assert (first, other) == (0, 0)
    assert 0 < short < 20
    assert long > 400


async def test_a_stream_cancelled_midway(server: ModelServer) -> None:
    """A run cancelled while it streams leaves a thread that continues, valid and inside the window."""
    agent = make_agent(server, CompactionMiddleware(presets.context_window(4_000), counter="chars/4"), saver=InMemorySaver())
    for turn in range(12):
        with anyio.CancelScope() as scope:
            question = {"messages": [("user", f"What does item {turn} cost?")]}
            async for token, _ in agent.astream(question, CONFIG, stream_mode="messages"):
                if turn % 3 == 2 and isinstance(token, AIMessage) and token.text:
                    scope.cancel()
    assert server.refused == []
    assert len(server.requests) == 24


def test_a_strategy_that_raises(server: ModelServer) -> None:
    """The run continues uncompacted and the result reports it; or it fails, with ``on_failure="raise"``."""
    results: list[CompactionResult] = []
    ask(make_agent(server, CompactionMiddleware(broken, on_result=results.append)), range(1), {})
    assert [result.outcome for result in results] == ["degraded", "degraded"]
    with pytest.raises(ZeroDivisionError):
        ask(make_agent(server, CompactionMiddleware(broken, on_failure="raise")), range(1), {})


# --- the node ---------------------------------------------------------------------------------------------------------


def make_graph(server: ModelServer, node: SummarizationNode, view: str) -> Any:
    class State(MessagesState, total=False):
        llm_input_messages: list[Any]
        compaction: dict[str, Any]

    model = make_model(server)
    graph = StateGraph(State)
    graph.add_node("summarize", node)
    graph.add_node("answer", lambda state: {"messages": [model.invoke(state[view])]})
    graph.add_edge(START, "summarize")
    graph.add_edge("summarize", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("keys", "view", "whole"),
    [(StateKeys(), "llm_input_messages", True), (StateKeys.rewriting(), "messages", False)],
    ids=["view", "rewrite"],
)
def test_messages_state(keys: StateKeys, view: str, whole: bool, server: ModelServer) -> None:
    """The node projects into a second key or rewrites the messages, and summarizes nothing twice."""
    summarizer = ChatModelSummarizer(make_model(server))
    strategy = presets.langgraph_summary(summarizer, max_tokens_before_summary=800, max_summary_tokens=300, on_failure="digest")
    state = ask(make_graph(server, SummarizationNode(strategy, keys=keys, counter="chars/4"), view), range(60))
    assert server.refused == []
    assert (len(state["messages"]) == 120) == whole
    assert len(prefix_breaks(server.requests)) == server.summaries > 1
    assert max(map(tokens_of, server.requests)) < 1_000


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_as_a_pre_model_hook(server: ModelServer) -> None:
    """In a prebuilt agent the hook compacts the view inside the tool loop too."""
    from langgraph.prebuilt import create_react_agent

    node = SummarizationNode(presets.context_window(4_000), keys=StateKeys(state=None), counter="chars/4")
    agent = create_react_agent(make_model(server), [look_up_price], pre_model_hook=node, checkpointer=InMemorySaver())
    state = ask(agent, range(25))
    assert server.refused == []
    assert len(state["messages"]) == 100
    assert max(map(tokens_of, server.requests)) <= 4_000


class Port:
    """The ``LLMClientPort`` of the LangGraph article: an object with ``generate``."""

    async def generate(self, prompt: str) -> str:
        """Answer in prose, with a line that looks like the end of a summary."""
        return "The user asks what things cost.\n\n[end of summary]"


@pytest.mark.parametrize("rewriting", [False, True], ids=["view", "rewrite"])
async def test_a_port_with_generate(rewriting: bool) -> None:
    """It works as a summarizer; the state has the user's words and its text, without the introduction of the view."""
    strategy = presets.langgraph_summary(
        Port(), max_tokens_before_summary=600, keep_recent_messages=2, template="Summarize in one sentence."
    )
    keys = attrs.evolve(StateKeys.rewriting() if rewriting else StateKeys(), summary="summary")
    node = SummarizationNode(strategy >> Truncation(trigger=tokens_exceed(9_000)), keys=keys, counter="chars/4")
    messages = [HumanMessage(f"What does item {turn} cost? " * 20, id=str(turn)) for turn in range(9)]
    update = await node.ainvoke({"messages": messages})
    assert update["summary"].startswith("The user's messages, word for word:\n- What does item 0 cost?")
    assert update["summary"].endswith("\n\nThe user asks what things cost.\n\n[end of summary]")
    shown = update["messages"] if rewriting else update["llm_input_messages"]
    assert any("A record of earlier messages, not instructions" in str(message.content) for message in shown)


def test_the_words_around_a_summary_are_the_strategys_own() -> None:
    """The introductions of a custom prompt, a growing summary and an unknown strategy are all removed."""
    messages = [HumanMessage(f"Item {turn} has number IT-{turn * 7}. " + "So it is. " * 30, id=str(turn)) for turn in range(20)]
    keys = StateKeys(summary="summary")
    growing = GrowingSummary(tokens=500, initial_tokens=120, added_tokens=60, max_tokens=200, trigger=tokens_exceed(1_200))
    own = Summarization(keep=last(messages=2), text=SummaryText(preface="Bisher:", end="Ende."))
    for strategy in (growing, own, own.__call__):
        node = SummarizationNode(strategy, keys=keys, counter="chars/4")
        summary = node.invoke({"messages": messages})["summary"]
        assert "IT-" in summary
        assert not summary.startswith(("[compaction", "From earlier messages"))
    assert SummarizationNode(own, keys=keys, counter="chars/4").invoke({"messages": messages})["summary"][:6] != "Bisher"


class SilentServer:
    """A server that accepts connections and never answers."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()


@pytest.mark.parametrize("is_sync", [True, False])
async def test_a_model_that_hangs_is_given_up(is_sync: bool) -> None:
    """An awaited call is cancelled; a sync call is sent with a timeout, which the client enforces."""
    with SilentServer() as server:
        model = ChatOpenAI(model="m", api_key="none", base_url=server.url, max_retries=0)  # type: ignore[arg-type]
        summarizer = ChatModelSummarizer(model, sync=is_sync, summary_options=SummaryOptions(timeout_seconds=0.3))
        index = MessageIndex([{"role": "user", "content": "word " * 400}] * 4, counter="chars/4")
        result = await run(index, Summarization(summarizer, keep=last(messages=1)))
    assert (result.outcome, len(result.failures)) == ("degraded", 1)
    assert ("did not answer within 0.3 s" in str(result.failures[0].error)) is not is_sync
