"""A recorded coding session, compacted in rounds by Hermes' own code around the engine."""

from __future__ import annotations

import json
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
