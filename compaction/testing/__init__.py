"""A conformance suite for your own strategies and triggers, with conversations to run them on.

::

    from compaction.testing import benchmark_strategy, check_strategy, check_trigger, conversations

    def test_my_strategy():
        print(check_strategy(my_strategy))              # on how many conversations it fired, and how many edits it made

    @given(conversations(valid=False))                  # the only part that needs hypothesis
    def test_my_strategy_on_anything(messages):
        check_strategy(my_strategy, messages=messages)

    print(benchmark_strategy(my_strategy))

``docs/own-strategies.md`` shows how to write strategies and triggers.
"""

from __future__ import annotations

from .benchmarks import benchmark_strategy
from .conformance import CheckReport, check_strategy, check_trigger
from .conversations import conversations
from .laws import LAWS as LAWS
from .laws import LawBroken
from .samples import agent_session, sample_conversations

__all__ = [
    "CheckReport",
    "LawBroken",
    "agent_session",
    "benchmark_strategy",
    "check_strategy",
    "check_trigger",
    "conversations",
    "sample_conversations",
]
