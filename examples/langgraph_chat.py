"""A chat graph that sorts waste, after the Eco2 project's: intent, vision, router, five workers, feedback, summarize, answer.

    START -> intent -> [vision] -> router -> waste -> feedback -+
                                          -> character ---------+
                                          -> location ----------+-> [summarize] -> answer -> END
                                          -> web_search --------+
                                          -> general -----------+

    $ echo "How do I throw a bottle away?" | OPENAI_API_KEY=... python examples/langgraph_chat.py sqlite:chats.db

The checkpointer is ``memory:``, ``sqlite:FILE`` or a ``postgresql://`` address. Needs the extra ``langgraph``,
langchain-openai, and the checkpointer's own package.
"""

import asyncio
import logging
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from compaction import presets
from compaction.integrations.langchain import ChatModelSummarizer
from compaction.integrations.langgraph import StateKeys, SummarizationNode

logger = logging.getLogger("chat")


def add_messages(existing: list[AnyMessage] | None, new: list[AnyMessage] | AnyMessage) -> list[AnyMessage]:
    """Append to the messages; with this reducer, a node can project but not rewrite."""
    return [*(existing or []), *(new if isinstance(new, list) else [new])]


class ChatState(TypedDict, total=False):
    """The graph's state: the conversation and the current turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    summary: str
    context: dict[str, Any]
    query: str
    image_url: str | None
    intent: str
    evidence: list[dict[str, Any]]
    character: dict[str, Any] | None
    location: dict[str, Any] | None
    web_results: list[dict[str, Any]]
    classification_result: str | None
    feedback: dict[str, Any]
    fallback_reason: str | None
    answer: str
    job_id: str
    user_id: str
    thread_id: str


# --- the steps before the answer: rules where the original asks services ----------------------------------------------

WORDS = {
    "character": ("character", "mascot"),
    "location": ("where", "near"),
    "web_search": ("news", "search"),
    "waste": ("throw", "bottle", "label", "can", "recycle"),
}
RULES = {
    "bottle": "PET bottles: empty them, take the label off, press them flat, close the cap.",
    "label": "Labels go with plastic film.",
    "can": "Cans: rinse them; aerosol cans are pierced outdoors first.",
}


def intent(state: ChatState) -> dict[str, Any]:
    """Start the turn: add the user's message, and find its intent."""
    words = state["query"].lower()
    found = next((name for name, signs in WORDS.items() if any(sign in words for sign in signs)), "general")
    return {"messages": [HumanMessage(state["query"])], "intent": found, "evidence": [], "fallback_reason": None}


def vision(state: ChatState) -> dict[str, Any]:
    """Describe the picture."""
    return {"classification_result": f"a plastic bottle ({state.get('image_url')})", "intent": "waste"}


def router(state: ChatState) -> dict[str, Any]:
    """Mark where the graph branches; its edges choose the worker."""
    return {}


def waste(state: ChatState) -> dict[str, Any]:
    """Find the rules for the waste in question."""
    words = f"{state['query']} {state.get('classification_result') or ''}".lower()
    return {"evidence": [{"item": item, "rule": rule * 6} for item, rule in RULES.items() if item in words]}


def character(state: ChatState) -> dict[str, Any]:
    """Find the mascot for the material."""
    return {"character": {"name": "Petty", "says": "Empty me first!"}}


def location(state: ChatState) -> dict[str, Any]:
    """Find the nearest recycling point."""
    return {"location": {"name": "Recycling point 3", "metres": 250}}


def web_search(state: ChatState) -> dict[str, Any]:
    """Find recent publications."""
    return {"web_results": [{"title": "Deposits rise", "text": "The deposit on bottles rises in spring. " * 8}]}


def general(state: ChatState) -> dict[str, Any]:
    """Look nothing up."""
    return {}


def feedback(state: ChatState) -> dict[str, Any]:
    """Check whether the rules that were found are sufficient."""
    found = len(state.get("evidence", []))
    return {"feedback": {"score": min(1.0, found / 2)}, "fallback_reason": None if found else "no rule was found"}


# --- the graph --------------------------------------------------------------------------------------------------------


def create_chat_graph(
    llm: BaseChatModel,
    *,
    checkpointer: Any = None,
    enable_summarization: bool = False,
    max_tokens_before_summary: int = 3_072,
    max_summary_tokens: int = 512,
    keep_recent_messages: int = 4,
) -> Any:
    """Build the graph, with or without the summarization node."""

    async def answer(state: ChatState) -> dict[str, Any]:
        """Ask the model, with the view if there is one."""
        facts = {name: state.get(name) for name in ("evidence", "character", "location", "web_results") if state.get(name)}
        view: list[AnyMessage] = (state.get("context") or {}).get("messages") or state["messages"]
        said = await llm.ainvoke([SystemMessage(f"You help to sort waste. Known for this turn: {facts}"), *view])
        return {"messages": [said], "answer": said.text}

    graph = StateGraph(ChatState)
    for node in (intent, vision, router, waste, character, location, web_search, general, feedback):
        graph.add_node(node.__name__, node)
    target = "answer"
    if enable_summarization:
        strategy = presets.langgraph_summary(
            ChatModelSummarizer(llm),
            max_tokens_before_summary=max_tokens_before_summary,
            max_summary_tokens=max_summary_tokens,
            keep_recent_messages=keep_recent_messages,
            on_failure="digest",
        )
        summarize = SummarizationNode(strategy, keys=StateKeys.chat_state(), counter="chars/4")
        graph.add_node("summarize", summarize)
        graph.add_edge("summarize", "answer")
        answer = summarize.retrying(answer)
        target = "summarize"
        logger.info("Summarization enabled (threshold=%d tokens)", max_tokens_before_summary)
    graph.add_edge(START, "intent")
    graph.add_conditional_edges("intent", _sees_a_picture)
    graph.add_edge("vision", "router")
    graph.add_conditional_edges("router", _worker, ["waste", "character", "location", "web_search", "general"])
    graph.add_edge("waste", "feedback")
    for name in ("character", "location", "web_search", "general", "feedback"):
        graph.add_edge(name, target)
    graph.add_node("answer", answer)
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=checkpointer)


def _sees_a_picture(state: ChatState) -> Literal["vision", "router"]:
    return "vision" if state.get("image_url") else "router"


def _worker(state: ChatState) -> str:
    return state["intent"]


def open_checkpointer(where: str) -> AbstractAsyncContextManager[Any]:
    """Open a checkpointer in memory, in a SQLite file or on a PostgreSQL server."""
    if where.startswith("sqlite:"):
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        return AsyncSqliteSaver.from_conn_string(where.removeprefix("sqlite:"))
    if where.startswith("postgresql:"):
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        return AsyncPostgresSaver.from_conn_string(where)
    return nullcontext(InMemorySaver())


async def main(where: str, threshold: int) -> None:
    """Answer one question a line; one that starts with ``image:`` comes with a picture."""
    async with open_checkpointer(where) as checkpointer:
        if hasattr(checkpointer, "setup"):
            await checkpointer.setup()
        llm = ChatOpenAI(model="gpt-5-mini")
        graph = create_chat_graph(
            llm, checkpointer=checkpointer, enable_summarization=True, max_tokens_before_summary=threshold
        )
        config = {"configurable": {"thread_id": "user-1"}}
        for line in sys.stdin:
            picture = "https://example.com/bottle.jpg" if line.startswith("image:") else None
            turn: Mapping[str, Any] = {"query": line.strip(), "image_url": picture}
            print((await graph.ainvoke(turn, config))["answer"], flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3_072))
