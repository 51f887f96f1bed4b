"""The engine beside Hermes' own compressor, both in Hermes' loop at default settings, in windows of 16,000 to 64,000 tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from compaction import presets, validate
from compaction.integrations.hermes.plugin import engine_class
from compaction.session import CompactionSession
from compaction.testing import agent_session
from tests.support.hermes_host import Chat, requests, tokens_of

WINDOWS = [64_000, 32_000, 16_000]


@pytest.fixture
def compressor(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Return Hermes' own compressor, whose summary has at most as many tokens as it requests."""
    from agent import context_compressor

    def make(window: int) -> Any:
        def call_llm(*_: Any, **options: Any) -> Any:
            message = SimpleNamespace(content="## Goal\n" + "word " * (window // 25))
            return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

        monkeypatch.setattr(context_compressor, "call_llm", call_llm)
        monkeypatch.setattr(context_compressor, "get_model_context_length", lambda *_, **options: window)
        return context_compressor.ContextCompressor("replayed", quiet_mode=True)

    return make


def too_large(engine: Any, conversation: Chat, window: int) -> set[int]:
    """Return the numbers of the requests that exceed the window; every request is valid."""
    found: set[int] = set()
    for number, request in enumerate(requests(engine, copy.deepcopy(conversation))):
        assert validate(request) == []
        if tokens_of(request) > window:
            found.add(number)
    return found


@pytest.mark.parametrize("window", WINDOWS)
def test_recorded_session(window: int, recorded: Chat, compressor: Callable[[int], Any]) -> None:
    """668 messages exceed the window only where Hermes' own compressor does too."""
    ours = too_large(engine_class()(context_length=window, counter="chars/4"), recorded, window)
    assert ours <= too_large(compressor(window), recorded, window)


@pytest.mark.parametrize("window", WINDOWS)
def test_preset(window: int, recorded: Chat) -> None:
    """The preset in a session, which uses its own trigger, never exceeds the window."""
    session = CompactionSession(presets.hermes(window), counter="chars/4", window=window)
    for place, message in enumerate(recorded):
        if message["role"] == "assistant":
            session.view_sync(recorded[:place])
            assert session.index.included.tokens <= window


def test_long_run(compressor: Callable[[int], Any]) -> None:
    """120 calls with results of 1,400 tokens in a window of 32,000: both stay inside, and the engine's peak is lower."""
    chat = agent_session(300, lines=85)
    answers = [place for place, message in enumerate(chat) if message["role"] == "assistant"]
    chat = chat[: answers[119] + 1]
    peaks: list[int] = []
    for engine in (engine_class()(context_length=32_000, counter="chars/4"), compressor(32_000)):
        sizes = [tokens_of(request) for request in requests(engine, copy.deepcopy(chat))]
        assert len(sizes) == 120
        peaks.append(max(sizes))
    assert peaks[0] < peaks[1] < 32_000
