"""Every strategy, on generated conversations of this format: what was valid stays valid, and every other law holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulebook import expect_unrepaired
from wires import PINS, STRATEGIES, Pin, damaged, responses_conversations

from compaction import GroupKind, compact_sync, kinds, last
from compaction.formats import openai_responses
from compaction.selectors import Selector
from compaction.strategies import Pipeline, SlidingWindow, Strategy, ToolResult
from compaction.testing import check_strategy

ASKED = {"role": "user", "content": "and now?"}
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


@pytest.mark.parametrize("keep", [last(turns=1), last(groups=1), last(groups=3), kinds(GroupKind.TOOL_CALL)], ids=repr)
def test_calls_that_interleave_go_with_their_turns(keep: Selector) -> None:
    """Where the user spoke between two calls, each goes with its own turn; read anew without the words they are one answer."""
    calls = [{"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"} for id in ("call_1", "call_2")]
    outputs = [{"type": "function_call_output", "call_id": id, "output": "ok " * 90} for id in ("call_1", "call_2")]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi", "annotations": []}]}
    messages = [calls[0], ASKED, calls[1], *outputs, said, ASKED]
    assert openai_responses.validate(messages) == []
    for strategy in (SlidingWindow(keep=keep), Pipeline(ToolResult(keep=last(groups=1)), SlidingWindow(keep=keep))):
        check_strategy(strategy, messages=messages, format=openai_responses)
    assert compact_sync(messages, SlidingWindow(), counter="chars/4").messages == [ASKED]
