"""The chat graph of the example: every path through it, every checkpointer, and a new process in the middle."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from tests.frameworks import postgres
from tests.frameworks.model_server import SUMMARY, ModelServer, prefix_breaks, tokens_of
from tests.frameworks.programs import ROOT, Example

ASKED = ("How do I throw a bottle away?", "And the label?", "Where is the point?", "Any news?", "Who is the mascot?", "Thanks!")
QUESTIONS = [f"{words} (question {place})" for place, words in enumerate(ASKED * 40)]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("langgraph_chat", ROOT / "examples" / "langgraph_chat.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    folder = postgres.binaries()
    if folder is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres.serving(folder) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def checkpointer(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Yield a checkpointer that saves the graph's state between processes."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'chats.db'}"
    return str(request.getfixturevalue("postgres_address"))


@pytest.mark.parametrize(
    ("query", "image", "worker"),
    [
        ("How do I throw a bottle away?", None, "waste"),
        ("Who is the mascot?", None, "character"),
        ("Where is it?", None, "location"),
        ("Any news?", None, "web_search"),
        ("Thanks!", None, "general"),
        ("What is this?", "https://example.com/a.jpg", "waste"),
    ],
)
async def test_every_way_through_the_graph(example: ModuleType, query: str, image: str | None, worker: str) -> None:
    """Each intent goes to its worker, a picture to vision, waste to feedback, and all through the summary node."""
    llm = GenericFakeChatModel(messages=iter([AIMessage("Like this.")]))
    graph = example.create_chat_graph(llm, enable_summarization=True)
    steps = graph.astream({"query": query, "image_url": image}, stream_mode="updates")
    visited = [name async for step in steps for name in step]
    assert visited[0] == "intent"
    assert ("vision" in visited) == (image is not None)
    assert worker in visited
    assert ("feedback" in visited) == (worker == "waste")
    assert visited[-2:] == ["summarize", "answer"]


async def test_without_the_node(example: ModuleType) -> None:
    graph = example.create_chat_graph(GenericFakeChatModel(messages=iter([AIMessage("Hello.")])))
    assert "summarize" not in graph.get_graph().nodes
    assert (await graph.ainvoke({"query": "Hi"}))["answer"] == "Hello."


async def test_in_memory_over_200_turns(example: ModuleType, server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    """The messages stay whole, the view stays small, the summary is in the state, and the log reports it."""
    caplog.set_level(logging.INFO, logger="compaction.langgraph")
    llm = ChatOpenAI(model="m", api_key="none", base_url=server.url)
    summaries: Any = {"enable_summarization": True, "max_tokens_before_summary": 1_000}
    graph = example.create_chat_graph(llm, checkpointer=InMemorySaver(), **summaries)
    config: dict[str, Any] = {"configurable": {"thread_id": "a"}}
    for question in QUESTIONS[:200]:
        state = await graph.ainvoke({"query": question}, config)
    assert len(state["messages"]) == 400
    assert "\n\nThe user's messages, word for word:\n" in state["summary"]
    assert state["summary"].startswith(f"{SUMMARY}\n\n")
    assert len(state["context"]["messages"]) < 100
    assert server.refused == []
    assert max(tokens_of(request) for request in server.requests) < 2_000
    assert 0 < server.summaries < 40
    events = [record.getMessage() for record in caplog.records]
    assert events.count("conversation_summarized") == events.count("context_compressed") == server.summaries
    fields = {record.getMessage(): record.__dict__ for record in reversed(caplog.records)}
    assert fields["conversation_summarized"]["summary_length"] > len(SUMMARY)
    compressed = fields["context_compressed"]
    assert 1_000 > compressed["original_tokens"] > 700  # with the system prompt, by the reported usage, over 1,000
    assert compressed["original_tokens"] > compressed["compressed_tokens"]
    assert compressed["compression_ratio"].endswith("%")


def test_a_fresh_process_goes_on(checkpointer: str, server: ModelServer) -> None:
    """Across three processes, the view of a conversation grows only at its end, and nothing is summarized twice."""
    for start in (0, 34, 68):
        answers = Example("langgraph_chat", server, [checkpointer, "1000"]).ask(QUESTIONS[start : start + 34])
        assert len(answers) == 34
    assert server.refused == []
    views = [{"messages": request["messages"][1:]} for request in server.requests]  # the first differs on each turn
    breaks = prefix_breaks(views)
    assert len(breaks) == server.summaries > 1
    assert not {34, 68} & set(breaks)


def test_killed_in_a_turn(checkpointer: str, server: ModelServer) -> None:
    """After a kill during the model's answer, the next process has all earlier turns and the summary."""
    program = Example("langgraph_chat", server, [checkpointer, "1000"])
    program.ask(QUESTIONS[:40], kill_at=36)
    before, summaries = server.requests[-1]["messages"][1:], server.summaries
    program.ask(QUESTIONS[35:40])
    assert summaries > 0
    assert server.requests[36]["messages"][1 : len(before)] == before[:-1]
