"""Every strategy, on generated conversations of this format: what was valid stays valid, and every other law holds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rulebook import expect_unrepaired
from wires import PINS, STRATEGIES, Pin, damaged, responses_conversations

from compaction.formats import openai_responses
from compaction.strategies import Strategy
from compaction.testing import check_strategy

FINE = {"pending-call"}


@given(responses_conversations())
def test_the_conversations_are_valid(messages: list[Any]) -> None:
    """What the laws are tried on breaks no rule, but for calls that wait at the end, and needs no repair."""
    assert {problem.rule for problem in openai_responses.validate(messages)} <= FINE
    expect_unrepaired(openai_responses, messages)


@settings(max_examples=max(200, settings.default.max_examples))
@given(responses_conversations(), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_every_strategy_keeps_the_laws(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """Laws 1 to 5, 7 and 9, for every built-in strategy and preset, whatever is pinned."""
    check_strategy(strategy, messages=messages, format=openai_responses, pin=pin)


@given(damaged(responses_conversations()), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_what_is_broken_does_not_break_further(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """The same laws on conversations as logs hold them: no rule is broken that was not, nothing is parted."""
    check_strategy(strategy, messages=messages, format=openai_responses, pin=pin)
