"""Every strategy, on generated conversations of this format: what was valid stays valid, and every other law holds."""

from __future__ import annotations

from typing import Any

from chats import edits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from rulebook import expect_unrepaired
from wires import PINS, STRATEGIES, Pin, damaged, gemini_conversations, indexed

from compaction.formats import gemini
from compaction.marks import marked
from compaction.selectors import last
from compaction.strategies import Strategy, ToolResult, Truncation
from compaction.testing import check_strategy

FINE = {"pending-call"}


@given(gemini_conversations())
def test_the_conversations_are_valid(messages: list[Any]) -> None:
    """What the laws are tried on breaks no rule, but for calls that wait at the end, and needs no repair."""
    assert {problem.rule for problem in gemini.validate(messages)} <= FINE
    expect_unrepaired(gemini, messages)


@settings(max_examples=max(200, settings.default.max_examples))
@given(gemini_conversations(), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_every_strategy_keeps_the_laws(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """Laws 1 to 5, 7 and 9, for every built-in strategy and preset, whatever is pinned."""
    check_strategy(strategy, messages=messages, format=gemini, pin=pin)


@given(damaged(gemini_conversations()), st.sampled_from(STRATEGIES), st.sampled_from(PINS))
def test_what_is_broken_does_not_break_further(messages: list[Any], strategy: Strategy, pin: Pin) -> None:
    """The same laws on conversations as logs hold them: no rule is broken that was not, nothing is parted."""
    check_strategy(strategy, messages=messages, format=gemini, pin=pin)


CALLED = [
    {"role": "model", "parts": [{"functionCall": {"name": "now", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "now", "response": {"result": "noon " * 200}}}]},
]
ASKED = {"role": "user", "parts": [{"text": "and now?"}]}
SUMMED_UP = {"role": "user", "parts": [{"text": marked("The user wants to know the time.", by="Summarization")}]}


def test_truncation_never_leaves_a_call_first() -> None:
    """A summary before a call stays: without it the list would start with a call, which the format refuses."""
    check_strategy(Truncation(keep=last(groups=2)), messages=[SUMMED_UP, *CALLED, ASKED], format=gemini)


def test_truncation_goes_on_once_a_summary_is_gone() -> None:
    """A summary that parted a call from its result gone, the call goes too, though the summary before it cannot."""
    messages = [SUMMED_UP, CALLED[0], SUMMED_UP, *CALLED[1:], CALLED[0]]
    index = indexed(messages, gemini)
    assert [edit.groups for edit in edits_of(Truncation(keep=last(groups=1)), index)] == [(2,), (1,)]
    check_strategy(Truncation(keep=last(groups=1)), messages=messages, format=gemini)


def test_collapse_shortens_old_calls() -> None:
    """Old calls collapse in this format too, to a note that any content may follow."""
    index = indexed([ASKED, *CALLED, *CALLED], gemini)
    assert list(edits_of(ToolResult(keep=last(groups=1)), index)) != []
    assert [content["role"] for content in index.messages()] == ["user", "user", "model", "user"]


def test_responses_go_with_the_call_directly_before_them() -> None:
    """A content that answers calls of two contents stays with the second, whose calls the API takes for answered."""
    calls = [{"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]} for name in ("early", "late")]
    answers = [{"functionResponse": {"name": name, "response": {"result": "ok " * 90}}} for name in ("early", "late")]
    messages = [ASKED, *calls, {"role": "user", "parts": answers}, ASKED, *CALLED, ASKED]
    assert [group.messages[-1].raw for group in indexed(messages, gemini).included_groups][1:3] == [calls[0], messages[3]]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=gemini)
