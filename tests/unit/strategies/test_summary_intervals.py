"""Summaries leave room for new messages, so that compactions do not become ever more frequent."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import attrs
import pytest

from compaction import MessageIndex, RunContext, last, run_sync
from compaction.strategies import Summarization
from compaction.summarizers import DigestSummarizer, Summarizer
from compaction.triggers import context_exceeds, messages_exceed, tokens_exceed
from tests.support.chats import Chat, assistant, indexed, system, turns, user
from tests.support.scripted import Scripted

LIMIT: Final = 4_000


def fills_its_budget() -> Scripted:
    return Scripted(lambda request: ("word " * request.budget)[: 4 * request.budget - 4])


def turn(number: int) -> Chat:
    """A question with unique facts, and an answer; about 80 tokens each."""
    facts = f"Order BX-{1000 + number} came from Anna{number}; it must be in /srv/a{number}.txt by {number % 12 + 1} May. "
    return [user(facts + "Look at it. " * 12), assistant(f"Box {number} goes to shelf {number * 7}. " + "It is there. " * 12)]


@pytest.mark.parametrize(
    ("summarizer", "rounds"), [(DigestSummarizer(), 12), (fills_its_budget(), 24)], ids=["digest", "model"]
)
def test_the_time_between_compactions_hardly_shrinks(summarizer: Summarizer, rounds: int) -> None:
    """With the default settings, the shortest interval is at least two thirds of the longest one."""
    index = indexed([system("Be brief.")])
    strategy = Summarization(summarizer, trigger=tokens_exceed(1_000))
    compacted: list[int] = []
    number = 0
    while len(compacted) <= rounds:
        index.append(turn(number))
        number += 1
        if run_sync(index, strategy).edits:
            compacted.append(number)
    intervals = [after - before for before, after in pairwise(compacted)]
    assert min(intervals) >= 2 / 3 * max(intervals)


def budget_of(index: MessageIndex, strategy: Summarization) -> int:
    """The budget of the first summary that the strategy requests."""
    scripted = Scripted("short")
    run_sync(index, attrs.evolve(strategy, summarizer=scripted))
    return scripted.requests[0].budget


def test_the_ceiling_is_a_quarter_of_what_the_trigger_leaves_beside_what_is_kept() -> None:
    """A list larger than the limit does not raise it, and if the kept part is large, half the limit is used."""
    messages = [system("s"), *turns(60, words=60)]
    index = indexed(messages, context=RunContext(overhead_tokens=300, window=8_000))
    kept = 300 + sum(group.tokens for group in index.included_groups if group.id in (0, 119, 120))
    last_turn = last(groups=2)
    for trigger in (tokens_exceed(LIMIT), context_exceeds(0.5), messages_exceed(9) | tokens_exceed(LIMIT)):
        strategy = Summarization(trigger=trigger, keep=last_turn, user_tokens=0)
        assert budget_of(indexed(messages, context=index.context), strategy) == (LIMIT - kept) // 4
    full = Summarization(trigger=tokens_exceed(LIMIT), keep=last(tokens=3_500), user_tokens=0)
    assert budget_of(indexed(messages), full) == LIMIT // 2 // 4


def test_without_a_limit_in_tokens_the_budget_is_as_it_was() -> None:
    assert budget_of(indexed(turns(60, words=60)), Summarization(trigger=messages_exceed(9), user_tokens=0)) == 2_000
