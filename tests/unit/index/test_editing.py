"""Applied edits: who made a summary, and which edits are undone because of messages that came later."""

from __future__ import annotations

import pytest

from compaction import Drop, MessageIndex, Replace, Rewrite
from compaction.formats import bedrock, openai_chat
from compaction.index.marks import marked
from compaction.messages import Message
from tests.support.chats import assistant, indexed, user
from tests.support.letters import lettered, letters_of

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


def test_a_dropped_message_comes_back_if_an_instruction_hides_what_follows_it() -> None:
    """The message after leading instructions is the first: the edit that took the one before them is undone."""
    answer, kind, call = (
        {"role": "assistant", "content": [{"text": "hello"}]},
        {"role": "system", "content": [{"text": "now be kind"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "one", "name": "look", "input": {}}}]},
    )
    index = MessageIndex([answer, {"role": "user", "content": [{"text": "hi"}]}], counter="chars/4", format=bedrock)
    drop = Drop((0,))
    assert index.apply(drop)
    index.sync([answer, kind, call])
    assert index.messages() == [answer, kind, call]
    assert index.undone == (drop,)


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
