"""Law 11: what a person said leaves a view only if its words, or a summary made from it, are in the new view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import Drop, MessageIndex, RunContext, last, run_sync
from compaction.formats import FORMATS
from compaction.strategies import Truncation
from compaction.testing import LawBroken, check_strategy, sample_conversations
from compaction.testing.laws import lost_words
from compaction.triggers import tokens_exceed
from tests.laws.test_instructions import PRESETS
from tests.support.chats import assistant, user
from tests.support.limits import count, seeds
from tests.support.options import settling
from tests.support.worded_sessions import problems

Corpus = Callable[[str], list[dict[str, Any]]]

FILES = ("openhands", "sweagent_demos", "tau_airline", "cassettes", "inspect_logs", "acebench_zh", "whowhen_multiagent")


@pytest.mark.parametrize("first", seeds(50, 120)[::10])
def test_no_session_loses_what_the_user_said(first: int) -> None:
    """In random sessions, with summarizers that fail, nothing the user said is lost unless ``failures`` says so."""
    assert [found for seed in range(first, first + 10) for found in problems(seed)] == []


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("window", [300, 1_500])
def test_every_preset_keeps_the_law_in_every_format(format: Any, name: str, window: int) -> None:
    strategy = PRESETS[name](window)
    for conversation in sample_conversations(format):
        check_strategy(strategy, messages=conversation, format=format, words=True, settles_in=settling(strategy))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("window", [1_000, 4_000])
def test_every_preset_keeps_the_law_on_recorded_conversations(corpus: Corpus, file: str, window: int) -> None:
    for conversation in corpus(file)[: count(6, 12)]:
        for make in PRESETS.values():
            index = MessageIndex(conversation["messages"], counter="chars/4", context=RunContext(window=window))
            result = run_sync(index, make(window))
            assert result.failures or lost_words(index) == []


def test_a_dropped_message_is_noticed() -> None:
    index = MessageIndex([user("Never push."), assistant("No."), user("Go on.")], counter="chars/4")
    assert lost_words(index) == []
    index.apply(Drop([0], reason="old"))
    assert lost_words(index) == [0]


def test_a_strategy_that_drops_the_oldest_breaks_the_law() -> None:
    """``check_strategy(words=True)`` refuses a strategy that drops user messages, which the other laws allow."""
    said = [user(f"Order {number}: " + "word " * 40) for number in range(9)]
    strategy = Truncation(trigger=tokens_exceed(200))
    check_strategy(strategy, messages=said)
    with pytest.raises(LawBroken, match="law 11"):
        check_strategy(Truncation(trigger=tokens_exceed(100), keep=last(groups=1)), messages=said, words=True)
