"""A custom LangGraph graph with a `SummarizationNode`: a view beside the messages, or messages that are deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.messages import RemoveMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from compaction.integrations.langgraph import StateKeys, SummarizationNode

from ..measure import Case
from ..trial import INSTRUCTIONS, Host, Trial
from .langchain import chat_model


class State(MessagesState, total=False):
    """The state of the graph."""

    llm_input_messages: list[Any]
    compaction: dict[str, Any]


class LangGraph(Host):
    """A graph of summarize, answer and tools, in a loop; each conversation is a thread.

    Args:
        trial: What it is given.
        keys: Where in the state the node puts what it makes.
        deletes: Whether the application deletes, after each turn, the messages that a summary stands for.
        restarts: Whether each turn is another process, to which only what was saved is left.
    """

    def __init__(self, trial: Trial, *, keys: StateKeys | None = None, deletes: bool = False, restarts: bool = False) -> None:
        super().__init__(trial)
        self._deletes, self._restarts, self._keys = deletes, restarts, keys or StateKeys()
        self._client = chat_model(trial)
        self._saver = InMemorySaver()
        self._build()

    def _build(self) -> None:
        """Compile the graph, as a starting process does."""
        trial, keys = self.trial, self._keys
        view = keys.view or keys.messages
        tool = StructuredTool.from_function(coroutine=self.look_up_price, name="look_up_price")
        model = self._client.bind_tools([tool])

        async def answer(state: Any) -> dict[str, Any]:
            return {"messages": [await model.ainvoke([SystemMessage(INSTRUCTIONS), *state[view]])]}

        graph = StateGraph(State)
        graph.add_node("summarize", SummarizationNode(trial.strategy, keys=keys, overhead_tokens=100, **trial.options))
        graph.add_node("answer", answer)
        graph.add_node("tools", ToolNode([tool]))
        graph.add_edge(START, "summarize")
        graph.add_edge("summarize", "answer")
        graph.add_conditional_edges("answer", lambda state: "tools" if state["messages"][-1].tool_calls else END)
        graph.add_edge("tools", "summarize")
        self._graph = graph.compile(checkpointer=self._saver)

    async def close(self) -> None:
        await self._client.root_async_client.close()

    async def turn(self, conversation: str, text: str) -> None:
        if self._restarts:
            self._build()
        config: Any = {"configurable": {"thread_id": conversation}, "recursion_limit": 100}
        state: Any = await self._graph.ainvoke({"messages": [("user", text)]}, config)
        if self._deletes:
            shown = {message.id for message in state["llm_input_messages"]}
            gone: list[Any] = [RemoveMessage(each.id) for each in state["messages"][:-1] if each.id not in shown]
            await self._graph.aupdate_state(config, {"messages": gone}, as_node="answer")


def _case(name: str, *, host: dict[str, Any] | None = None, **options: Any) -> Case:
    return Case(host="LangGraph", name=name, make=partial(LangGraph, **(host or {})), **options)


CASES = (
    _case("tool loop, a view beside the messages"),
    _case("tool loop, messages rewritten", host={"keys": StateKeys.rewriting()}),
    _case("tool loop, no place for state", host={"keys": StateKeys(state=None)}),
    _case("summarized messages deleted by the application", host={"deletes": True}),
    _case("50 sessions at once", sessions=50),
    _case("cancellation in mid-summary", cancel_every=3),
    _case("1.9 characters a token", characters_per_token=1.9),
    _case("a process a request, 1.9 characters a token", host={"restarts": True}, brief=True, characters_per_token=1.9),
    _case("the summarizer fails", summaries="fail"),
)
