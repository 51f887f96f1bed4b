"""A recorded coding session, compacted in rounds by Hermes' own code around the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction import validate
from compaction.index.message_index import MessageIndex

ROUND = 60


@pytest.fixture
def rounds(
    configured: Callable[[float], None], agent: Callable[[], Any], coding: list[dict[str, Any]]
) -> tuple[Any, list[list[dict[str, Any]]]]:
    """Return the agent, and the messages after each round."""
    configured(0.05)
    made = agent()
    made.context_compressor.on_session_start("coding")
    view: list[dict[str, Any]] = []
    views: list[list[dict[str, Any]]] = []
    for start, end in slices(coding):
        view = [*view, *json.loads(json.dumps(coding[start:end]))]
        assert made.context_compressor.should_compress(100_000)  # as Hermes asks before it
        view, _ = made._compress_context(view, "", approx_tokens=None)
        views.append(list(view))
    return made, views


def slices(messages: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Return the start and end of each round: after a number of messages, and never before a call's results."""
    start = 0
    while start < len(messages):
        ends = (place for place in range(start + ROUND, len(messages)) if messages[place]["role"] != "tool")
        end = next((place for place in ends if not messages[place - 1].get("tool_calls")), len(messages))
        yield start, end
        start = end


def fingerprint(message: Any) -> str:
    return json.dumps(message, ensure_ascii=False)


def test_rounds(rounds: tuple[Any, list[list[dict[str, Any]]]], coding: list[dict[str, Any]]) -> None:
    """Each round makes progress, is counted, and leaves a valid request that Hermes' own last check does not change."""
    made, views = rounds
    engine = made.context_compressor
    assert len(views) >= 5
    assert engine.compression_count == len(views)
    for view in views:
        assert validate(view) == []
        assert made._sanitize_api_messages(view) == view
    whole = MessageIndex(coding, counter="chars/4").tokens
    assert MessageIndex(views[-1], counter="chars/4").tokens < whole / 3
    assert engine._last_compress_aborted is False
    assert engine.awaiting_real_usage_after_compression is True


def test_every_original_comes_back(rounds: tuple[Any, list[list[dict[str, Any]]]], coding: list[dict[str, Any]]) -> None:
    """By the ids in the last view's summary and stubs, the tools return every original, byte for byte.

    The system message, which got a note, stands for itself: it is found by its words.
    """
    made, views = rounds
    engine = made.context_compressor
    found = {fingerprint(message) for message in views[-1]}
    shown = json.dumps(views[-1])
    [summary] = re.findall(r"\[compaction (\w+) by Summarization", shown)
    for id in [summary, *re.findall(r'compaction_expand\(id=\\"(\w+)', shown)]:
        found.update(expanded(engine, id))
    assert [place for place, message in enumerate(coding) if fingerprint(message) not in found] == [0]
    query = {"query": " ".join(coding[0]["content"].split()[:8])}
    hits = json.loads(engine.handle_tool_call("compaction_grep", query))["results"]
    assert fingerprint(coding[0]) in [line for hit in hits for line in expanded(engine, hit["id"])]


def expanded(engine: Any, id: str) -> list[str]:
    """Return all that an id stands for, page by page, a line for each message, from the agent's tool."""
    pages: list[str] = []
    offset = 0
    while True:
        arguments = {"id": id, "form": "json", "limit": 50_000, "offset": offset}
        answer = json.loads(engine.handle_tool_call("compaction_expand", arguments, messages=[]))
        assert "error" not in answer, answer
        pages.append(answer["content"])
        if "next_offset" not in answer:
            return "".join(pages).split("\n")
        offset = answer["next_offset"]


def test_search(rounds: tuple[Any, list[list[dict[str, Any]]]]) -> None:
    """Messages that left the view are found by their words, and described."""
    made, _ = rounds
    engine = made.context_compressor
    described = json.loads(engine.handle_tool_call("compaction_describe", {}))
    assert described["messages"] > 200
    assert json.loads(engine.handle_tool_call("compaction_grep", {"query": "test"}))["matches"] > 0


def test_failure(home: Path, agent: Callable[[], Any], coding: list[dict[str, Any]]) -> None:
    """If the store is damaged, Hermes reports that nothing was compacted and keeps every message."""
    made = agent()
    warnings: list[str] = []
    made._emit_warning = warnings.append
    (home / "store.db").write_bytes(b"not a database" * 100)
    messages, _ = made._compress_context(list(coding), "")
    assert messages == coding
    assert made.context_compressor._last_compress_aborted is True
    assert "Compression aborted" in warnings[0]


def test_thrashing(configured: Callable[[float], None], agent: Callable[[], Any]) -> None:
    """After two compactions without effect, Hermes compacts again only after new messages, or at a person's request."""
    configured(0.02)
    made = agent()
    engine = made.context_compressor
    chat = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n} " * 40} for n in range(60)]
    limit = engine.threshold_tokens
    view: list[dict[str, Any]] = []
    for half in (chat[:30], chat[30:]):
        assert engine.should_compress(limit)
        view, _ = made._compress_context([*view, *half], "")
        engine.update_from_response({"prompt_tokens": limit, "completion_tokens": 1, "total_tokens": limit + 1})
    assert engine.should_compress() is False
    engine.update_from_response({"prompt_tokens": limit * 11 // 10})
    assert engine.should_compress() is True
    more = [*view, *({**message, "content": f"more {message['content']}"} for message in chat)]
    compacted, _ = made._compress_context(more, "", force=True)
    assert len(compacted) < len(more)
