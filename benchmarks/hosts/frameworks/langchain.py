"""LangChain agents with `CompactionMiddleware` (with and without a checkpointer, or as a subgraph) or `RewritingMiddleware`."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
from pydantic import BaseModel

from compaction.integrations.langchain import CompactionMiddleware, RewritingMiddleware

from ..contract import NATIVE, OVERFLOW, common
from ..measure import Case
from ..trial import INSTRUCTIONS, TIMEOUT_SECONDS, Host, Trial


def chat_model(trial: Trial, **options: Any) -> ChatOpenAI:
    """Return a model of the trial's server, with another HTTP client: by default, models of one address share one.

    A later server may get the port of an earlier one, whose client is closed by then.
    """
    own: dict[str, Any] = {"http_client": DefaultHttpxClient(), "http_async_client": DefaultAsyncHttpxClient()}
    where: dict[str, Any] = {"base_url": trial.url, "api_key": "none", "timeout": TIMEOUT_SECONDS, "max_retries": 0}
    return ChatOpenAI(model="m", **where, **own, **options)


class Answer(BaseModel):
    """An answer with a price."""

    text: str
    euros: int


class Threads(Host):
    """The conversations of a graph: threads of its checkpointer, or branches of one, each known by its newest checkpoint.

    Args:
        trial: What it is given.
    """

    graph: Any

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._heads: dict[str, Any] = {}

    def config(self, conversation: str) -> dict[str, Any]:
        """Return the configuration of a turn."""
        head = self._heads.get(conversation, {"configurable": {"thread_id": conversation}})
        return {**head, "recursion_limit": 100}

    async def moved(self, conversation: str) -> None:
        """Remember where a branch ends after a turn."""
        if conversation in self._heads:
            thread = self._heads[conversation]["configurable"]["thread_id"]
            self._heads[conversation] = (await self.graph.aget_state({"configurable": {"thread_id": thread}})).config

    async def snapshot(self, conversation: str) -> Any:
        if conversation not in self._heads:
            self._heads[conversation] = (await self.graph.aget_state(self.config(conversation))).config
        return self._heads[conversation]

    async def restore(self, conversation: str, snapshot: Any) -> None:
        self._heads[conversation] = snapshot


class LangChain(Threads):
    """An agent, each conversation a thread of its checkpointer, or a list that the application keeps.

    Args:
        trial: What it is given.
        tools: The main agent's tools.
        middleware: The middleware.
        state: Where the messages are: in the agent's own checkpointer, in the application, or in the checkpointer of a graph
            whose node the agent is.
        stream: Whether the model's words are streamed.
        response_format: How the answer is structured, if it is.
        responses: Whether the model speaks Responses.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        tools: tuple[str, ...] = ("look_up_price",),
        middleware: Any = CompactionMiddleware,
        state: Literal["checkpointer", "application", "parent"] = "checkpointer",
        stream: bool = False,
        response_format: Any = None,
        responses: bool = False,
    ) -> None:
        super().__init__(trial)
        self._tools, self._state, self._stream, self._response_format = tools, state, stream, response_format
        self._kind = middleware
        self._model = chat_model(trial, streaming=stream, use_responses_api=responses)
        self._saver = InMemorySaver()
        self._kept: dict[str, list[Any]] = {}
        self._build()

    def _build(self) -> None:
        """Create the agents, as a starting process does."""
        compaction = self.renewed(lambda: self._kind(self.trial.strategy, **self.trial.options))
        approval = [HumanInTheLoopMiddleware({"place_order": True})] if "place_order" in self._tools else []
        saver = self._saver if self._state == "checkpointer" else None
        made = partial(create_agent, self._model, system_prompt=INSTRUCTIONS)
        self._specialist: Any = made(tools=[self._tool("look_up_price")], middleware=[compaction])
        self.graph: Any = made(
            tools=[self._tool(name) for name in self._tools],
            middleware=[*approval, compaction],
            response_format=self._response_format,
            checkpointer=saver,
        )
        if self._state == "parent":
            graph = StateGraph(MessagesState)
            graph.add_node("agent", self.graph)
            graph.add_edge(START, "agent")
            graph.add_edge("agent", END)
            self.graph = graph.compile(checkpointer=self._saver)

    def _tool(self, name: str) -> Any:
        return StructuredTool.from_function(coroutine=getattr(self, name), name=name)

    async def restart(self) -> None:
        self._build()

    async def close(self) -> None:
        await self._model.root_async_client.close()

    async def turn(self, conversation: str, text: str) -> None:
        if self.is_specialist(conversation):
            await self._specialist.ainvoke({"messages": [("user", text)]}, {"recursion_limit": 100})
            return
        config = self.config(conversation)
        if self._state == "application":
            kept = [*self._kept.get(conversation, ()), HumanMessage(text)]
            self._kept[conversation] = (await self.graph.ainvoke({"messages": kept}, config))["messages"]
            return
        given: Any = {"messages": [("user", text)]}
        while given is not None:
            if self._stream:
                async for _ in self.graph.astream(given, config, stream_mode="messages"):
                    pass
                return
            state = await self.graph.ainvoke(given, config)
            given = None
            if interrupts := state.get("__interrupt__"):
                self._build()  # only the checkpoints survive
                given = Command(resume={"decisions": [{"type": "approve"} for _ in interrupts[0].value["action_requests"]]})
        await self.moved(conversation)


def _case(name: str, *, wire: str = "openai-chat", host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(LangChain, tools=tools, responses=wire == "openai-responses", **(host or {}))
    return Case(host="LangChain", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop"),
    _case("tool loop, Responses", wire="openai-responses"),
    _case("tool loop, rewriting", host={"middleware": RewritingMiddleware}),
    _case("overflow once, rewriting", host={"middleware": RewritingMiddleware}, **OVERFLOW),
    _case("tool loop, without a checkpointer", host={"state": "application"}),
    _case("25 calls a turn", long=True),
    _case("25 calls a turn, without a checkpointer", long=True, host={"state": "application"}),
    _case("tool loop, as a subgraph of a checkpointed parent", host={"state": "parent"}),
    _case("streaming", host={"stream": True}),
    _case("structured output, by the provider", host={"response_format": ProviderStrategy(Answer)}),
    _case("structured output, by a tool", host={"response_format": ToolStrategy(Answer)}),
    _case("parallel sub-agents", tools=("look_up_price", "ask_specialist")),
    _case("approval, resumed from what was saved", tools=("look_up_price", "place_order")),
    _case("50 sessions at once, without a checkpointer", sessions=50, host={"state": "application"}),
    _case("native items", wire="openai-responses", **NATIVE),
    *common(_case),
)
