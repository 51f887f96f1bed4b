"""``worth_it`` fires if a strategy saves more than the broken prompt cache costs; evaluating it changes nothing."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from compaction import Drop, MessageIndex, RunContext, last
from compaction.errors import ConfigurationError
from compaction.strategies import Summarization, Truncation
from compaction.triggers import tokens_exceed, worth_it
from tests.support.chats import indexed, turns, user
from tests.support.scripted import Awaited, Scripted

CUT = Truncation(keep=last(groups=4))


def index_of(count: int = 20, **options: Any) -> MessageIndex:
    """An index of questions and answers, about 30 tokens a message."""
    return indexed(turns(count, words=20), **options)


def test_savings_have_to_outweigh_what_is_written_anew() -> None:
    index = index_of()
    rewritten = sum(group.tokens for group in index.included_groups[-4:])
    saved = index.tokens - rewritten
    enough = int(0.9 * rewritten / (0.1 * saved)) + 1
    assert worth_it(CUT, calls=enough)(index)
    assert not worth_it(Truncation(keep=last(groups=38)), calls=1)(index)
    assert worth_it(CUT, calls=enough).explain(index).startswith(f"it would save {saved:,} tokens in each of {enough:,} calls")


def test_what_stands_before_the_first_change_is_still_cached() -> None:
    """Dropping a message near the end costs less than dropping one near the start, because the prefix stays cached."""

    def drop(place: int) -> Any:
        return lambda index: iter([Drop([place], "an example")])

    index = index_of(30)
    assert worth_it(drop(55), calls=50)(index)
    assert not worth_it(drop(2), calls=50)(index)


def test_the_index_is_as_it_was() -> None:
    index = index_of()
    before = index.messages()
    summary = Scripted("short")
    assert worth_it(Summarization(summary, keep=last(groups=2)))(index)
    assert len(summary.requests) == 1
    assert index.messages() == before
    assert index.edit_count == 0


def test_after_a_pause_there_is_no_cache_to_break() -> None:
    trigger = worth_it(Truncation(keep=last(groups=38)), calls=1, ttl_seconds=300)
    index = index_of(context=RunContext(now=0.0))
    assert not trigger(index)
    index.context = attrs.evolve(index.context, now=301.0)
    assert trigger(index)


def test_after_a_pause_any_saving_is_worth_it() -> None:
    """Also one of messages of the user alone, whose removal tells of no calls to come."""
    index = indexed([user()] * 9, context=RunContext(now=0.0))
    index.context = attrs.evolve(index.context, now=301.0)
    trigger = worth_it(Truncation(keep=last(groups=4)), cached=1)
    assert trigger(index)
    assert "in each of 1 calls" in trigger.explain(index)


def test_nothing_to_save_is_never_worth_it() -> None:
    assert not worth_it(Truncation(keep=last(groups=99)))(index_of())


def test_by_default_calls_are_those_it_takes_out() -> None:
    """By default, the number of calls is half the number of answers in the groups that would be removed."""
    assert "in each of 9 calls" in worth_it(CUT).explain(index_of())


def test_an_awaited_answer_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="awaits an answer"):
        worth_it(Summarization(Awaited("short"), keep=last(groups=2)))(index_of())


def test_it_is_a_value() -> None:
    trigger = worth_it(CUT, calls=5)
    assert trigger == worth_it(CUT, calls=5) != worth_it(CUT, calls=6)
    assert pickle.loads(pickle.dumps(trigger)) == trigger
    assert repr(trigger) == f"worth_it({CUT!r}, calls=5, cached=0.1, ttl_seconds=300.0)"
    assert not (tokens_exceed(10**9) & trigger)(indexed([user()]))
