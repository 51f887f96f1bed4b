"""Every strategy keeps valid conversations valid and keeps all laws, in every format except chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_responses
from compaction.strategies import Strategy
from compaction.testing import check_strategy
from tests.support.limits import examples
from tests.support.options import SETTLES_IN, compositions, settling, single_strategies
from tests.support.rulebook import expect_unrepaired, rules
from tests.support.wires import (
    PINS,
    STRATEGIES,
    anthropic_conversations,
    bedrock_conversations,
    damaged,
    each_of,
    gemini_conversations,
    responses_conversations,
)

FINE = {"pending-call"}

Conversations: TypeAlias = st.SearchStrategy[list[dict[str, Any]]]

each_format = pytest.mark.parametrize(
    ("format", "conversations"),
    [
        (anthropic, anthropic_conversations()),
        (bedrock, bedrock_conversations()),
        (gemini, gemini_conversations()),
        (openai_responses, responses_conversations()),
    ],
    ids=["anthropic", "bedrock", "gemini", "openai-responses"],
)


@each_format
@examples(20)
@given(data=st.data())
def test_the_conversations_are_valid(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """The lists that the laws are tried on break no rule, except for calls that wait at the end, and need no repair."""
    messages = data.draw(conversations)
    assert set(rules(format, messages)) <= FINE
    expect_unrepaired(format, messages)


@each_format
@each_of(STRATEGIES)
@given(data=st.data())
def test_every_strategy_keeps_the_laws(
    format: MessageFormat, conversations: Conversations, strategies: Sequence[Strategy], data: st.DataObject
) -> None:
    """Laws 1 to 5, 7 and 9, for every built-in strategy and preset, whatever is pinned."""
    messages, pin = data.draw(conversations), data.draw(st.sampled_from(PINS))
    for strategy in strategies:
        check_strategy(strategy, messages=messages, format=format, pin=pin, settles_in=settling(strategy))


@each_format
@each_of(STRATEGIES)
@given(data=st.data())
def test_what_is_broken_does_not_break_further(
    format: MessageFormat, conversations: Conversations, strategies: Sequence[Strategy], data: st.DataObject
) -> None:
    """The same laws on conversations as logs hold them: no rule is broken that was not, nothing is parted."""
    messages, pin = data.draw(damaged(conversations)), data.draw(st.sampled_from(PINS))
    for strategy in strategies:
        check_strategy(strategy, messages=messages, format=format, pin=pin, settles_in=settling(strategy))


@each_format
@examples(20)
@given(data=st.data())
def test_any_options_keep_the_laws(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """The same for one strategy with any options."""
    messages, strategy, pin = data.draw(conversations), data.draw(single_strategies()), data.draw(st.sampled_from(PINS))
    check_strategy(strategy, messages=messages, format=format, pin=pin)


@each_format
@examples(20)
@given(data=st.data())
def test_any_composition_keeps_the_laws(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """And for any pipeline or budget of them, whose parts may give each other more to do for a few runs."""
    messages, strategy, pin = data.draw(conversations), data.draw(compositions()), data.draw(st.sampled_from(PINS))
    check_strategy(strategy, messages=messages, format=format, pin=pin, settles_in=SETTLES_IN)


@each_format
@examples(20)
@given(data=st.data())
def test_no_composition_breaks_further(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """Nor on conversations as logs hold them."""
    messages, strategy = data.draw(damaged(conversations)), data.draw(compositions())
    check_strategy(strategy, messages=messages, format=format, settles_in=SETTLES_IN)
