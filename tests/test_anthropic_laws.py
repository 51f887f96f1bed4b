"""Every strategy, on generated conversations of this format: what was valid stays valid, and every other law holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulebook import expect_unrepaired
from wires import PINS, STRATEGIES, Brief, Pin, Shelf, anthropic_conversations, damaged

from compaction import GroupKind, compact_sync, kinds
from compaction.formats import anthropic
from compaction.marks import marked
from compaction.selectors import last
from compaction.strategies import Offload, Strategy, StubGroups, Summarization, Truncation
from compaction.testing import check_strategy

FINE = {"pending-call"}


@given(anthropic_conversations())
def test_the_conversations_are_valid(messages: list[Any]) -> None:
    """What the laws are tried on breaks no rule, but for calls that wait at the end, and needs no repair."""
    assert {problem.rule for problem in anthropic.validate(messages)} <= FINE
    expect_unrepaired(anthropic, messages)


@settings(max_examples=max(200, settings.default.max_examples))
@given(anthropic_conversations(), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_every_strategy_keeps_the_laws(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """Laws 1 to 5, 7 and 9, for every built-in strategy and preset, whatever is pinned."""
    check_strategy(strategy, messages=messages, format=anthropic, pin=pin)


@given(damaged(anthropic_conversations()), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_what_is_broken_does_not_break_further(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """The same laws on conversations as logs hold them: no rule is broken that was not, nothing is parted."""
    check_strategy(strategy, messages=messages, format=anthropic, pin=pin)


def test_an_instruction_that_says_nothing_gets_no_note() -> None:
    """What is no text does not become a list with a text beside it, which breaks another rule."""
    said = [{"role": role, "content": "word " * 200} for role in ("user", "assistant", "user", "assistant")]
    strategy = Summarization(keep=last(groups=1), system_note="Some of it was summarized.")
    check_strategy(strategy, messages=[{"role": "system", "content": 5}, *said], format=anthropic)


@pytest.mark.parametrize(
    "strategy",
    [Offload(Shelf(), style=StubGroups(), keep=last(groups=1)), Summarization(Brief(), keep=last(groups=1))],
    ids=["Offload", "Summarization of another name"],
)
def test_another_strategys_summary_holds_an_instruction_in_its_place(strategy: Strategy) -> None:
    """What stays before an instruction makes it one in the middle: what answers it is not taken from it."""
    by = "GrowingSummary"
    summary = {"role": "user", "content": marked("The user wants to know the time.", by=by)}
    said = [{"role": role, "content": "word " * 90 + "end"} for role in ("assistant", "user")]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "word " * 90}
    looked = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    messages = [summary, {"role": "system", "content": "now be kind"}, *said * 2, *looked, said[0]]
    assert anthropic.validate(messages) == []
    check_strategy(strategy, messages=messages, format=anthropic)


def test_truncation_goes_on_once_an_instruction_is_gone() -> None:
    """The answer to an instruction stays as long as that does, and no longer."""
    asked, answered = ({"role": role, "content": "word " * 90 + "end"} for role in ("user", "assistant"))
    messages = [asked, {"role": "system", "content": "now be kind"}, answered, asked, answered]
    truncation = Truncation(keep=kinds(GroupKind.USER), drop_system=True)
    assert compact_sync(messages, truncation, counter="chars/4").messages == [asked, asked, answered]
    check_strategy(truncation, messages=messages, format=anthropic)
