"""Forgetting: the messages and what was decided about them go, and everything else stays as it was."""

from __future__ import annotations

import json

import pytest

from compaction.errors import InputError
from compaction.formats import openai_chat
from compaction.index import Drop, Marks, MessageIndex, Replace, Rewrite, Together
from tests.support.chats import Chat, assistant, call, result, user

CHAT: Chat = [
    {"role": "system", "content": "You keep a store."},
    *(each for n in range(6) for each in (user(f"question {n} " * 5), assistant(f"reply {n} " * 5))),
]


def edited() -> MessageIndex:
    """An index with two successive edits, and a third one elsewhere."""
    index = MessageIndex(CHAT, counter="chars/4", marks=Marks())
    for ids, text in (((1, 2), "first"), ((-1, 3), "second")):
        groups = [index.group(id) for id in ids]
        assert index.apply(Replace(ids, index.summary(text, groups, by="S"), "old", read=()), by="S")
    assert index.apply(Drop([6, 7], "old"))
    return index


def test_edits_that_knew_a_message_are_undone() -> None:
    index = edited()
    assert index.forget([dict(CHAT[2])]) == 1
    assert index.edits == (Drop([5, 6], "old"),)
    assert index.messages() == [each for place, each in enumerate(CHAT) if place not in (2, 6, 7)]
    assert all(one is other for one, other in zip(index.source, [*CHAT[:2], *CHAT[3:]], strict=True))


def test_the_inner_summary_stays() -> None:
    index = edited()
    assert index.forget([CHAT[3]]) == 1
    assert [type(edit) for edit in index.edits] == [Replace, Drop]
    assert "first" in index.messages()[1]["content"]


def test_what_is_not_there() -> None:
    index = edited()
    before = index.to_dict(), index.messages()
    assert index.forget([user("nobody said this")]) == 0
    assert (index.to_dict(), index.messages()) == before
    index.append([user("ok"), assistant("yes"), user("ok")])
    assert index.forget([user("ok")]) == 2
    with pytest.raises(InputError):
        index.forget([7])


def test_a_part_of_a_group_takes_the_rest_along() -> None:
    """A call without its result is invalid, so the group is removed until the host's list makes it valid again."""
    chat = [user("go"), call("a", "b"), result("a", "the secret"), result("b", "public"), assistant("done"), user("more")]
    index = MessageIndex(chat, counter="chars/4")
    assert index.forget([chat[2]]) == 1
    assert index.messages() == [chat[0], chat[4], chat[5]]
    host = [chat[0], call("b"), *chat[3:]]
    index.sync(host)
    assert index.messages() == host
    assert openai_chat.validate(index.messages()) == []


def test_each_group_is_judged_by_itself() -> None:
    """A call without its result goes, too; a call without the thoughts before it stays."""
    thoughts = {"role": "assistant", "content": None, "reasoning_content": "secret thoughts"}
    chat = [user("go"), call("a"), result("a", "secret"), user("more"), thoughts, call("b"), result("b", "public"), user("?")]
    index = MessageIndex(chat, counter="chars/4")
    assert index.columns.ordinals(4) == [4, 5, 6]
    assert index.forget([chat[2], thoughts]) == 2
    assert index.messages() == [chat[0], chat[3], *chat[5:]]


def test_a_message_as_the_view_shows_it() -> None:
    """A shortened version identifies its message; a summary's text undoes the edit that wrote it."""
    index = edited()
    shown = index.messages()
    assert index.forget([shown[1]]) == 0
    assert [type(edit) for edit in index.edits] == [Replace, Drop]
    index = MessageIndex(CHAT, counter="chars/4")
    message = index.group(2).messages[0]
    assert index.apply(Rewrite(2, [message.evolve(text="reply")], "long"))
    assert index.forget([index.messages()[2]]) == 1
    assert index.messages() == [*CHAT[:2], *CHAT[3:]]


def summarized(read: tuple[int, ...] | None) -> MessageIndex:
    """An index with a summary of two groups, written from these others too; the last message but one is a secret."""
    index = MessageIndex([*CHAT, user("the code is 4711"), assistant("noted")], counter="chars/4")
    groups = [index.group(1), index.group(2)]
    assert index.apply(Replace([1, 2], index.summary("it adds up to 13", groups, by="S"), "old", read=read))
    return index


@pytest.mark.parametrize(("read", "left"), [(None, 0), ((13,), 0), ((12,), 1), ((), 1)])
def test_what_was_written_from_a_message_that_stays_in_the_view(read: tuple[int, ...] | None, left: int) -> None:
    """A summary is undone if the message was read for it, whatever its words; without a statement, all may have been read."""
    index = summarized(read)
    assert index.forget([user("the code is 4711")]) == 1
    index.sync([*CHAT, assistant("noted")])
    assert index.edit_count == left


def test_a_message_that_came_after_a_summary() -> None:
    index = summarized(None)
    index.append([user("the door is 12"), assistant("noted again")])
    assert index.forget([user("the door is 12")]) == 1
    assert index.edit_count == 1


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("altered", [False, True])
def test_a_message_that_the_host_removed_before(saved: bool, altered: bool) -> None:
    index = summarized(None)
    index.sync([*CHAT, *([user("the code is secret")] if altered else []), assistant("noted"), user("more")])
    assert index.edit_count == 1
    if saved:
        index = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4")
    assert index.forget([user("nobody said this")]) == 0
    assert len(index.snapshot.journal) == 1
    assert index.forget([user("the code is 4711")]) == 0
    assert len(index.snapshot.journal) == 0


def test_an_edit_that_was_written_from_one_that_goes() -> None:
    index = MessageIndex([*CHAT, user("the code is 4711"), assistant("noted")], counter="chars/4")
    message = index.group(3).messages[0]
    assert index.apply(Rewrite(3, [message.evolve(text="it adds up to 13")], "told", read=[13]))
    groups = [index.group(1), index.group(2)]
    assert index.apply(Replace([1, 2], index.summary("thirteen", groups, by="S"), "old", read=[3]))
    assert index.apply(Drop([6, 7], "old"))
    assert index.forget([user("the code is 4711")]) == 1
    assert index.edits == (Drop([6, 7], "old"),)


def test_parts_of_a_whole_edit_go_together() -> None:
    index = MessageIndex(CHAT, counter="chars/4")
    assert index.apply(Together(Drop([1, 2], "old"), Drop([5, 6], "old")))
    assert index.forget([CHAT[5]]) == 1
    assert index.edits == ()


def test_pins_and_marks_move() -> None:
    """A pin stays with its group; marks of later messages are not believed because earlier ones went."""
    index = MessageIndex(CHAT, counter="chars/4", marks=Marks(until=4))
    index.pin([2, 8])
    assert index.forget([CHAT[2]]) == 1
    assert index.group(7).pinned
    assert sum(index.group(id).pinned for id in index.included_ids) == 1
    assert index.marks is not None
    assert index.marks.until == 3


def test_summaries_are_not_believed_any_more() -> None:
    index = edited()
    view = index.messages()
    index.sync([view[0], user("another"), view[1], user("and another")])
    index.forget([CHAT[1]])
    assert index.marks is not None
    assert not index.marks.own


def test_a_state_without_messages() -> None:
    index = edited()
    saved = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4", marks=Marks())
    assert saved.forget([user("nobody said this")]) == 0
    assert saved.to_dict(messages=False) == index.to_dict(messages=False)
    assert saved.forget([CHAT[7]]) == 1
    state = json.dumps(saved.to_dict(messages=False))
    assert len(json.loads(state)["fingerprints"]) == len(CHAT) - 1
    left = [each for each in CHAT if each is not CHAT[7]]
    saved = MessageIndex.from_dict(json.loads(state), counter="chars/4", marks=Marks())
    saved.sync(left)
    assert (saved.edits, saved.source) == ((), tuple(left))


def test_a_state_without_messages_is_forgotten_to_the_safe_side() -> None:
    """It does not tell which messages form a group, so every edit goes that was decided after the message was read."""
    chat = [user("go " * 9), assistant("done " * 9), user("more"), call("a"), result("a", "secret " * 20), assistant(), user()]
    index = MessageIndex(chat[:3], counter="chars/4", marks=Marks())
    assert index.apply(Drop([1], "old"))
    index.append(chat[3:])
    group = index.group(3)
    assert index.apply(Replace([group], index.summary("secret", [group], by="S"), "old"))
    saved = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4", marks=Marks())
    assert saved.forget([chat[4]]) == 1
    assert "secret" not in json.dumps(saved.to_dict(messages=False))
    saved.sync([*chat[:4], *chat[5:]])
    assert saved.edits == (Drop([1], "old"),)


def test_a_call_that_a_late_result_brought_back_stays() -> None:
    """If the restore goes, because it came after the forgotten message, the edit that had hidden the call goes, too."""
    chat = [user("go"), call("a"), user("more"), assistant("so"), user("the code is 4711"), result("a", "found"), user("?")]
    index = MessageIndex(chat[:4], counter="chars/4", marks=Marks())
    assert index.apply(Drop([1], "old"))
    index.append(chat[4:])
    saved = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4", marks=Marks())
    assert saved.forget([chat[4]]) == 1
    left = [*chat[:4], *chat[5:]]
    saved.sync(left)
    assert saved.messages() == left
