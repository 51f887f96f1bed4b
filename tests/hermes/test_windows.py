"""The engine beside Hermes' own compressor, both in Hermes' loop at default settings, in windows of 16,000 to 64,000 tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from compaction import validate
from compaction.integrations.hermes.plugin import engine_class
from tests.support.hosts import RESULT_TOKENS, Chat, cache_use, calls_with, requests, tokens_of
from tests.support.scripted import Scripted

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


@pytest.mark.parametrize("window", [16_000, 24_000, 32_000, 48_000, 64_000, 128_000, 200_000])
@pytest.mark.parametrize("tokens", RESULT_TOKENS.values(), ids=RESULT_TOKENS)
def test_costs(window: int, tokens: Callable[[int], int], compressor: Callable[[int], Any]) -> None:
    """The engine requests no more summaries than Hermes' compressor, and no more uncached tokens, except for the earlier cut.

    Hermes waits until 75 or 85 % of the window are full, the engine until 50 %. So it may cut once where Hermes never does.
    """
    chat, summarizer = calls_with(tokens), Scripted("## Goal\nFind the fault. " + "word " * (window // 40))
    ours = engine_class()(context_length=window, counter="chars/4", summarizer=summarizer)
    cuts, uncached = cache_use(copy.deepcopy(request) for request in requests(ours, copy.deepcopy(chat)))
    theirs = compressor(window)
    their_cuts, their_uncached = cache_use(copy.deepcopy(request) for request in requests(theirs, copy.deepcopy(chat)))
    assert len(summarizer.requests) <= theirs.compression_count
    assert uncached <= their_uncached + 0.4 * ours.threshold_tokens * max(0, cuts - their_cuts)
