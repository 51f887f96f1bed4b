"""Steps, held drops and replacements of small random conversations, against every set of groups that could leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random

import pytest

from compaction import Drop, MessageIndex
from compaction.errors import NoProgress
from compaction.formats import MessageFormat, anthropic, bedrock, gemini
from tests.support.letters import Letters, View, disallowed, faults

MOST = 7
"""How many groups of a conversation may leave: 127 sets."""

each_seed = pytest.mark.parametrize("seed", range(30))


def index_of(random: Random) -> tuple[Letters, MessageIndex]:
    """A valid conversation of which some groups may leave."""
    format = Letters(random, random.choice((0.2, 0.35, 0.5)))
    messages = format.conversation(random, random.randint(5, 14))
    index = MessageIndex(messages, counter="chars/4", format=format)
    return format, index


def sets(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(ids) + 1):
        yield from combinations(ids, size)


def valid_without(index: MessageIndex, gone: frozenset[int]) -> bool:
    """Whether the format takes what is left."""
    view = View.of(index)
    view.gone |= gone
    return not faults(index.format, view.places())


@each_seed
def test_steps_reach_every_set_that_may_leave(seed: int) -> None:
    """They cover such a set, and the list is valid after each; of any other set, they make a set that may leave."""
    random = Random(seed)
    _, index = index_of(random)
    if not valid_without(index, frozenset()):
        return
    free = index.removable_ids()[:MOST]
    for chosen in sets(free):
        gone: frozenset[int] = frozenset()
        for step in index.steps(chosen):
            assert gone.isdisjoint(step)
            gone |= frozenset(step)
            assert valid_without(index, gone), (chosen, step)
        assert gone <= frozenset(chosen)
        if valid_without(index, frozenset(chosen)):
            assert gone == frozenset(chosen)


@each_seed
def test_what_is_asked_for_in_any_order_leaves_if_it_may(seed: int) -> None:
    """Drops are held until the others came; at the end of a step all of a set that may leave has left, and none is refused."""
    random = Random(seed)
    _, index = index_of(random)
    if not valid_without(index, frozenset()):
        return
    for chosen in sets(index.removable_ids()[:MOST]):
        mark = index.mark()
        index.begin_step()
        drops = [Drop(id) for id in random.sample(chosen, len(chosen))]
        for drop in drops:
            index.apply(drop, by="Tests")
            assert valid_without(index, frozenset())
        index.end_step()
        gone = {id for id in chosen if not index.is_included(id)}
        assert valid_without(index, frozenset())
        assert gone == set(chosen) or not valid_without(index, frozenset(chosen))
        assert [each.edit for each in index.refused] == [drop for drop in drops if drop.groups[0] not in gone]
        index.rollback(mark)
        assert (index.included, index.messages()) == (index.total, list(index.source))
