"""Steps against brute force: they reach every set of groups whose removal leaves a valid list, and no step breaks the list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from compaction import MessageIndex
from compaction.formats import FORMATS, MessageFormat
from tests.support.wires import valid_conversation

LISTS: Final = 150
"""The number of lists of each format: 750 in all."""
MOST: Final = 10
"""The most groups of a list that are tried: 1,024 sets."""

each_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])


class Lists:
    """Judges a list without some of its groups. Holds state: the judgements so far."""

    def __init__(self, format: MessageFormat, messages: Sequence[Any], index: MessageIndex) -> None:
        self._format = format
        self._messages = messages
        self._ordinals = {id: index.ordinals(id) for id in index.included_ids}
        self._known: dict[frozenset[int], bool] = {}

    def valid_without(self, gone: frozenset[int]) -> bool:
        """Whether the list without these groups is valid, except for calls that wait for results."""
        if gone not in self._known:
            out = {ordinal for id in gone for ordinal in self._ordinals[id]}
            left = [raw for place, raw in enumerate(self._messages) if place not in out]
            self._known[gone] = {problem.rule for problem in self._format.validate(left)} <= {"pending-call"}
        return self._known[gone]


def subsets(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every set of these ids except the empty one, in their order."""
    for size in range(1, len(ids) + 1):
        yield from combinations(ids, size)


@st.composite
def short_lists(draw: st.DrawFn, format: MessageFormat) -> list[Any]:
    """The beginning of a valid conversation with one to about ten removable groups."""
    messages = draw(valid_conversation(format))
    wanted = draw(st.sampled_from((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, MOST)))
    ids = MessageIndex(messages, counter="chars/4", format=format).included_ids
    for place in reversed([*ids[1 : wanted + 4], len(messages)][: wanted + 4]):
        short = messages[:place]
        index = MessageIndex(short, counter="chars/4", format=format)
        if len(index.removable_ids()) <= wanted and Lists(format, short, index).valid_without(frozenset()):
            messages = short
            break
    assume(MessageIndex(messages, counter="chars/4", format=format).removable_ids())
    return messages


@pytest.mark.slow
@pytest.mark.timeout(600)
@each_format
@settings(max_examples=LISTS, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_every_set_that_may_leave_is_reached(format: MessageFormat, data: st.DataObject) -> None:
    """Its steps cover it, and the list is valid after each; of any other set, the steps make a set that may leave."""
    messages = data.draw(short_lists(format))
    index = MessageIndex(messages, counter="chars/4", format=format)
    free = index.removable_ids()[:MOST]
    lists = Lists(format, messages, index)
    for chosen in subsets(free):
        gone: frozenset[int] = frozenset()
        for step in index.steps(chosen):
            assert gone.isdisjoint(step)
            gone |= frozenset(step)
            assert lists.valid_without(gone), (chosen, step)
        assert gone <= frozenset(chosen)
        if lists.valid_without(frozenset(chosen)):
            assert gone == frozenset(chosen)
