"""Every strategy keeps valid conversations valid and keeps all laws, in every format; test_laws.py has more for chats."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import FORMATS, MessageFormat, openai_chat
from compaction.strategies import Strategy
from compaction.testing import check_strategy
from compaction.testing.message_shapes import damaged
from tests.support.limits import examples
from tests.support.options import SETTLES_IN, compositions, settling, single_strategies
from tests.support.rulebook import expect_unrepaired, rules
from tests.support.wires import PINS, STRATEGIES, each_of, valid_conversation

every_format = pytest.mark.parametrize("format", FORMATS, ids=repr)
each_other_format = pytest.mark.parametrize("format", [each for each in FORMATS if each is not openai_chat], ids=repr)
pins = st.sampled_from(PINS)


@every_format
@examples(20)
@given(data=st.data())
def test_the_conversations_are_valid(format: MessageFormat, data: st.DataObject) -> None:
    """The lists that the laws are tried on break no rule, except for calls that wait at the end, and need no repair."""
    messages = data.draw(valid_conversation(format))
    assert set(rules(format, messages)) <= {"pending-call"}
    expect_unrepaired(format, messages)


@each_other_format
@pytest.mark.parametrize("broken", [False, True])
@each_of(STRATEGIES)
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
