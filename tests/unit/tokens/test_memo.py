"""Memoized counters: they return the counts of the inner counter, and their memory is bounded."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.tokens import CharsPerToken, Memoized


@attrs.define
class Recorder:
    """Counts characters, and records the texts it was called with."""

    asked: list[str] = attrs.field(factory=list)
    name: str = "characters"
    exact: bool = True

    def count_text(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


@given(texts=st.lists(st.text(max_size=300), max_size=60), max_bytes=st.integers(1, 20_000))
def test_counts_are_the_inner_counters(texts: list[str], max_bytes: int) -> None:
    memo = Memoized(Recorder(), max_bytes)
    assert [memo.count_text(text) for text in texts] == [len(text) for text in texts]


def test_a_text_is_counted_once() -> None:
    recorder = Recorder()
    memo = Memoized(recorder)
    for _ in range(3):
        memo.count_text("".join(["again ", "and again"]))
        memo.count_text("another")
    assert recorder.asked == ["again and again", "another"]


def test_memory_has_a_bound() -> None:
    """The remembered texts fit the bound, and at least the newest ones of half its size are remembered."""
    texts = [f"{number:>1000}" for number in range(1_000)]
    fits = 100_000 // sys.getsizeof(texts[0])
    recorder = Recorder()
    memo = Memoized(recorder, 100_000)
    for text in texts:
        memo.count_text(text)
    recorder.asked.clear()
    for text in reversed(texts):
        if recorder.asked:
            break
        memo.count_text(text)
    remembered = texts.index(recorder.asked[0])
    newest = len(texts) - 1 - remembered
    assert fits // 2 - 5 <= newest <= fits


def test_what_is_used_stays() -> None:
    recorder = Recorder()
    memo = Memoized(recorder, 100_000)
    for number in range(2_000):
        memo.count_text(f"{number:>1000}")
        if number % 20 == 0:
            memo.count_text("the system prompt")
    assert recorder.asked.count("the system prompt") == 1


@pytest.mark.parametrize(("characters", "times"), [(12_000, 1), (12_600, 3)])
def test_a_very_long_text_is_not_kept(characters: int, times: int) -> None:
    recorder = Recorder()
    memo = Memoized(recorder, 100_000)
    for _ in range(3):
        memo.count_text("x" * characters)
    assert len(recorder.asked) == times


def test_threads_may_share_it() -> None:
    memo = Memoized(CharsPerToken(), 50_000)
    texts = [f"{number:>400}" for number in range(300)]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: [memo.count_text(text) for text in texts], range(16)))
    assert counts == [[100] * 300] * 16


def test_pickles_without_its_memory() -> None:
    memo = Memoized(CharsPerToken(), 5_000)
    memo.count_text("x" * 400)
    copy = pickle.loads(pickle.dumps(memo))
    assert (copy.inner, copy.max_bytes, copy.count_text("xxxx")) == (CharsPerToken(), 5_000, 1)
    assert len(pickle.dumps(memo)) < 200
