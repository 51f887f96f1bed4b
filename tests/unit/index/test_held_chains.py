"""Held drops that depend on one another, in a format of letters: which are applied, when, and which stay refused."""

from __future__ import annotations

import pytest

from compaction import Drop, MessageIndex, Replace, Rewrite, Together
from tests.support.letters import Letters

ROLES = {"s": "system", "u": "user", "v": "user"}


def index_of(letters: str, *forbidden: str, disliked: str = "") -> MessageIndex:
    """A message of eleven words for each letter, in a format that forbids these pairs of letters."""
    format = Letters(
        {(pair[0], pair[1]): ("rule", "after") for pair in forbidden},
        [(pair[0].strip("-"), pair[1]) for pair in disliked.split()],
    )
    messages = [
        {"role": ROLES.get(letter, "assistant"), "text": f"{letter}{at}" + " word" * 10} for at, letter in enumerate(letters)
    ]
    return MessageIndex(messages, counter="chars/4", format=format)


def needed(index: MessageIndex) -> list[str]:
    """Return the groups that each refusal names as needed."""
    return [refusal.rule.partition("]: ")[2].partition(" would")[0] for refusal in index.refused]


def test_what_waits_is_asked_again_beside_its_new_neighbours() -> None:
    """The held drop is tried beside b, then beside v, and is applied at last."""
    index = index_of("uabvau", "ub", "uv")
    assert [index.apply(Drop(id)) for id in (1, 2, 3)] == [False, True, True]
    assert index.edits == (Drop(2), Drop(3), Drop(1))
    assert index.refused == ()


def test_what_is_needed_are_groups() -> None:
    """The first group by its id too, one of several messages by the id of its first, and a summary by its own."""
    index = index_of("uabu", "ub")
    index.apply(Drop(1))
    assert needed(index) == ["group 0 or group 2"]
    called = [
        {"role": "user", "text": "u0 word word word"},
        {"role": "assistant", "text": "c1", "calls": ["x"]},
        {"role": "tool", "text": "r2", "answers": "x"},
        {"role": "assistant", "text": "a3"},
        {"role": "assistant", "text": "b4"},
        {"role": "user", "text": "u5"},
    ]
    format = Letters({("r", "b"): ("rule", "after"), ("u", "b"): ("rule", "after")})
    index = MessageIndex(called, counter="chars/4", format=format)
    index.apply(Drop(3))
    assert needed(index) == ["group 1 or group 4"]
    assert index.apply(Replace([0, 1], [format.new("user", "u")]))
    index.begin_step()
    index.apply(Drop(3))
    assert needed(index)[-1] == "group -1 or group 4"


def test_what_was_rewritten_still_waits() -> None:
    """An edit that names a group without taking it out lets nothing go."""
    index = index_of("uabu", "ub")
    assert not index.apply(Drop(1))
    assert index.apply(Rewrite(1, [index.format.new("assistant", "a")]))
    assert index.apply(Drop(2))
    assert index.edits[1:] == (Drop(2), Drop(1))
    assert index.included_ids == [0, 3]


def test_what_has_left_in_part_waits_no_longer() -> None:
    """The drop stays refused, and the others are applied without it."""
    index = index_of("uabvau", "uv", "vu", "aa")
    assert not index.apply(Drop([1, 2]))
    assert index.apply(Drop(2))
    assert not index.apply(Drop(4))
    assert index.apply(Drop(3))
    assert index.edits == (Drop(2), Together(Drop(4), Drop(3)))
    assert [refusal.edit for refusal in index.refused] == [Drop([1, 2])]


@pytest.mark.parametrize("disliked", ["", "-b"])
def test_one_that_may_leave_after_all_leaves_when_the_step_ends(disliked: str) -> None:
    """The instruction opens the view once the question is dropped, although the question is not its neighbour."""
    index = index_of("usabau", "sb", disliked=disliked)
    index.begin_step()
    assert not index.apply(Drop(2))
    assert index.apply(Drop(0))
    assert index.end_step() is True
    assert index.edits == (Drop(0), Drop(2))
    assert index.refused == ()
    assert index.end_step() is False


def test_an_inner_pair_of_a_summary_is_a_join() -> None:
    """Its two messages follow one another, too; and instructions lead only as far as all of a summary instructs."""
    index = index_of("uabau", "ua", "ab")
    said = index.format.new
    assert not index.apply(Replace([1, 2], [said("user", "u"), said("assistant", "a")]))
    assert index.apply(Replace([1, 2], [said("user", "u"), said("assistant", "b")]))
    index = index_of("uvbau", "ab")
    said = index.format.new
    assert not index.apply(Replace([0, 1], [said("system", "s"), said("assistant", "a")]))
