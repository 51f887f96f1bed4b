"""Edits as values: what they name, how they read, and what they refuse to be made of."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial

import pytest

from compaction import Drop, Refusal, Replace, Rewrite, Together
from compaction.errors import StrategyError
from compaction.formats import openai_chat
from tests.support.chats import indexed, user


class TestValues:
    def test_groups_are_named_by_themselves_or_by_id(self) -> None:
        first, second, _ = indexed([user(), user(), user()]).included_groups
        assert Drop(first).groups == Drop(0).groups == (0,)
        assert Drop([first, 1]).groups == Drop(iter([first, second])).groups == (0, 1)
        assert Rewrite(second, [None]).group == Rewrite(1, [None]).group == 1

    def test_equal_by_value_and_picklable(self) -> None:
        edit = Together(Drop([1, 2], "old", allow_system=True), Drop(3, "older"), reason="both")
        assert edit == Together(Drop([1, 2], "old", allow_system=True), Drop(3, "older"), reason="both")
        assert pickle.loads(pickle.dumps(edit)) == edit
        assert len({edit, Drop(1), Drop(1), Drop(2)}) == 3

    def test_together_takes_the_reason_of_its_first_part(self) -> None:
        assert Together(Drop(1, "old"), Drop(2)).reason == "old"
        assert Together(Drop(1, "old"), reason="both").reason == "both"
        assert Together().reason == ""


class TestTexts:
    def test_an_edit_in_words(self) -> None:
        """``str`` has the kind, the groups and the reason, but no message; of many groups, only the first and the last."""
        longer = openai_chat.read(user("text " * 99))
        for value, text in (
            (Drop([3, 5], "old"), "Drop of groups 3, 5 (old)"),
            (Drop([]), "Drop of groups none (no reason given)"),
            (Drop(range(9), "old"), "Drop of 9 groups, 0 to 8 (old)"),
            (Rewrite(4, [longer], "long"), "Rewrite of group 4 (long)"),
            (Together(Drop(1, "old"), Replace([2, 3], [longer], "summed")), "Together of groups 1, 2, 3 (old)"),
            (Refusal(Drop(0, "old"), "it must be kept"), "Drop of group 0 (old): it must be kept"),
        ):
            assert str(value) == text


@pytest.mark.parametrize(
    "make",
    [
        *(partial(Replace, 0, messages) for messages in ([None], ["text"], [user("raw")], user("raw"))),
        *(partial(Rewrite, 0, messages) for messages in ([user("raw")], 7)),
    ],
)
def test_what_was_not_read_replaces_nothing(make: Callable[[], object]) -> None:
    with pytest.raises(StrategyError, match=r"a list of messages that were read, such as \[index.format.read\(data\)\]"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        *((partial(Drop, groups), "an edit needs groups or group ids") for groups in (None, "first", 1.5, [None])),
        (partial(Rewrite, "x", []), "group='x': must be a group or a group id"),
        (partial(Together, [Drop(0), Drop(1)]), r"must be edits, one by one: Together\(Drop\(0\), Drop\(1\)\)"),
    ],
)
def test_what_names_no_groups(make: Callable[[], object], says: str) -> None:
    with pytest.raises(StrategyError, match=says):
        make()
