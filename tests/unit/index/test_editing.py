"""Edits as values, and applied: who made a summary, and which are undone because of messages that came later."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Refusal, Replace, Rewrite, Together
from compaction.errors import StrategyError
from compaction.formats import bedrock, openai_chat
from compaction.index.marks import marked
from compaction.messages import Message, ToolCallPart
from tests.support.chats import assistant, indexed, user
from tests.support.letters import lettered, letters_of

CALL: Any = ToolCallPart(id="1", name="look", arguments="{}")
"""Its id is not that of a group."""

RESULT = {"role": "tool", "text": "r", "answers": "k"}


def test_several_are_undone_one_after_another() -> None:
    """One beside the new result, then one beside the call that it brought back, which comes first of all."""
    index = lettered("cbvau", "cv vr")
    edits = [Drop(0), Drop(1), Rewrite(4, [index.format.new("user", "v")])]
    assert all(index.apply(edit) for edit in edits)
    index.append([RESULT])
    assert index.undone == (edits[2], edits[1])
    assert index.included_ids == [0, 1, 2, 3, 4]


def test_a_rollback_across_new_messages_undoes_what_they_make_invalid() -> None:
    """Without the call that a late result brought back, two messages are neighbours that may not be; the summary stays."""
    index = lettered("uacv", "vb")
    edits = [Replace(1, [index.format.new("assistant", "S")], "told"), Drop(2)]
    assert all(index.apply(edit) for edit in edits)
    mark = index.checkpoint()
    index.append([RESULT, {"role": "assistant", "text": "b"}])
    assert letters_of(index) == "uScvrb"
    index.rollback(mark)
    assert (index.edits, index.undone, letters_of(index)) == ((edits[0],), (edits[1],), "uScvrb")


def test_edits_of_messages_that_the_host_changed_are_reported() -> None:
    index = lettered("uabuabuab")
    rewrite, drop = Rewrite(1, [index.format.new("assistant", "a")]), Drop(7)
    assert all(index.apply(edit) for edit in (Drop(2), rewrite, drop))
    chat = list(index.source)
    chat[1] = {"role": "assistant", "text": "another answer"}
    index.sync(chat[:7])
    assert (index.undone, index.edits) == ((rewrite, drop), (Drop(2),))


def test_the_users_words_that_came_with_a_late_result_stay() -> None:
    """An edit that hid the call before is still valid in a state that was saved, and a rollback shows the words."""
    index = lettered("uacav")
    late = {"role": "user", "text": "w", "answers": "k"}
    assert index.apply(Drop([1, 2]))
    mark = index.checkpoint()
    index.append([late])
    assert letters_of(index) == "ucavw"
    again = MessageIndex.from_dict(index.to_dict(), counter="chars/4", format=index.format)
    assert (letters_of(again), again.edits) == ("ucavw", index.edits)
    index.rollback(mark)
    assert letters_of(index) == "ucavw"


def test_the_edits_of_the_last_list_only() -> None:
    """A long session with many rewinds keeps no list of all that was ever undone."""
    index = lettered("uaua")
    host = list(index.source)
    for _ in range(3):
        assert index.apply(Drop(1))
        index.sync(host[:1])
        assert index.undone == (Drop(1),)
        index.sync(host)
        assert index.undone == ()


class TestPins:
    """Pins by id, when a list of the host without one message undoes another edit."""

    CHAT = tuple({"role": ("user", "assistant")[at % 2], "content": [{"text": f"m{at} " * 20}]} for at in range(9))

    def test_a_summary_stays_pinned(self) -> None:
        index = indexed([*self.CHAT], format=bedrock)
        summarized, dropped = Replace([7], index.summary("S", [7], by="T")), Drop([0, 1])
        assert index.apply(summarized)
        index.pin([-1])
        assert index.apply(dropped)
        index.sync([*self.CHAT[:2], *self.CHAT[3:]])
        assert (index.undone, index.group(-1).pinned) == ((dropped,), True)
        assert not index.apply(Drop([-1]))

    def test_a_pin_follows_a_summary_to_its_new_id(self) -> None:
        """The older of two pinned summaries goes; a saved state names only the one that is left."""
        index = indexed([*self.CHAT], format=bedrock)
        for at in (7, 0):
            assert index.apply(Replace([at], index.summary("S", [at], by="T")))
        index.pin([-1, -2])
        index.sync([*self.CHAT[:6], *self.CHAT[7:]])
        assert [edit.groups for edit in index.edits if isinstance(edit, Replace)] == [(0,)]
        loaded = MessageIndex.from_dict(index.to_dict(), counter="chars/4")
        assert (index.group(-1).pinned, loaded.group(-1).pinned) == (True, True)

    def test_an_edit_of_a_group_that_was_pinned_later_stays(self) -> None:
        index = lettered("uabuab", "aa")
        rewrite, drop = Rewrite(1, [index.format.new("assistant", "a")]), Drop(2)
        assert all(index.apply(edit) for edit in (rewrite, drop))
        index.pin([1])
        index.sync([*index.source[:3], *index.source[4:]])
        assert (index.undone, index.edits, index.group(1).pinned) == ((drop,), (rewrite,), True)


class TestReplace:
    @pytest.mark.parametrize(
        ("message", "by", "made_by"),
        [
            (openai_chat.new("user", marked("so far", by="Tests")), "Others", "Tests"),
            (openai_chat.new("user", "so far"), "Others", "Others"),
            (openai_chat.new("user", "so far"), "", None),
        ],
        ids=["marked", "unmarked", "by nobody"],
    )
    def test_who_made_a_summary(self, message: Message, by: str, made_by: str | None) -> None:
        """The author is read from the mark, also when the view is read again; without a mark it is the strategy of the edit."""
        index = indexed([user("word " * 100), assistant("b"), user("c")])
        assert index.apply(Replace([0], [message]), by=by)
        assert index.group(-1).made_by == made_by


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
        *((partial(Drop, groups), "must be groups or group ids") for groups in (None, "first", 1.5, [None], [CALL])),
        (partial(Rewrite, "x", []), "group='x': must be a group or a group id"),
        (partial(Rewrite, CALL, []), "group=ToolCallPart.*: must be a group or a group id"),
        (lambda: indexed([user()]).is_included(CALL), "group=ToolCallPart.*: must be a group or a group id"),
        (partial(Together, [Drop(0), Drop(1)]), r"must be edits, one by one: Together\(Drop\(0\), Drop\(1\)\)"),
    ],
)
def test_what_names_no_groups(make: Callable[[], object], says: str) -> None:
    with pytest.raises(StrategyError, match=says):
        make()
