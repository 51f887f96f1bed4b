"""Counters that need no vocabulary: a ratio to characters or bytes, and the byte-class estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.tokens import ByteClassEstimate, BytesPerToken, CharsPerToken, TokenCounter

COUNTERS = [CharsPerToken(), BytesPerToken(), ByteClassEstimate()]
TEXTS = st.text(st.one_of(st.characters(), st.integers(0xD800, 0xDFFF).map(chr)))

every_counter = pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)


@every_counter
@given(text=TEXTS)
def test_only_the_empty_text_is_free(counter: TokenCounter, text: str) -> None:
    """Any text counts at least one token, the empty one none; lone surrogates, which JSON can carry, are text."""
    assert (counter.count_text(text) > 0) == (text != "")


@pytest.mark.parametrize(
    ("text", "chars", "of_bytes"),
    [("", 0, 0), ("a", 1, 1), ("abcd", 1, 1), ("abcde", 2, 2), ("한국", 1, 2), ("한국어입니", 2, 4), ("\ud800", 1, 1)],
)
def test_ratios_round_up(text: str, chars: int, of_bytes: int) -> None:
    assert (CharsPerToken().count_text(text), BytesPerToken().count_text(text)) == (chars, of_bytes)


@pytest.mark.parametrize("name", ["tau_airline", "whowhen_multiagent", "openhands", "acebench_zh"])
def test_estimate_is_near_the_exact_total(corpus: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    """For recorded conversations, the estimate is within 5 percent of o200k_base, and closer than ``chars/4``."""
    toktok = pytest.importorskip("toktok", reason="the exact counts to compare with come from toktok")
    contents = [message["content"] for conversation in corpus(name) for message in conversation["messages"]]
    texts = [content for content in contents if isinstance(content, str)]
    exact = sum(toktok.batch_count(texts, "o200k_base"))
    off = {counter.name: abs(sum(map(counter.count_text, texts)) - exact) / exact for counter in COUNTERS}
    assert off["estimate"] <= 0.05
    assert off["estimate"] < off["chars/4"]
