"""A conformance suite for your own strategies and triggers, and conversations to try them on.

::

    from compaction.testing import benchmark_strategy, check_strategy, check_trigger, conversations

    def test_my_strategy():
        check_strategy(my_strategy)

    @given(conversations(valid=False))                  # needs hypothesis; nothing else here does
    def test_my_strategy_on_anything(messages):
        check_strategy(my_strategy, messages=messages)

    print(benchmark_strategy(my_strategy))
"""

from __future__ import annotations

from .benchmarks import Benchmark, BenchmarkRow, benchmark_strategy
from .conversations import MissingHypothesis, conversations
from .laws import LAWS, LawBroken
from .samples import agent_session, sample_conversations
from .strategies import check_strategy
from .triggers import check_trigger

__all__ = [
    "LAWS",
    "Benchmark",
    "BenchmarkRow",
    "LawBroken",
    "MissingHypothesis",
    "agent_session",
    "benchmark_strategy",
    "check_strategy",
    "check_trigger",
    "conversations",
    "sample_conversations",
]
