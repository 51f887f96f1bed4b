"""The laws on all recorded conversations of real agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compaction import MessageIndex, compact_sync
from compaction.testing import check_strategy
from tests.support.chats import indexed
from tests.support.limits import count
from tests.support.options import settling
from tests.support.wires import STRATEGIES

Corpus = Callable[[str], list[dict[str, Any]]]

FILES = (
    *("acebench_zh", "cassettes", "coding_long", "inspect_logs", "openhands"),
    *("sweagent_demos", "tau_airline", "tau_long", "whowhen_multiagent"),
)


@pytest.mark.parametrize("number", range(len(STRATEGIES)))
@pytest.mark.parametrize("name", FILES)
def test_laws_hold_on_recorded_conversations(corpus: Corpus, name: str, number: int) -> None:
    """Every strategy keeps laws 1 to 5, 7 and 9 on recorded conversations of agents and their providers.

    Each takes a tenth of them, beginning at another one, so that two or three strategies meet each conversation; in ``make
    soak`` each takes all.
    """
    strategy, step = STRATEGIES[number], count(10, 1)
    for conversation in corpus(name)[number % step :: step]:
        check_strategy(strategy, messages=conversation["messages"], settles_in=settling(strategy))


@pytest.mark.parametrize("name", FILES)
def test_growing_recorded_conversations_equal_the_whole(corpus: Corpus, name: str) -> None:
    """Law 8: an index of a recorded conversation is the same whether built at once, message by message, or by several syncs."""
    for messages in (conversation["messages"] for conversation in corpus(name)):
        appended, synced, whole = indexed([]), indexed([]), indexed(messages)
        for message in messages:
            appended.append([message])
        for end in (len(messages) // 3, len(messages) // 2, len(messages)):
            synced.sync(json.loads(json.dumps(messages[:end])))
        assert facts(appended) == facts(synced) == facts(whole)


def facts(index: MessageIndex) -> tuple[Any, ...]:
    groups = [(group.id, group.kind, group.turn) for group in index.included_groups]
    return index.included, index.total, index.to_dict(), groups


def test_every_configuration_does_something(corpus: Corpus) -> None:
    """Every configuration edits at least one recorded conversation, so none keeps the laws by doing nothing."""
    recorded = [conversation["messages"] for name in FILES for conversation in corpus(name)]
    for strategy in STRATEGIES:
        assert any(compact_sync(messages, strategy, counter="chars/4").edits for messages in recorded), strategy
