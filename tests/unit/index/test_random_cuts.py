"""Steps and refused drops in small random conversations, compared with every set of groups that could be dropped."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from random import Random

import pytest

from compaction import Drop, MessageIndex, Replace
from tests.support.chats import index_of_roles
from tests.support.index_model import View
from tests.support.letters import LETTERS, Letters, faults

MOST = 7
"""The number of groups that may be dropped: 127 sets."""

each_seed = pytest.mark.parametrize("seed", range(30))


def index_of(random: Random, format: Letters | None = None) -> MessageIndex:
    """A valid conversation, with a summary of two messages in some."""
    format = format or Letters.chosen(random, random.choice((0.2, 0.35, 0.5)))
    index = MessageIndex(format.conversation(random, random.randint(5, 14)), counter="chars/4", format=format)
    if random.random() < 0.4:
        for id in index.removable_ids():
            if index.apply(Replace(id, [format.new("user", "u"), format.new("assistant", "a")])):
                break
    return index


def sets(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every set of these ids, in their order, the empty one left out."""
    for size in range(1, len(ids) + 1):
        yield from combinations(ids, size)


def valid_without(index: MessageIndex, gone: Sequence[int] | set[int]) -> bool:
    """Whether the format takes what is left."""
    view = View.of(index)
    view.gone |= set(gone)
    return not faults(index.format, view.places())


@each_seed
def test_steps_reach_every_set_that_may_leave(seed: int) -> None:
    """Steps cover each valid set, and the list is valid after each; other sets are dropped as far as single groups may be."""
    index = index_of(Random(seed))
    free = index.removable_ids()[:MOST]
    for chosen in sets(free):
        gone: set[int] = set()
        for step in index.steps(chosen):
            assert gone.isdisjoint(step)
            gone.update(step)
            assert valid_without(index, gone), (chosen, step)
        assert gone <= set(chosen)
        left = [id for id in chosen if id not in gone]
        assert not (left and valid_without(index, chosen))
        assert not any(valid_without(index, {*gone, id}) for id in left), (chosen, gone)
    assert list(index.steps([*free, *free])) == list(index.steps(free))


def test_many_held_units_cost_no_more_each_than_a_few() -> None:
    """Four times as many groups that cannot leave need about four times as many calls of functions."""

    def calls(groups: int) -> int:
        index, count = index_of_roles("u" + "a" * groups + "ua"), 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            steps = list(index.steps(range(2, groups)))
        finally:
            sys.setprofile(None)
        assert steps == [[id] for id in range(2, groups)]
        return count

    assert calls(200) < 5 * calls(50)


def planned(index: MessageIndex, units: Sequence[list[int]]) -> Iterator[list[int]]:
    """The steps of a plan, each worked out from scratch.

    A unit leaves with all that it touches of what is held, or else alone, and then what it touched is asked about again.
    """
    gone: set[int] = set()
    held: list[tuple[int, list[int]]] = []
    for number, unit in enumerate(units):
        waiting = [(number, unit)]
        while waiting:
            asked = waiting.pop(0)
            touching = connected(index, gone, [*held, asked], asked)
            together = [id for _, each in touching for id in each]
            others = [each for each in touching if each is not asked]
            if valid_without(index, {*gone, *together}):
                step = together
            elif others and valid_without(index, {*gone, *asked[1]}):
                step, waiting = list(asked[1]), sorted(others + waiting)
            else:
                held.append(asked)
                continue
            held = [each for each in held if each not in touching]
            gone.update(step)
            yield step


def connected(
    index: MessageIndex, gone: set[int], units: Sequence[tuple[int, list[int]]], first: tuple[int, list[int]]
) -> list[tuple[int, list[int]]]:
    """The units whose messages touch those of a unit, and those that touch them, in order."""
    view = View.of(index)
    view.gone |= gone
    owner = {ordinal: id for id, ordinals in view.members.items() for ordinal in ordinals}
    groups = [place if place < 0 else owner[place] for place, _ in view.places()]
    unit_of = {id: unit for unit in units for id in unit[1]}
    pairs = [(unit_of.get(one), unit_of.get(other)) for one, other in pairwise(groups)]
    found = [first]
    for unit in found:
        for pair in pairs:
            found += [each for each in pair if each is not None and unit in pair and None not in pair and each not in found]
    return sorted(found)


@each_seed
def test_a_plan_asks_about_each_unit_beside_what_is_held(seed: int) -> None:
    """If the format prefers no neighbours, the steps are those of the plan, in its order."""
    random = Random(seed)
    format = Letters.chosen(random, random.choice((0.2, 0.35, 0.5)))
    pairs = [(before, after) for before in ("", *LETTERS) for after in ("", *LETTERS)]
    index = index_of(random, Letters(format.forbidden, pairs, instructs=format.instructs))
    free = index.removable_ids()
    for _ in range(12):
        chosen = [id for id in free if random.random() < 0.8]
        random.shuffle(chosen)
        starts = {id for id in chosen if random.random() < 0.6}
        units: list[list[int]] = []
        for id in chosen:
            if id in starts or not units:
                units.append([])
            units[-1].append(id)
        together = partial(_joined, starts)
        assert list(index.steps(chosen, together)) == list(planned(index, units))
        assert list(index.steps(chosen, together, preferred_only=True)) == []


def _joined(starts: set[int], one: int, other: int) -> bool:
    """Whether a group is of the unit before it, as it starts none."""
    return other not in starts


@each_seed
def test_what_is_asked_for_in_any_order_leaves_if_it_may(seed: int) -> None:
    """At the end of a step, a valid set of refused drops is applied whole, and no other drop of it stays refused."""
    random = Random(seed)
    index = index_of(random)
    before, view = index.included, index.messages()
    for chosen in sets(index.removable_ids()[:MOST]):
        mark = index.checkpoint()
        index.begin_step("")
        drops = [Drop(id) for id in random.sample(chosen, len(chosen))]
        may_leave = valid_without(index, chosen)
        for drop in drops:
            index.apply(drop, by="Tests")
            assert valid_without(index, ())
        index.end_step("")
        gone = {id for id in chosen if not index.is_included(id)}
        assert valid_without(index, ())
        assert gone == set(chosen) or not may_leave
        assert [each.edit for each in index.refused] == [drop for drop in drops if drop.groups[0] not in gone]
        index.rollback(mark)
        assert (index.included, index.messages()) == (before, view)
