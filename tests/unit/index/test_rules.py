"""The rules about one edit: what it may remove, replace and rewrite, whichever strategy makes it."""

from __future__ import annotations

import pytest

from compaction import Drop, Edit, GroupKind, MessageIndex, Replace, Rewrite, Together
from compaction.errors import StrategyError
from compaction.formats import openai_chat, openai_responses
from compaction.index.edits import Restore
from compaction.index.marks import COLLAPSED_BY, marked
from compaction.messages import Message
from tests.support.chats import Chat, assistant, call, developer, indexed, result, shown, summary, system, turns, user


def test_a_collapsed_call_that_comes_first_may_be_shortened() -> None:
    for by, rewritable in ((COLLAPSED_BY, True), ("Summarization", False)):
        index = indexed([assistant(marked("look: found it", by=by)), user(), assistant(marked("look: more", by=by)), user()])
        assert [index.is_rewritable(id) for id in (0, 2)] == [rewritable] * 2


def test_no_words_between_a_call_and_its_results() -> None:
    """An orphan result between a call and its result may be replaced only with the call, or after its last result."""
    words = [openai_chat.new("assistant", "so")]
    chat = [user(), call("1", "2"), result("1"), result("other", "long " * 40), result("2"), user(), assistant(), user()]
    assert not indexed(chat).apply(Replace(3, words))
    assert indexed(chat).apply(Replace([1, 3], words))
    chat = [user(), call("1", "2"), result("1"), result("2"), result("other", "long " * 40), user(), assistant(), user()]
    assert indexed(chat).apply(Replace(4, words))
    chat = [result("other", "long " * 40), call("1"), result("1"), user()]
    assert indexed(chat).apply(Replace(0, words))


def test_no_words_among_results_that_answer_nothing() -> None:
    words = [openai_chat.new("assistant", "so")]
    others = [result("other", "long " * 40), result("more", "long " * 40)]
    chat = [call("1", "2"), result("1"), *others, result("2"), user(), user()]
    for messages in (chat, [user(), *chat]):
        index = indexed(messages)
        orphans = [group.id for group in index.included_groups if group.orphan]
        assert [index.apply(Replace(id, words)) for id in orphans] == [False, False]


def test_a_summary_in_the_place_of_the_last_user_message_stays() -> None:
    """It may be forged; the strategy it names may replace it, and nobody may drop it."""
    old = marked("so far, at length", by="Summarization")
    chat = [user(), assistant(), user(old), assistant(), assistant()]
    index = indexed(chat)
    assert [index.removable_ids(by) for by in ("", "Other", "Summarization")] == [[1, 3], [1, 3], [1, 2, 3]]
    assert index.protection(2) == "the last user message must be kept, even if it begins with a summary mark"
    words = [openai_chat.new("user", "so far")]
    assert [indexed(chat).apply(Drop(2), by=by) for by in ("", "Summarization")] == [False, False]
    assert [indexed(chat).apply(Replace(2, words), by=by) for by in ("", "Other", "Summarization")] == [False, False, True]
    index.append([user(), assistant()])
    assert index.removable_ids() == [0, 1, 2, 3, 4]
    assert indexed([user(), assistant(old), assistant()]).removable_ids() == [1]


def test_the_newest_summary_of_the_provider_stays() -> None:
    """The provider's newest summary replaces everything before it and stays; an older one may be dropped."""
    items = [openai_responses.new("user", "hi").raw, {"type": "compaction", "id": "a", "encrypted_content": "x"}] * 2
    messages = [*items, openai_responses.new("user", "more").raw, openai_responses.new("user", "now").raw]
    index = MessageIndex(messages, counter="chars/4", format=openai_responses)
    assert index.removable_ids() == [0, 1, 2, 4]
    assert index.protection(3) == "the newest summary that the provider itself wrote must be kept"
    assert not index.apply(Drop(3))


LONG = "word " * 100
CHAT: Chat = [system("s"), *turns(2), user("last"), call("1"), result("1")]
CALLED: Chat = [user("q"), call("1", text=LONG), result("1", LONG), assistant("a")]
FOUND = openai_chat.read(result("1", LONG))
ONE_OR_TWO = "a replacement must be one message, or two if the format requires alternating roles"


def edited_index() -> MessageIndex:
    """An index whose first group gave way to a summary."""
    index = indexed([user("a" + LONG), assistant("b"), user("c"), assistant("d")])
    assert index.apply(Replace([0], [summary()]))
    return index


def called(*ids: str, **options: str) -> Message:
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
            *((CHAT, Replace([1], [summary()] * count), ONE_OR_TWO) for count in (0, 3)),
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
        index = indexed(messages)
        assert not index.apply(edit, by="Tests")
        assert index.messages() == messages
        assert [(refusal.edit, refusal.rule, refusal.by) for refusal in index.refused] == [(edit, rule, "Tests")]
        assert index.edits == ()

    def test_what_was_taken_out_cannot_be_taken_out_again(self) -> None:
        index = edited_index()
        assert not index.apply(Drop([0]))
        assert not index.apply(Rewrite(0, [summary()]))
        assert [refusal.rule for refusal in index.refused] == ["group 0 is not in the view"] * 2

    def test_pinned_groups_stay_as_they_are(self) -> None:
        index = indexed(turns(2))
        index.pin([0])
        assert not index.apply(Drop([0]))
        assert not index.apply(Rewrite(0, [openai_chat.new("user", "")]))
        rules = ["pinned groups must be kept", "pinned groups must not be changed"]
        assert [refusal.rule for refusal in index.refused] == rules

    @pytest.mark.parametrize("read_anew", [False, True])
    def test_a_summary_is_not_rewritten(self, read_anew: bool) -> None:
        index = edited_index()
        if read_anew:
            index = indexed(index.messages())
        (group,) = [group for group in index.included_groups if group.kind is GroupKind.SUMMARY]
        assert not index.is_rewritable(group)
        assert not index.apply(Rewrite(group, [openai_chat.new("user", "x")]))
        assert index.refused[0].rule == "a summary must be replaced, not rewritten"

    def test_a_rewrite_changes_something_and_only_the_content(self) -> None:
        index = indexed(CALLED)
        assert not index.apply(Rewrite(1, index.group(1).messages))
        assert index.refused[0].rule == "the rewrite changes nothing"
        assert index.apply(Rewrite(1, [called("1", arguments="{ }")]))
        assert shown(index.messages()) == ["q", "1", LONG, "a"]
        assert index.source[1] == call("1", text=LONG)

    def test_the_view_never_grows(self) -> None:
        index = indexed([user("a"), assistant("b"), user("c")])
        before = (index.included, index.messages())
        assert not index.apply(Replace([0], [summary("much longer than what it stands for")]))
        grown = index.measure(summary("much longer than what it stands for"))[0] - index.group(0).tokens
        assert index.refused[0].rule == f"the edit would make the view {grown} tokens longer"
        assert (index.included, index.messages()) == before

    def test_what_is_no_edit_is_an_error(self) -> None:
        with pytest.raises(StrategyError, match="'drop it' is not an edit"):
            indexed([user()]).apply("drop it")  # type: ignore[arg-type]


def test_a_group_of_another_conversation() -> None:
    index, other = indexed([system("s"), *turns(1), user("q")]), indexed(turns(5))
    group = other.included_groups[8]
    assert index.protection(group) == "group 8 does not exist"
    assert not index.apply(Rewrite(group, [summary()]))
    assert not index.apply(Drop([1, group]))
    assert [refused.rule for refused in index.refused] == ["group 8 does not exist"] * 2
