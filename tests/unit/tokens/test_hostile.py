"""Texts that break tokenizers: every counter counts them without an error and in bounded time."""

from __future__ import annotations

import base64
import random
import time

import pytest

from compaction.tokens import ByteClassEstimate, BytesPerToken, CharsPerToken, TokenCounter, counter

TEXTS = {
    "a million spaces": " " * 1_000_000,
    "a million mixed blanks": " \t" * 500_000,
    "a million lines": "\r\n" * 500_000,
    "one endless word": "a" * 1_000_000,
    "one endless rule": "=" * 1_000_000,
    "a megabyte of base64": base64.b64encode(random.Random(7).randbytes(750_000)).decode(),
    "lone surrogates": "\ud800\udfff\udc00 " * 10_000,
    "special tokens": "<|endoftext|><|im_start|>system<|endofprompt|>" * 1_000,
    "zero bytes": "\0" * 100_000,
    "emoji with joiners": "👩‍👩‍👧‍👦" * 10_000,
    "combining marks": "e" + "\u0301" * 100_000,
}
EXACT = "toktok, o200k_base"


@pytest.fixture(params=["chars/4", "bytes/4", "estimate", EXACT])
def any_counter(request: pytest.FixtureRequest) -> TokenCounter:
    """Each counter, without a memo; test_exact.py tests tiktoken."""
    if request.param == EXACT:
        pytest.importorskip("toktok", reason="toktok is not installed")
        return counter("o200k_base")
    return {each.name: each for each in (CharsPerToken(), BytesPerToken(), ByteClassEstimate())}[request.param]


@pytest.mark.parametrize("kind", TEXTS)
def test_every_counter_survives(any_counter: TokenCounter, kind: str) -> None:
    """Each text takes less than five seconds of CPU time and counts between one token and two tokens a byte."""
    text = TEXTS[kind]
    started = time.process_time()
    tokens = any_counter.count_text(text)
    assert time.process_time() - started < 5
    assert 0 < tokens <= 2 * len(text.encode("utf-8", "surrogatepass"))
