"""Benchmarks of each strategy on an existing index, which is rolled back between rounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.conversation import conversation
from benchmarks.peer import PAIRS, Pair
from compaction import MessageIndex, run_sync

ROUNDS = {100: 200, 1_000: 50, 10_000: 10, 100_000: 3}


@cache
def index_of(size: int) -> MessageIndex:
    return MessageIndex(conversation(size), counter="chars/4")


@pytest.mark.parametrize("size", ROUNDS)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_strategy(benchmark: BenchmarkFixture, pair: Pair, size: int) -> None:
    index = index_of(size)
    strategy = pair.ours(size, index.total.tokens)

    def taken_back() -> tuple[tuple[Any, ...], dict[str, Any]]:
        index.rollback()
        return (index, strategy), {}

    benchmark.group = pair.name
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        run_sync, setup=taken_back, rounds=ROUNDS[size], warmup_rounds=1
    )
