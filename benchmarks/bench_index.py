"""Benchmarks of the operations of every turn: read, append, sync, evaluate a trigger, run a strategy with nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.conversation import conversation, rebuilt
from compaction import MessageIndex, presets, run_sync
from compaction.triggers import has_tool_calls, tokens_exceed

SIZES = (100, 1_000, 10_000, 100_000)
TURNS = 500

sizes = pytest.mark.parametrize("size", SIZES)


def pairs(size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the messages of consecutive turns."""
    return (conversation(2, start=start) for start in count(size, 2))


def append(index: MessageIndex, new: list[dict[str, Any]]) -> None:
    index.append(new)


def by_turns(benchmark: BenchmarkFixture, size: int, turn: Callable[[MessageIndex, list[dict[str, Any]]], object]) -> None:
    """Time turns on a conversation that has this many messages before the first turn."""
    index = MessageIndex(conversation(size), counter="chars/4")
    coming = pairs(size)
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        turn, setup=lambda: ((index, next(coming)), {}), rounds=TURNS, warmup_rounds=10
    )


@sizes
@pytest.mark.benchmark(group="read")
def test_read(benchmark: BenchmarkFixture, size: int) -> None:
    messages = conversation(size)
    benchmark(MessageIndex, messages, counter="chars/4")


@sizes
@pytest.mark.benchmark(group="append two messages")
def test_append(benchmark: BenchmarkFixture, size: int) -> None:
    by_turns(benchmark, size, append)


@sizes
@pytest.mark.benchmark(group="turn of two messages, nothing to do")
def test_turn(benchmark: BenchmarkFixture, size: int) -> None:
    strategy = presets.context_window(1_000 * size)

    def turn(index: MessageIndex, new: list[dict[str, Any]]) -> list[Any]:
        index.append(new)
        return run_sync(index, strategy).messages

    by_turns(benchmark, size, turn)


@sizes
@pytest.mark.parametrize("given", [list, rebuilt], ids=["same-objects", "rebuilt"])
@pytest.mark.benchmark(group="sync of the full list")
def test_sync(benchmark: BenchmarkFixture, size: int, given: Callable[[Any], list[Any]]) -> None:
    messages = conversation(size)
    index = MessageIndex(messages, counter="chars/4")
    benchmark(index.sync, given(messages))


@sizes
@pytest.mark.benchmark(group="trigger")
def test_trigger(benchmark: BenchmarkFixture, size: int) -> None:
    index = MessageIndex(conversation(size), counter="chars/4")
    benchmark(tokens_exceed(1_000 * size) & has_tool_calls, index)


@sizes
@pytest.mark.benchmark(group="metrics")
def test_metrics(benchmark: BenchmarkFixture, size: int) -> None:
    index = MessageIndex(conversation(size), counter="chars/4")
    benchmark(lambda: index.included)
