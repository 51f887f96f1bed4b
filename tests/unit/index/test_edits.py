"""Edits as values, and what the index makes of them: done, refused with the rule, undone."""

from __future__ import annotations

import contextlib
import pickle

import pytest

from compaction import Drop, Edit, GroupKind, MessageIndex, Refusal, Replace, Rewrite, Together
from compaction.errors import NoProgress, StrategyError
from compaction.formats import openai_chat
from compaction.index.edits import Restore
from compaction.index.marks import marked
from compaction.messages import Message
from tests.support.chats import Chat, assistant, call, developer, indexed, result, shown, summary, system, turns, user

LONG = "word " * 100
CHAT: Chat = [system("s"), *turns(2), user("last"), call("1"), result("1")]


def texts(index: MessageIndex) -> list[str]:
    """Return the texts of the view."""
    return shown(index.messages())


class TestValues:
    def test_groups_are_named_by_themselves_or_by_id(self) -> None:
        """One or several, as groups or ids."""
        first, second, _ = indexed([user(), user(), user()]).included_groups
        assert Drop(first).groups == Drop(0).groups == (0,)
        assert Drop([first, 1]).groups == Drop(iter([first, second])).groups == (0, 1)
        assert Rewrite(second, [None]).group == Rewrite(1, [None]).group == 1

    def test_equal_by_value_and_picklable(self) -> None:
        """An edit can be compared, kept and sent."""
        edit = Together(Drop([1, 2], "old", allow_system=True), Drop(3, "older"), reason="both")
        assert edit == Together(Drop([1, 2], "old", allow_system=True), Drop(3, "older"), reason="both")
        assert pickle.loads(pickle.dumps(edit)) == edit
        assert len({edit, Drop(1), Drop(1), Drop(2)}) == 3

    def test_together_takes_the_reason_of_its_first_part(self) -> None:
        """Unless it is given one."""
        assert Together(Drop(1, "old"), Drop(2)).reason == "old"
        assert Together(Drop(1, "old"), reason="both").reason == "both"
        assert Together().reason == ""


class TestTexts:
    def test_an_edit_in_words(self) -> None:
        """``str`` has the kind, the groups and the reason, but no message; of many groups, only the first and the last."""
        longer = openai_chat.read({"role": "user", "content": "text " * 99})
        assert [str(edit) for edit in (Drop([3, 5], "old"), Drop([]), Drop(range(9), "old"), Rewrite(4, [longer], "long"))] == [
            "Drop of groups 3, 5 (old)",
            "Drop of groups none (no reason given)",
            "Drop of 9 groups, 0 to 8 (old)",
            "Rewrite of group 4 (long)",
        ]
        assert str(Together(Drop(1, "old"), Replace([2, 3], [longer], "summed"))) == "Together of groups 1, 2, 3 (old)"
        assert (
            str(Refusal(Drop(0, "old"), "system messages must be kept"))
            == "Drop of group 0 (old): system messages must be kept"
        )


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
        index = indexed([user(LONG), assistant("b"), user("c")])
        assert index.apply(Replace([0], [message]), by=by)
        assert index.group(-1).made_by == made_by


def edited_index() -> MessageIndex:
    """An index whose first group gave way to a summary."""
    index = indexed([user("a" + LONG), assistant("b"), user("c"), assistant("d")])
    assert index.apply(Replace([0], [summary()]))
    return index


CALLED: Chat = [user("q"), call("1", text=LONG), result("1", LONG), assistant("a")]
FOUND = openai_chat.read(result("1", LONG))


def called(*ids: str, **options: str) -> Message:
    """A message with calls."""
    return openai_chat.read(call(*ids, **options))


class TestRefusals:
    """An edit that would break a law is refused, whichever strategy makes it, and the rule is recorded."""

    @pytest.mark.parametrize(
        ("messages", "edit", "rule"),
        [
            (CHAT, Drop([]), "the edit names no groups"),
            (CHAT, Together(), "the edit names no groups"),
            (CHAT, Drop([1, 1]), "the edit names a group twice"),
            (CHAT, Drop([99]), "group 99 does not exist"),
            (CHAT, Drop([7]), "group 7 does not exist"),
            (CHAT, Drop([0]), "system messages must be kept"),
            (CHAT, Drop([1, 0]), "system messages must be kept"),
            ([developer(), user(), user()], Drop([0]), "system messages must be kept"),
            (CHAT, Replace([0], [summary("")]), "system messages must be kept"),
            (CHAT, Drop([5]), "the last user message must be kept"),
            (CHAT, Replace([5], [summary("")]), "the last user message must be kept"),
            (CHAT, Drop([6]), "the newest group must be kept"),
            ([user(), call("1")], Drop([1]), "a tool call must be kept until its result arrives"),
            ([user(), call("1"), result("9")], Drop([1]), "a tool call must be kept until its result arrives"),
            (
                [user(), call("1"), result("8"), result("9")],
                Drop([2]),
                "groups after an unanswered tool call must be kept until its result arrives",
            ),
            ([system("a"), system("b")], Drop([0, 1], allow_system=True), "the edit would remove every group of the view"),
            (CHAT, Restore([1]), "only the index may restore groups, when a late result arrives"),
            (CHAT, Replace([1], []), "a replacement must be one message, or two if the format requires alternating roles"),
            (
                CHAT,
                Replace([1], [summary()] * 3),
                "a replacement must be one message, or two if the format requires alternating roles",
            ),
            (CHAT, Replace([1], [called("1")]), "a replacement must not contain tool calls or results"),
            (CHAT, Replace([1], [FOUND]), "a replacement must not contain tool calls or results"),
            ([user(), call("1")], Rewrite(1, [called("1")]), "a tool call must not be changed until its result arrives"),
            (CHAT, Rewrite(1, [summary(), summary()]), "the rewrite has more messages than its group"),
            (CALLED, Rewrite(1, [None, None]), "the rewrite removes its whole group; use Drop"),
            (CALLED, Rewrite(1, [None, FOUND]), "a rewrite may remove only messages that contain nothing but reasoning"),
            (CALLED, Rewrite(1, [summary(), FOUND]), "a rewrite must keep roles, calls and results"),
            (CALLED, Rewrite(1, [openai_chat.read(assistant("")), FOUND]), "a rewrite must keep roles, calls and results"),
            (CALLED, Rewrite(1, [called("1", name="elsewhere"), FOUND]), "a rewrite must keep roles, calls and results"),
            (CALLED, Rewrite(1, [called("2")]), "a rewrite must keep roles, calls and results"),
        ],
    )
    def test_what_may_not_leave(self, messages: Chat, edit: Edit, rule: str) -> None:
        """Nothing changes, and the refusal says why."""
        index = indexed(messages)
        assert not index.apply(edit, by="Tests")
        assert index.messages() == messages
        assert [(refusal.edit, refusal.rule, refusal.by) for refusal in index.refused] == [(edit, rule, "Tests")]
        assert index.edits == ()

    def test_what_was_taken_out_cannot_be_taken_out_again(self) -> None:
        """Nor can a summary stand for it any more."""
        index = edited_index()
        assert not index.apply(Drop([0]))
        assert not index.apply(Rewrite(0, [summary()]))
        assert [refusal.rule for refusal in index.refused] == ["group 0 is not in the view"] * 2

    def test_pinned_groups_stay_as_they_are(self) -> None:
        """Neither dropped nor shortened."""
        index = indexed(turns(2))
        index.pin([0])
        assert not index.apply(Drop([0]))
        assert not index.apply(Rewrite(0, [openai_chat.new("user", "")]))
        assert [refusal.rule for refusal in index.refused] == [
            "pinned groups must be kept",
            "pinned groups must not be changed",
        ]

    @pytest.mark.parametrize("read_anew", [False, True])
    def test_a_summary_is_not_rewritten(self, read_anew: bool) -> None:
        """Its mark would not fit any more: whether this index wrote it or read it."""
        index = edited_index()
        if read_anew:
            index = indexed(index.messages())
        (group,) = [group for group in index.included_groups if group.kind is GroupKind.SUMMARY]
        assert not index.is_rewritable(group)
        assert not index.apply(Rewrite(group, [openai_chat.new("user", "x")]))
        assert index.refused[0].rule == "a summary must be replaced, not rewritten"

    def test_a_rewrite_changes_something_and_only_the_content(self) -> None:
        """Messages that are equal to the old ones are not a change; a call with other arguments is."""
        index = indexed(CALLED)
        assert not index.apply(Rewrite(1, index.group(1).messages))
        assert index.refused[0].rule == "the rewrite changes nothing"
        assert index.apply(Rewrite(1, [called("1", arguments="{ }")]))
        assert texts(index) == ["q", "1", texts(index)[2], "a"]
        assert index.source[1] == call("1", text=LONG)

    def test_the_view_never_grows(self) -> None:
        """An edit that adds tokens is undone and refused; the refusal gives their number."""
        index = indexed([user("a"), assistant("b"), user("c")])
        before = (index.included, index.messages())
        assert not index.apply(Replace([0], [summary("much longer than what it stands for")]))
        grown = index.measure(summary("much longer than what it stands for"))[0] - index.group(0).tokens
        assert index.refused[0].rule == f"the edit would make the view {grown} tokens longer"
        assert (index.included, index.messages()) == before

    def test_what_is_no_edit_is_an_error(self) -> None:
        """Not a refusal: whoever wrote that made a mistake."""
        with pytest.raises(StrategyError, match="'drop it' is not an edit"):
            indexed([user()]).apply("drop it")  # type: ignore[arg-type]


class TestTrial:
    def test_whatever_is_tried_is_taken_back(self) -> None:
        """View, journal and refusals are as before, and what was refused inside may be asked for outside."""
        index = indexed([*turns(3), user("q")])
        assert not index.apply(Drop([6]))
        before = index.messages(), index.edits, index.refused
        with index.trial():
            assert index.apply(Drop([0]))
            assert not index.apply(Drop([5, 6]))
        assert (index.messages(), index.edits, index.refused) == before
        assert not index.apply(Drop([5, 6]))

    def test_what_is_raised_inside_takes_it_back_too(self) -> None:
        """A failure while trying changes nothing."""
        index = indexed([*turns(3), user("q")])
        with contextlib.suppress(OSError), index.trial():
            index.apply(Drop([0]))
            raise OSError
        assert (index.edits, len(index.messages())) == ((), 7)


@pytest.mark.parametrize("messages", [[None], ["text"], user("raw")], ids=["none", "text", "raw"])
def test_what_was_not_read_replaces_nothing(messages: object) -> None:
    """A summary is made of messages that a format read; only a rewrite may name none."""
    with pytest.raises(StrategyError, match="an edit needs a list of messages that were read"):
        Replace(0, messages)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [None, "first", 1.5, [None]], ids=repr)
def test_what_names_no_groups(groups: object) -> None:
    """An edit without valid groups raises an error when it is created."""
    with pytest.raises(StrategyError, match="an edit needs groups or group ids"):
        Drop(groups)  # type: ignore[arg-type]


def test_a_group_of_another_conversation() -> None:
    """It stays nowhere, and nothing is done to it."""
    index, other = indexed([system("s"), *turns(1), user("q")]), indexed(turns(5))
    group = other.included_groups[8]
    assert index.protection(group) == "group 8 does not exist"
    assert not index.apply(Rewrite(group, [summary()]))
    assert not index.apply(Drop([1, group]))
    assert [refused.rule for refused in index.refused] == ["group 8 does not exist"] * 2


class TestAskingAgain:
    def test_the_same_refused_edit_twice_is_no_progress(self) -> None:
        """A strategy that does so would never end."""
        index = indexed([system("s"), user("q")])
        assert not index.apply(Drop([0]), by="Stubborn")
        with pytest.raises(NoProgress, match=r"^Stubborn repeated the refused .*: system messages must be kept"):
            index.apply(Drop([0], "another reason"), by="Stubborn")

    def test_after_a_change_it_may_be_asked_for_again(self) -> None:
        """An edit, or new messages, may have made it possible; so may the start of another run."""
        index = indexed([*turns(2), user("q")])
        assert not index.apply(Drop([4]))
        assert index.apply(Drop([0]))
        assert not index.apply(Drop([4]))
        index.append([assistant("a")])
        assert not index.apply(Drop([4]))
        assert len(index.refused) == 3
        index.checkpoint()
        assert not index.apply(Drop([4]))
        assert len(index.refused) == 1
