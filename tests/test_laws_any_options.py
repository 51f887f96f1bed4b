"""The laws in every format, whatever a strategy's options and however strategies are composed."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from options import SETTLES_IN, compositions, single_strategies
from wires import PINS, anthropic_conversations, damaged, gemini_conversations, responses_conversations

from compaction.formats import MessageFormat, anthropic, gemini, openai_responses
from compaction.testing import check_strategy

Conversations: TypeAlias = st.SearchStrategy[list[dict[str, Any]]]

each_format = pytest.mark.parametrize(
    ("format", "conversations"),
    [
        (anthropic, anthropic_conversations()),
        (gemini, gemini_conversations()),
        (openai_responses, responses_conversations()),
    ],
    ids=lambda value: value.name if isinstance(value, MessageFormat) else "",
)


@each_format
@given(data=st.data())
def test_one_strategy(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """A strategy with any options keeps every law on valid conversations, whatever is pinned."""
    messages, strategy, pin = data.draw(conversations), data.draw(single_strategies()), data.draw(st.sampled_from(PINS))
    check_strategy(strategy, messages=messages, format=format, pin=pin)


@each_format
@given(data=st.data())
def test_a_composition(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """Any pipeline or budget of them as well; its parts may give each other more to do for a few runs."""
    messages, strategy, pin = data.draw(conversations), data.draw(compositions()), data.draw(st.sampled_from(PINS))
    check_strategy(strategy, messages=messages, format=format, pin=pin, settles_in=SETTLES_IN)


@each_format
@given(data=st.data())
def test_a_composition_on_what_is_broken(format: MessageFormat, conversations: Conversations, data: st.DataObject) -> None:
    """And on lists as logs hold them: no rule is broken that was not."""
    messages, strategy = data.draw(damaged(conversations)), data.draw(compositions())
    check_strategy(strategy, messages=messages, format=format, settles_in=SETTLES_IN)
