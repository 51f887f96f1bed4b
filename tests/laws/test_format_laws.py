"""Every strategy keeps valid conversations valid and keeps all laws, in every format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import compact_sync
from compaction.formats import FORMATS, MessageFormat
from compaction.selectors import last
from compaction.strategies import Clip, DropIrrelevant, GrowingSummary, Strategy, Truncation
from compaction.testing import check_strategy, sample_conversations
from compaction.testing.message_shapes import damaged
from compaction.triggers import tokens_exceed, worth_it
from tests.support.fuzzed import EVERY_STRATEGY
from tests.support.limits import examples
from tests.support.options import SETTLES_IN, compositions, settling, single_strategies
from tests.support.rulebook import expect_unrepaired, rules
from tests.support.wires import PINS, Brief, each_of, valid_conversation


class Judge:
    """A judge that names the parts with an odd first line."""

    def generate(self, prompt: str) -> str:
        parts = re.findall(r"^\[\w{8} part (\d+)\]\n(.*)$", prompt, re.MULTILINE)
        return str([int(number) for number, line in parts if len(line) % 2])


EVERY: Final = (
    *EVERY_STRATEGY,
    Clip(tokens=40),
    DropIrrelevant(Judge(), keep=last(groups=1)),
    GrowingSummary(tokens=150, initial_tokens=60, added_tokens=30, max_tokens=100, trigger=tokens_exceed(200)),
    GrowingSummary(Brief(), tokens=1, initial_tokens=40, added_tokens=40, max_tokens=50),
    Truncation(trigger=worth_it(Truncation(keep=last(groups=2)), calls=20), keep=last(groups=2)),
)

every_format = pytest.mark.parametrize("format", FORMATS, ids=repr)
pins = st.sampled_from(PINS)


@every_format
@examples(20)
@given(data=st.data())
def test_the_conversations_are_valid(format: MessageFormat, data: st.DataObject) -> None:
    """The lists that the laws are tried on break no rule, except for calls that wait at the end, and need no repair."""
    messages = data.draw(valid_conversation(format))
    assert set(rules(format, messages)) <= {"pending-call"}
    expect_unrepaired(format, messages)


@every_format
@pytest.mark.parametrize("broken", [False, True])
@each_of(EVERY)
@given(data=st.data())
def test_every_strategy_keeps_the_laws(
    format: MessageFormat, broken: bool, strategies: Sequence[Strategy], data: st.DataObject
) -> None:
    """Laws 1 to 5, 7 and 9, for every built-in strategy and preset, whatever is pinned.

    On conversations as logs hold them, no rule is broken that was not, and nothing is parted.
    """
    conversations = valid_conversation(format)
    messages, pin = data.draw(damaged(conversations) if broken else conversations), data.draw(pins)
    for strategy in strategies:
        check_strategy(strategy, messages=messages, format=format, pin=pin, settles_in=settling(strategy))


@pytest.mark.parametrize("strategy", EVERY, ids=lambda strategy: strategy.name)
def test_every_strategy_does_something(strategy: Strategy) -> None:
    """Every strategy edits at least one sample conversation, so none keeps the laws by doing nothing."""
    assert any(compact_sync(messages, strategy, counter="chars/4").edits for messages in sample_conversations())


@every_format
@examples(20)
@given(data=st.data())
def test_any_options_keep_the_laws(format: MessageFormat, data: st.DataObject) -> None:
    """The laws do not depend on options being sensible."""
    messages, strategy, pin = data.draw(valid_conversation(format)), data.draw(single_strategies()), data.draw(pins)
    check_strategy(strategy, messages=messages, format=format, pin=pin)


@every_format
@pytest.mark.parametrize("broken", [False, True])
@examples(20)
@given(data=st.data())
def test_any_composition_keeps_the_laws(format: MessageFormat, broken: bool, data: st.DataObject) -> None:
    """Nor do they on parts that fit each other, which may give each other more to do for a few runs."""
    conversations = valid_conversation(format)
    messages, strategy = data.draw(damaged(conversations) if broken else conversations), data.draw(compositions())
    check_strategy(strategy, messages=messages, format=format, pin=data.draw(pins), settles_in=SETTLES_IN)
