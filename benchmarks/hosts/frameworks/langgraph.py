"""A custom LangGraph graph with a `SummarizationNode`: a view beside the messages, or messages that are deleted."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from langchain_core.messages import RemoveMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from compaction.integrations.langgraph import StateKeys, SummarizationNode

from ..contract import NATIVE, common
from ..measure import Case
from ..trial import INSTRUCTIONS, Trial
from .langchain import Threads, chat_model

SINCE: Final = 7
"""So many of the newest messages may stand between a hand-off and the end of its turn."""


class State(MessagesState, total=False):
    """The state of the graph."""

    llm_input_messages: list[Any]
    compaction: dict[str, Any]


class LangGraph(Threads):
    """A graph of summarize, answer and tools, in a loop; each conversation is a thread.

    Args:
        trial: What it is given.
        keys: Where in the state the node puts what it makes.
        deletes: Whether the application deletes, after each turn, the messages that a summary stands for.
        stream: Whether the model's words are streamed.
        responses: Whether the model speaks Responses.
        tools: The tools of the first agent.
    """

    def __init__(
        self,
        trial: Trial,
        *,
        keys: StateKeys | None = None,
        deletes: bool = False,
        stream: bool = False,
        responses: bool = False,
        tools: tuple[str, ...] = ("look_up_price",),
    ) -> None:
        super().__init__(trial)
        self._tools = tools
        self._deletes, self._keys, self._stream = deletes, keys or StateKeys(), stream
        self._client = chat_model(trial, streaming=stream, use_responses_api=responses)
        self._saver = InMemorySaver()
        self._build()

    def _build(self) -> None:
        """Compile the graph, as a starting process does."""
        trial, keys = self.trial, self._keys
        view = keys.view or keys.messages
        tools = [StructuredTool.from_function(coroutine=getattr(self, name), name=name) for name in self._tools]
        models = {"answer": self._client.bind_tools(tools), "specialist": self._client.bind_tools(tools[:1])}

        async def answer(state: Any, node: str = "answer") -> dict[str, Any]:
            return {"messages": [await models[node].ainvoke([SystemMessage(INSTRUCTIONS), *state[view]])]}

        def agent(state: Any) -> str:
            """Return the node of the agent whose turn it is."""
            newest = [getattr(each, "name", "") for each in state["messages"][-SINCE:]]
            return "specialist" if "transfer_to_specialist" in newest else "answer"

        graph = StateGraph(State)
        summarize = self.renewed(lambda: SummarizationNode(trial.strategy, keys=keys, overhead_tokens=100, **trial.options))
        graph.add_node("summarize", summarize)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "summarize")
        graph.add_conditional_edges("summarize", agent, list(models))
        for node in models:
            graph.add_node(node, partial(answer, node=node))
            graph.add_conditional_edges(
                node, lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
            )
        graph.add_edge("tools", "summarize")
        self.graph = graph.compile(checkpointer=self._saver)

    async def restart(self) -> None:
        self._build()

    async def close(self) -> None:
        await self._client.root_async_client.close()

    async def turn(self, conversation: str, text: str) -> None:
        config: Any = self.config(conversation)
        if self._stream:
            async for _ in self.graph.astream({"messages": [("user", text)]}, config, stream_mode="messages"):
                pass
            return
        state: Any = await self.graph.ainvoke({"messages": [("user", text)]}, config)
        if self._deletes:
            shown = {message.id for message in state["llm_input_messages"]}
            gone: list[Any] = [RemoveMessage(each.id) for each in state["messages"][:-1] if each.id not in shown]
            await self.graph.aupdate_state(config, {"messages": gone}, as_node="answer")
        await self.moved(conversation)


def _case(name: str, *, wire: str = "openai-chat", host: dict[str, Any] | None = None, **options: Any) -> Case:
    tools = options.get("tools", ("look_up_price",))
    make = partial(LangGraph, tools=tools, responses=wire == "openai-responses", **(host or {}))
    return Case(host="LangGraph", name=name, make=make, wire=wire, **options)


CASES = (
    _case("tool loop, a view beside the messages"),
    _case("tool loop, messages rewritten", host={"keys": StateKeys.rewriting()}),
    _case("tool loop, no place for state", host={"keys": StateKeys(state=None)}),
    _case("tool loop, summarized messages deleted by the application", host={"deletes": True}),
    _case("streaming", host={"stream": True}),
    _case("hand-offs", tools=("look_up_price", "transfer_to_specialist")),
    _case("native items", wire="openai-responses", **NATIVE),
    *common(_case),
)
