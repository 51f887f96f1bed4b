"""LangChain and LangGraph: requests that are too long, requests to compact, windows by name, and several workers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from compaction import CompactionResult, MessageIndex, last
from compaction.errors import BudgetUnsatisfiable
from compaction.integrations.langchain import CompactionMiddleware, RewritingMiddleware, langchain, model_name
from compaction.integrations.langgraph import StateKeys, SummarizationNode
from compaction.models import UnknownModel, input_limit
from compaction.strategies import Summarization, Truncation
from compaction.triggers import tokens_exceed
from tests.frameworks.model_server import ModelServer, prefix_breaks

CONFIG: Any = {"configurable": {"thread_id": "a"}}
NEVER = Truncation(trigger=tokens_exceed(1_000_000), keep=last(groups=1))


def look_up_price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item} costs 5 euros. " * 40


def make_agent(server: ModelServer, *middleware: Any, tools: Any = (look_up_price,), **options: Any) -> Any:
    model = ChatOpenAI(model="gpt-5", api_key="none", base_url=server.url, max_retries=0)  # type: ignore[arg-type]
    return create_agent(model, tools, middleware=middleware, **options)


def asked(turn: int) -> Any:
    return {"messages": [("user", f"What does item {turn} cost?")]}


class Numbered:
    """A summarizer that numbers its summaries and records its focuses."""

    def __init__(self) -> None:
        self.focuses: list[str | None] = []

    def summarize(self, request: Any) -> str:
        self.focuses.append(request.focus)
        return f"Summary {len(self.focuses)}: the prices of some items were looked up."


# --- requests that are too long ---------------------------------------------------------------------------------------


def too_long(calls: int, request: ModelRequest[None]) -> None:
    """Refuse a request as a provider does."""
    raise ValueError(f"maximum context length is 100 tokens; you requested {300 - calls} tokens")


def broken(calls: int, request: ModelRequest[None]) -> None:
    """Fail in another way."""
    raise ZeroDivisionError


@pytest.mark.parametrize("kind", [CompactionMiddleware, RewritingMiddleware])
@pytest.mark.parametrize(("refuse", "error", "most"), [(too_long, ValueError, 2), (broken, ZeroDivisionError, 1)])
async def test_one_retry_and_no_more(kind: Any, refuse: Any, error: type[Exception], most: int) -> None:
    """A second refusal ends the run, and another error ends it at once."""
    calls: list[ModelRequest[None]] = []
    messages: list[Any] = [HumanMessage("word " * 200), AIMessage("Yes."), HumanMessage("Go on.")]
    model = ChatOpenAI(model="gpt-5", api_key="none")  # type: ignore[arg-type]

    def handler(request: ModelRequest[None]) -> Any:
        calls.append(request)
        refuse(len(calls), request)

    async def handler_awaited(request: ModelRequest[None]) -> Any:
        handler(request)

    with pytest.raises(error):
        kind(NEVER, counter="chars/4").wrap_model_call(ModelRequest(model=model, messages=messages), handler)
    with pytest.raises(error):
        await kind(NEVER, counter="chars/4").awrap_model_call(ModelRequest(model=model, messages=messages), handler_awaited)
    assert len(calls) == 2 * most
    assert [len(request.messages) for request in calls[:most]] == [3, 2][:most]  # an excerpt of what left


def test_a_request_that_cannot_be_shortened() -> None:
    """The error lists what uses the space; its cause is the provider's error."""
    with ModelServer(window=30) as server, pytest.raises(BudgetUnsatisfiable, match="newest group must be kept"):
        make_agent(server, CompactionMiddleware(NEVER, counter="chars/4")).invoke({"messages": [("user", "word " * 400)]})


class State(MessagesState, total=False):
    """The state of the graph."""

    llm_input_messages: list[Any]
    compaction: dict[str, Any]


def make_graph(server: ModelServer, node: SummarizationNode, *, is_awaited: bool = False) -> Any:
    model = ChatOpenAI(model="gpt-5", api_key="none", base_url=server.url, max_retries=0)  # type: ignore[arg-type]
    view = node.keys.view or "messages"

    @node.retrying
    def answer(state: State) -> Any:
        return {"messages": [model.invoke([SystemMessage("You are a shop."), *state[view]])]}  # type: ignore[literal-required]

    @node.retrying
    async def answer_awaited(state: State) -> Any:
        return {"messages": [await model.ainvoke([SystemMessage("You are a shop."), *state[view]])]}  # type: ignore[literal-required]

    graph = StateGraph(State)
    graph.add_node("summarize", node)
    graph.add_node("answer", answer_awaited if is_awaited else answer)
    graph.add_edge(START, "summarize")
    graph.add_edge("summarize", "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("keys", [StateKeys(), StateKeys.rewriting()], ids=["view", "rewrite"])
@pytest.mark.parametrize("is_awaited", [False, True], ids=["invoked", "awaited"])
async def test_a_node_of_ones_own_is_run_once_more(keys: StateKeys, is_awaited: bool, server: ModelServer) -> None:
    """The function that calls the model gets a shorter view, and the node's next view continues it."""
    graph = make_graph(server, SummarizationNode(NEVER, keys=keys, counter="chars/4"), is_awaited=is_awaited)
    for turn in range(40):
        given = {"messages": [("user", f"What does item {turn} cost? " * 20)]}
        await graph.ainvoke(given, CONFIG) if is_awaited else graph.invoke(given, CONFIG)
    assert len(server.requests) == 40
    assert len(server.refused) == 1


# --- usage and windows ------------------------------------------------------------------------------------------------


def test_usage_is_read_from_replies() -> None:
    """A reply without sent tokens or without usage reports nothing."""
    usage: Any = {"input_tokens": 900, "output_tokens": 5, "total_tokens": 905}
    assert langchain.reported_usage(AIMessage("a", usage_metadata=usage)) == usage
    assert langchain.reported_usage(AIMessage("a", usage_metadata={**usage, "input_tokens": 0})) is None
    assert langchain.reported_usage(AIMessage("a")) is None
    assert langchain.reported_usage(HumanMessage("a")) is None


def test_the_window_of_the_models_name(server: ModelServer) -> None:
    """``window="auto"`` uses the request's model, or the node's model."""
    windows: list[int | None] = []

    def watch(index: MessageIndex) -> Any:
        windows.append(index.context.window)
        yield from ()

    make_agent(server, CompactionMiddleware(watch, window="auto")).invoke(asked(0))
    SummarizationNode(watch, window="auto", model="gpt-5").invoke({"messages": [HumanMessage("Hi")]})
    assert windows == [input_limit("gpt-5")] * 3
    with pytest.raises(UnknownModel):
        SummarizationNode(watch, window="auto", model="no-such").invoke({"messages": [HumanMessage("Hi")]})


def test_the_names_of_models() -> None:
    """A model's name is its own attribute, that of the model below bound tools, or its tracing name."""

    class Traced:
        def _get_ls_params(self) -> dict[str, Any]:
            return {"ls_model_name": "gpt-5"}

    model = ChatOpenAI(model="gpt-5", api_key="none")  # type: ignore[arg-type]
    assert [model_name(each) for each in (model, model.bind_tools([look_up_price]), Traced())] == ["gpt-5"] * 3
    assert model_name(RunnableLambda(str)) is None


# --- requests to compact ----------------------------------------------------------------------------------------------


async def test_the_model_asks_for_compaction(server: ModelServer) -> None:
    """A call of ``compact_conversation`` compacts before the next model call, once, with the focus of the call."""
    summarizer, results = Numbered(), list[CompactionResult]()
    strategy = Summarization(summarizer, trigger=tokens_exceed(1_000_000), keep=last(groups=1))
    middleware = CompactionMiddleware(strategy, compact_tool=True, counter="chars/4", on_result=results.append)
    agent = make_agent(server, middleware, tools=())
    history = [("user", "Tell me of tea. " * 50), ("assistant", "Tea is a drink. " * 50), ("user", "Now of prices.")]
    state = await agent.ainvoke({"messages": history})
    assert [call["name"] for message in state["messages"] for call in getattr(message, "tool_calls", ())] == [
        "compact_conversation"
    ]
    assert [bool(result.edits) for result in results] == [False, True]
    assert summarizer.focuses == ["Now of prices. (0)"]
    assert "Summary 1" in json.dumps(server.requests[-1]["messages"])


@pytest.mark.parametrize("kind", [CompactionMiddleware, RewritingMiddleware])
def test_the_host_asks_for_compaction(kind: Any, server: ModelServer) -> None:
    """``compact_next`` applies to the next model call of its thread only."""
    summarizer = Numbered()
    strategy = Summarization(summarizer, trigger=tokens_exceed(1_000_000), keep=last(groups=1))
    middleware = kind(strategy, counter="chars/4")
    agent = make_agent(server, middleware, checkpointer=InMemorySaver())
    for turn in range(2):
        agent.invoke(asked(turn), CONFIG)
    middleware.compact_next("a", "the cheapest item")
    agent.invoke(asked(2), {"configurable": {"thread_id": "b"}})
    assert summarizer.focuses == []
    for turn in range(2, 4):
        agent.invoke(asked(turn), CONFIG)
    assert summarizer.focuses == ["the cheapest item"]


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [StateKeys(), StateKeys(state=None)], ids=["saved", "by thread"])
def test_messages_that_the_application_deletes(keys: StateKeys, server: ModelServer) -> None:
    """The summary of messages that the application deleted stays in the view."""
    summarizer = Numbered()
    strategy = Summarization(summarizer, trigger=tokens_exceed(300), keep=last(groups=2))
    graph = make_graph(server, SummarizationNode(strategy, keys=keys, counter="chars/4"))
    for turn in range(30):
        state = graph.invoke(asked(turn), CONFIG)
        shown = {message.id for message in state["llm_input_messages"]}
        gone = [RemoveMessage(each.id) for each in state["messages"][:-1] if each.id not in shown]
        graph.update_state(CONFIG, {"messages": gone}, as_node="answer")
    assert len(prefix_breaks(server.requests)) == len(summarizer.focuses) > 1
    assert f"Summary {len(summarizer.focuses)}" in str(state["llm_input_messages"][0].content)
