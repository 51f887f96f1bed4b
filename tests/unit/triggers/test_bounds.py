"""`cannot_fire`: a trigger that cannot fire within bounds does not fire for a conversation within them."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import MessageIndex, Pipeline
from compaction.index import RunContext
from compaction.strategies import SlidingWindow, TokenBudgetComposed, Truncation
from compaction.triggers import (
    Bounds,
    Trigger,
    always,
    bytes_exceed,
    context_exceeds,
    every,
    groups_exceed,
    has_tool_calls,
    idle_for,
    messages_exceed,
    never,
    tokens_below,
    tokens_exceed,
    turns_exceed,
)
from tests.support.chats import tool_turns, turns

SMALL = Bounds(tokens=10, bytes=40, messages=3, window=20)
LIMITS = st.integers(0, 60)
TRIGGERS = st.recursive(
    st.one_of(
        st.builds(tokens_exceed, LIMITS),
        st.builds(tokens_below, LIMITS),
        st.builds(messages_exceed, st.integers(0, 9), system=st.booleans()),
        st.builds(turns_exceed, st.integers(0, 4)),
        st.builds(groups_exceed, st.integers(0, 9)),
        st.builds(bytes_exceed, st.integers(0, 300)),
        st.builds(context_exceeds, st.floats(0.01, 1)),
        st.builds(every, st.integers(1, 4)),
        st.sampled_from([always, never, has_tool_calls, idle_for(1.0)]),
    ),
    lambda inner: st.one_of(st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner)),
    max_leaves=4,
)
CHATS = st.one_of(st.integers(0, 3).map(tool_turns), st.integers(0, 4).map(turns))


@given(TRIGGERS, CHATS, st.integers(0, 5))
def test_it_fires_for_nothing_within_the_bounds(trigger: Trigger, chat: list[dict[str, Any]], room: int) -> None:
    """The sizes of the conversation itself are the narrowest bounds; a trigger and its opposite cannot both never fire."""
    index = MessageIndex(chat, counter="chars/4", context=RunContext(window=50))
    size = index.included
    bounds = Bounds(tokens=size.tokens + room, bytes=size.bytes + room, messages=size.messages + room, window=50)
    assert not (trigger.cannot_fire(bounds) and trigger(index))
    assert not (trigger.cannot_fire(bounds) and (~trigger).cannot_fire(bounds))


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (tokens_exceed(10), True),
        (tokens_exceed(9), False),
        (tokens_below(1), False),
        (bytes_exceed(40), True),
        (bytes_exceed(39), False),
        (messages_exceed(3), True),
        (messages_exceed(2), False),
        (messages_exceed(3, system=False), True),
        (messages_exceed(2, system=False), False),
        (turns_exceed(3), True),
        (turns_exceed(2), False),
        (groups_exceed(3), True),
        (groups_exceed(2), False),
        (context_exceeds(0.5), True),
        (context_exceeds(0.49), False),
        (every(4), True),
        (every(3), False),
        (never, True),
        (always, False),
        (has_tool_calls, False),
        (has_tool_calls & tokens_exceed(10), True),
        (has_tool_calls | tokens_exceed(10), False),
        (never | tokens_exceed(10), True),
        (~tokens_exceed(10), False),
        (tokens_exceed(9) & (lambda index: False), False),
    ],
    ids=repr,
)
def test_the_limit_decides(trigger: Trigger, expected: bool) -> None:
    """At the limit it cannot fire, one past it it can; what it cannot say is that it may."""
    assert trigger.cannot_fire(SMALL) is expected


def test_without_a_window_its_share_may_be_exceeded() -> None:
    """The trigger is asked then, and says that the window is unknown."""
    assert not context_exceeds(1.0).cannot_fire(Bounds(tokens=0, bytes=0, messages=0))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Truncation(trigger=tokens_exceed(10)), True),
        (Truncation(trigger=tokens_exceed(9)), False),
        (SlidingWindow(), False),
        (Pipeline(), True),
        (Pipeline(Truncation(trigger=tokens_exceed(10)), Truncation(trigger=tokens_exceed(11))), True),
        (Pipeline(Truncation(trigger=tokens_exceed(10)), SlidingWindow()), False),
        (Pipeline(SlidingWindow(), trigger=tokens_exceed(10)), True),
        (Pipeline(Truncation(trigger=tokens_exceed(10)), trigger=always, target=tokens_below(1)), False),
        (Pipeline(lambda index: []), False),
        (TokenBudgetComposed([SlidingWindow()], budget=10), True),
        (TokenBudgetComposed([SlidingWindow()], budget=9), False),
    ],
    ids=count(),
)
def test_a_strategy_cannot_run_if_its_trigger_cannot_fire(strategy: Any, expected: bool) -> None:
    """A pipeline cannot run if none of its steps can, or if its own trigger cannot fire; a plain function always runs."""
    assert strategy.cannot_run(SMALL) is expected
