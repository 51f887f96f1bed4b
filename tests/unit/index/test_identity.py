"""Following the full list a framework passes on each call, whatever it did to it in between; the keys of messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from compaction import Drop, Edit, GroupKind, MessageIndex, Replace, Rewrite, Together, nothing, run_sync
from compaction.errors import InvalidMessage
from compaction.formats import OpenAIChat, openai_chat
from compaction.index import HostChanges
from compaction.index.keys import message_key
from compaction.index.marks import Marks
from compaction.strategies import ToolResult
from tests.support.chats import Chat, assistant, call, indexed, result, shown, summary, system, turns, user

LONG = "word " * 100


def rebuilt(messages: Chat) -> Chat:
    """The same messages as other objects, as from a store."""
    return list(json.loads(json.dumps(messages)))


def compacted(messages: Chat) -> MessageIndex:
    """An index whose second and third group were dropped."""
    index = indexed(messages)
    assert index.apply(Drop([1, 2], "old"))
    return index


TURNS = [system("s"), *turns(4, words=40)]
ASKED = [user("q"), call("1"), result("1", "r"), assistant("a"), user("z")]
CALLED = [user("q"), call("1", "2"), result("1", "r1"), result("2", "r2"), assistant("a"), user("z")]
ODD = [call("1", "2"), result("0", "r0"), result("1", "r1"), result("2", "r2"), *turns(2)]
AGAIN = [user("ok"), assistant("one"), user("ok"), assistant("two"), user("ok"), assistant("three"), user("z")]
NEW, OK = user("new"), user("ok")
REPLACED = Replace([1, 2, 3, 4], [summary()])
LISTS: dict[str, tuple[Chat, list[Edit], Any, str]] = {
    "the source, which covers more": (TURNS, [Drop([1, 2])], lambda m, v: [*m[:6], NEW], "s q2 a2 q3 new"),
    "a view that departs": (TURNS, [Drop([1, 2])], lambda m, v: [*v[:3], NEW], "s q2 a2 new"),
    "cut before what was dropped": (TURNS, [Drop([1, 2])], lambda m, v: m[:3], "s q1 a1"),
    "both or none": (TURNS, [Together(Drop([1]), Drop([2]))], lambda m, v: m[:3], "s q1 a1"),
    "half of an edit is cut": (TURNS, [Drop(1), Drop([3, 5]), Drop(2)], lambda m, v: [*m[:5], NEW], "s q2 a2 new"),
    "now the last question": (TURNS, [Drop([3]), Drop([1])], lambda m, v: [*m[:4], assistant("new")], "s a1 q2 new"),
    "one moved here": (TURNS, [Drop([2, 3])], lambda m, v: [*m[:2], m[6], *m[3:6], *m[7:]], "s q1 a3 a2 q3 q4 a4"),
    "without a head": (TURNS, [Replace([1, 2], [summary()])], lambda m, v: [*m[4:], NEW], "so far a2 q3 a3 q4 a4 new"),
    "only a summary is left of it": (TURNS, [REPLACED], lambda m, v: [m[0], *m[5:], NEW], "s so far q3 a3 q4 a4 new"),
    "a call without its result": (ASKED, [Drop([1])], lambda m, v: [*m[:2], NEW, m[4]], "q 1 new z"),
    "a part of a group is new, whole": (CALLED, [], lambda m, v: [*m[:3], *m[4:]], "q 1+2 r1 a z"),
    "cut into a hidden call": (CALLED, [Drop([1])], lambda m, v: [*m[:3], NEW], "q 1+2 r1 new"),
    "a result moved": (ODD, [Drop(0), Drop(1)], lambda m, v: [*m[:2], NEW, *m[3:], m[2]], "1+2 new r2 q1 a1 q2 a2 r1"),
    "words said again": (AGAIN, [Drop([0, 1])], lambda m, v: [*m, NEW], "ok two ok three z new"),
    "not between the known": (AGAIN, [Drop([0, 1])], lambda m, v: [OK, assistant("new"), *m[3:]], "ok new two ok three z"),
    "only the words are known": (AGAIN, [Drop([0, 1])], lambda m, v: [m[0], NEW, m[0], m[6]], "ok new ok z"),
}
"""For each case the list, the edits, the list that the host passes (made of the list and the view), and the new view."""


@pytest.mark.parametrize("copies", [list, rebuilt], ids=["the same objects", "copies"])
@pytest.mark.parametrize(("source", "edits", "given", "view"), LISTS.values(), ids=LISTS)
def test_a_message_is_recognized_at_any_place_and_never_mistaken(
    source: Chat, edits: list[Edit], given: Any, view: str, copies: Any
) -> None:
    """Edits that touch what the host changed are undone, or are not allowed any more; the others stay."""
    index = indexed(source)
    assert all(index.apply(edit) for edit in edits)
    index.sync(copies(given(source, index.messages())))
    said = [text.split("\n")[-1].replace(" word", "") for text in shown(index.messages())]
    assert " ".join(said) == view


@pytest.mark.parametrize(
    ("source", "edits", "given", "changes"),
    [
        (TURNS, [Replace([1, 2], [summary()])], lambda m: [*m[4:], NEW], HostChanges(removed=(0, 3))),
        (TURNS, [REPLACED], lambda m: [m[0], *m[5:], NEW], HostChanges()),
        (CALLED, [], lambda m: [*m[:3], *m[4:]], HostChanges(removed=(1, 2, 3), added=2)),
    ],
    ids=["without a head", "a summary stands for it", "a part of a group"],
)
def test_what_the_host_changed_is_told(source: Chat, edits: list[Edit], given: Any, changes: HostChanges) -> None:
    index = indexed(source)
    assert all(index.apply(edit) for edit in edits)
    index.sync(given(source))
    assert index.changes == changes


@pytest.mark.parametrize(("given", "source"), [("aSen", "abcden"), ("aSne", "abcdne")])
def test_hidden_messages_come_before_new_ones_in_the_same_gap(given: str, source: str) -> None:
    """The summary S stands for b and c, and d was dropped; f is missing at the end, so the host returned to e."""
    known = {letter: user(letter * 99) for letter in "abcdef"}
    index = indexed([*known.values()])
    assert index.apply(Replace([1, 2], [summary()]))
    assert index.apply(Drop([3]))
    index.sync([{**known, "S": index.messages()[1], "n": user("n")}[letter] for letter in given])
    assert "".join(message["content"][0] for message in index.source) == source
    assert index.changes == HostChanges(rewound=(5,), added=source.index("n") < source.index("e"))


def test_a_summary_may_stand_for_messages_on_both_sides_of_others() -> None:
    """New messages before it come after those others; S stands for b and e."""
    known = {letter: user(letter * 99) for letter in "abcdef"}
    index = indexed([*known.values()])
    assert index.apply(Replace([1, 4], [summary()]))
    known |= {"S": index.messages()[3], "n": user("n"), "x": user("x")}
    index.sync([known[letter] for letter in "acdnSx"])
    assert "".join(message["content"][0] for message in index.source) == "abcdnex"


def test_a_hidden_call_needs_its_late_result() -> None:
    """It is rewound if its result is behind the end of the list; a summary of both keeps both."""
    messages = [user("q" * 99), call("1"), user("x"), result("1", LONG), assistant("a"), user("z")]
    index = indexed(messages)
    assert index.apply(Replace([1], [summary()]))
    view = index.messages()[:3]
    index.sync(view)
    assert (index.messages(), list(index.source)) == (view, messages[:4])
    index = indexed(messages)
    assert index.apply(Drop([1]))
    index.sync([messages[0], messages[2]])
    assert list(index.source) == [messages[0], messages[2]]


class TestSource:
    def test_formats_may_say_what_the_same_message_is(self) -> None:
        class ById(OpenAIChat):
            name = "by-id"

            def key(self, raw: Any) -> Any:
                return raw["id"]

        messages = [{**user("q"), "id": 1}, {**assistant("a"), "id": 2}]
        index = MessageIndex(messages, counter="chars/4", format=ById())
        index.sync([{**user("edited elsewhere"), "id": 1}, {**assistant("a"), "id": 2}, {**user("r"), "id": 3}])
        assert shown(index.messages()) == ["q", "a", "r"]
        index.sync([{**user("q"), "id": 9}])
        assert [message["id"] for message in index.messages()] == [9]


class TestFedBack:
    def test_a_view_cut_where_its_edits_cannot_stand(self) -> None:
        """If the edits cannot be kept, the cut view is read as a new conversation, in which pins stay."""
        messages = [system("s"), *turns(2), user("q3")]
        index = indexed(messages)
        index.apply(Drop([1, 3]))
        index.pin([2])
        given = index.messages()[:3]
        index.sync(given)
        assert (index.messages(), index.edits, index.total.messages) == (given, (), 3)
        assert index.to_dict()["pinned"] == [1]
        assert index.group(1).pinned

    def test_the_view_with_its_summary_edited(self) -> None:
        index = indexed([system("s"), user(LONG), assistant(LONG), *turns(1)])
        index.apply(Replace([1, 2], [summary()]))
        view = index.messages()
        edited = [view[0], user("I met them before"), *view[2:]]
        index.sync(edited)
        assert index.messages() == edited
        assert (index.edit_count, index.total.messages, index.group(-1).replaces) == (1, 5, (1, 2))
        assert index.group(-1).messages[0].raw is edited[1]


class TestDivergence:
    def test_a_summary_of_what_was_cut_is_undone(self) -> None:
        """With every edit that names it; a summary of what stays keeps its originals, under a new id if need be."""
        messages = [system("s"), *turns(4, words=40)]
        index = indexed(messages)
        index.apply(Replace([5, 6], [summary("cut")]))
        index.apply(Replace([1, 2], [summary("stays " * 9)]))
        index.apply(Drop([-1], "names what was cut"))
        index.apply(Replace([-2, 3], [summary("stays too")]))
        index.sync([*messages[:5], user("new")])
        assert [text.split("\n")[-1] for text in shown(index.messages())][1:] == ["stays too", messages[4]["content"], "new"]
        made = next(group for group in index.included_groups if group.replaces)
        assert index.originals(made) == messages[1:4]
        assert index.edit_count == 2

    def test_a_pinned_summary_outlives_a_cut(self) -> None:
        messages = [system("s"), *turns(4, words=40)]
        index = indexed(messages)
        index.apply(Replace([5, 6], [summary("cut")]))
        index.apply(Replace([1, 2], [summary("stays")]))
        index.pin([-2])
        index.sync(messages[:5])
        assert [(group.id, group.pinned) for group in index.included_groups] == [(0, False), (-1, True), (3, False), (4, False)]


@pytest.mark.parametrize("bad", [{"content": "no role"}, "no message", None])
def test_a_list_that_departs_and_cannot_be_read_changes_nothing(bad: Any) -> None:
    index = compacted(TURNS)
    before = (index.included, index.messages(), index.edits)
    with pytest.raises(InvalidMessage, match=r"^messages\[4\]"):
        index.sync([*TURNS[:3], NEW, bad])
    assert (index.included, index.messages(), index.edits) == before


class TestVerify:
    def test_a_message_changed_in_place_is_noticed(self) -> None:
        """Only contents tell; without ``verify`` the same object is the same message."""
        messages = [system("s"), *turns(3)]
        index = compacted(messages)
        tokens = index.included.tokens
        messages[4]["content"] = LONG
        index.sync(messages)
        assert index.included.tokens == tokens
        index.sync(messages, verify=True)
        assert index.included == indexed([messages[0], *messages[3:]]).included
        assert index.edits == (Drop([1, 2], "old"),)


def test_an_object_and_its_dictionary_are_the_same_message() -> None:
    from openai.types.chat import ChatCompletionMessage

    said = ChatCompletionMessage(role="assistant", content="a" * 80)
    index = indexed([user("q"), said, user("r"), user("s")])
    index.apply(Drop([0], "old"))
    index.sync([user("q"), {"role": "assistant", "content": "a" * 80}, user("r"), user("s"), user("t")])
    assert (index.edit_count, index.included.messages, index.source[1]) == (1, 4, said)


def test_a_late_result_takes_the_place_of_the_line_for_its_call() -> None:
    """The line that replaced a call is removed when the call is restored, and shown again when that is undone."""
    index = indexed([user("q"), call("1", arguments='{"q": "%s"}' % ("x" * 900)), user("r"), assistant("a")])
    run_sync(index, ToolResult(keep=nothing))
    assert [group.is_collapsed for group in index.included_groups] == [False, True, False, False]
    mark, turns_before = index.checkpoint(), index.turns_since_edit
    index.append([result("1")])
    assert [group.kind.value for group in index.included_groups] == ["user", "tool_call", "user", "assistant"]
    assert index.turns_since_edit == turns_before
    again = MessageIndex.from_dict(index.to_dict(), counter="chars/4")
    assert (again.messages(), again.included) == (index.messages(), index.included)
    index.rollback(mark)
    assert [group.is_collapsed for group in index.included_groups] == [False, True, False, False]


class TestByMessage:
    """A message is recognized at any place, and is never mistaken for another."""

    def test_a_message_changed_in_the_middle(self) -> None:
        """It is the same message with other content: its rewrite is undone, and all other edits stay."""
        messages = [system("s"), user("q"), call("1"), result("1", LONG), assistant("a"), *turns(2, words=30)]
        index = indexed(messages)
        asked, found = index.group(2).messages
        index.apply(Rewrite(2, [asked, found.evolve(text="cut")]))
        index.apply(Replace([5, 6], [summary()]))
        changed = copy.deepcopy(messages)
        changed[3]["content"] = "another result"
        changed[5]["content"] = "hidden, and changed"
        index.sync([*changed, user("new")])
        assert index.changes == HostChanges(altered=(3, 5))
        assert index.messages()[3] == changed[3]
        assert [type(edit) for edit in index.edits] == [Replace]
        assert index.originals(-1) == changed[5:7]

    def test_the_hosts_own_ids(self) -> None:
        """A message with the id of another is an altered version of it; an id that occurs twice identifies none."""
        messages = [{**message, "id": f"m{place}"} for place, message in enumerate(turns(3))]
        index = indexed(messages)
        index.apply(Drop([0, 1]))
        index.sync([{**messages[0], "content": "said differently"}, *messages[2:], user("new")])
        assert index.changes == HostChanges(altered=(0,))
        assert shown(index.messages()) == ["q2", "a2", "q3", "a3", "new"]
        twice = [{**message, "id": "m"} for message in turns(3)]
        index = indexed(twice)
        index.sync([{**twice[0], "content": "said differently"}, *twice[1:]])
        assert index.changes == HostChanges(removed=(0,), added=1)

    def test_after_a_restart_a_message_had_changed(self) -> None:
        messages = [system("s"), *turns(5, words=40)]
        index = indexed(messages)
        index.apply(Replace([3, 4, 5, 6], [summary()]))
        saved = json.loads(json.dumps(index.to_dict(messages=False)))
        changed = copy.deepcopy(messages)
        changed[2]["content"] = "said differently"
        resumed = MessageIndex.from_dict(saved, counter="chars/4")
        resumed.sync([*changed, user("new")])
        assert (resumed.edit_count, resumed.group(-1).replaces) == (1, (3, 4, 5, 6))
        assert resumed.messages()[2] == changed[2]
        assert resumed.changes == HostChanges(altered=(2,))
        added = MessageIndex.from_dict(saved, counter="chars/4")
        added.sync([messages[0], system("mind the step"), *messages[1:]])
        assert (added.edit_count, added.group(-1).replaces) == (1, (4, 5, 6, 7))
        assert added.changes == HostChanges(added=1)

    @pytest.mark.parametrize(
        "given",
        [
            lambda chat: chat,
            lambda chat: [*chat, user("new")],
            lambda chat: chat[:8],
            lambda chat: [*chat[:8], user("another way")],
            lambda chat: [*chat[:3], user("altered"), *chat[4:8], user("new")],
            lambda chat: [*chat[:5], user("added"), assistant("too"), *chat[5:], user("new")],
        ],
        ids=["the same", "longer", "rewound", "another way", "altered and rewound", "added"],
    )
    def test_after_a_restart_the_same_changes_are_reported(self, given: Callable[[Chat], Chat]) -> None:
        """An index with only fingerprints reports the host's changes as the one that saved it does."""
        messages = [system("s"), *turns(5, words=40)]
        index = indexed(messages)
        assert index.apply(Drop([1, 2]))
        resumed = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4")
        host = rebuilt(given(messages))
        index.sync(host)
        resumed.sync(host)
        assert resumed.changes == index.changes
        assert resumed.messages() == index.messages()

    def test_after_a_restart_without_a_known_message(self) -> None:
        """All that came after it counts as new."""
        resumed = MessageIndex.from_dict(compacted(TURNS).to_dict(messages=False), counter="chars/4")
        resumed.sync([*TURNS[:5], *TURNS[6:]])
        assert resumed.changes == HostChanges(rewound=(5, 6, 7, 8))
        assert resumed.messages() == [TURNS[0], *TURNS[3:5], *TURNS[6:]]

    def test_after_a_restart_an_edit_may_contain_what_had_changed(self) -> None:
        """A summary does not say what it was written from, so it goes when the earlier version of a message is forgotten."""
        index = indexed(TURNS)
        assert index.apply(Replace([1, 2], [summary()]))
        resumed = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4")
        resumed.sync([*TURNS[:4], user("altered"), *TURNS[5:]])
        assert resumed.edit_count == 1
        resumed.forget([TURNS[4]])
        assert resumed.edit_count == 0

    def test_after_a_restart_with_the_view(self) -> None:
        """The summary in it is known to be one, though its originals are not there."""
        index = MessageIndex([system("s"), *turns(5, words=40)], counter="chars/4", marks=Marks(ceilings={}))
        index.apply(Replace([1, 2, 3, 4], [summary()]))
        view = rebuilt(index.messages())
        saved = json.loads(json.dumps(index.to_dict(messages=False)))
        for _ in range(2):
            resumed = MessageIndex.from_dict(saved, counter="chars/4", marks=Marks(ceilings={}))
            resumed.sync([*view, user("new")])
            assert [group.kind for group in resumed.included_groups][1] is GroupKind.SUMMARY
            assert resumed.messages() == [*view, user("new")]
            saved = json.loads(json.dumps(resumed.to_dict(messages=False)))
        copied = MessageIndex.from_dict(saved, counter="chars/4", marks=Marks(ceilings={}))
        copied.sync([*view, view[1], user("new")])
        assert [group.kind for group in copied.included_groups].count(GroupKind.SUMMARY) == 1


def test_a_list_accounts_for_the_source_or_not() -> None:
    """The list may continue the source; no message may be missing, except in the middle if the host names the conversation."""
    index, more = indexed(turns(5)), user("more")
    assert index.apply(Drop([0, 1]))
    assert index.apply(Drop([2, 3]))
    assert index.accounts_for([*turns(5), more])
    assert not index.accounts_for(turns(5)[:9])
    assert not index.accounts_for(turns(5)[:9], by_id=True)
    assert not index.accounts_for([*turns(5)[:6], *turns(5)[7:], more])
    assert index.accounts_for([*turns(5)[:6], *turns(5)[7:], more], by_id=True)
    assert not index.accounts_for([user("other"), *turns(4)], by_id=True)
    assert index.changes.rewound == ()


def test_a_moved_reminder_rewinds_the_whole_group_that_had_it() -> None:
    """A group of which only a part is in the list is not recognized, so the call before the changed result is new as well."""
    index = indexed([user("q"), call("a"), result("a"), call("b"), result("b", "found <remember>")])
    index.sync(rebuilt([*index.source[:-1], result("b", "found"), call("c"), result("c", "found <remember>")]))
    assert index.changes == HostChanges(rewound=(3, 4))
    assert [len(group.messages) for group in index.included_groups] == [1, 2, 2, 2]


@pytest.mark.parametrize("stored", [True, False], ids=["with its messages", "without its messages"])
def test_after_a_restart_a_rewritten_group_had_changed_and_grown(stored: bool) -> None:
    """Only its rewrite is undone; the other edits that were made together with it stay, as if nothing had been stored."""
    messages = [*turns(1), user("three"), call("a", "b"), result("a", "x"), result("b", "y"), *turns(2)]
    index = indexed(messages)
    asked, first, second = index.group(3).messages
    assert index.apply(Together(Rewrite(3, [asked, first.evolve(text="short"), second]), Drop([1])))
    saved = json.loads(json.dumps(index.to_dict(messages=stored)))
    host = rebuilt([*messages[:4], result("a", "changed"), messages[5], result("a", "late"), *messages[6:]])
    resumed = MessageIndex.from_dict(saved, counter="chars/4")
    resumed.sync(host)
    assert resumed.messages() == [host[0], *host[2:]]
    assert [type(edit) for edit in resumed.undone] == [Rewrite]


class Wrapped(OpenAIChat):
    """A format whose key contains an object, as those of some frameworks do."""

    def key(self, raw: Any) -> Any:
        return raw["role"], Content(raw["content"])


@attrs.frozen(repr=False)
class Content:
    """Equal by value, without a text of its own."""

    text: str


def test_the_key_of_a_message_depends_on_its_data_alone() -> None:
    """Not on the order of its fields or on the types of its containers; saved sessions contain it, so it stays the same."""
    fields = call("a", text="é")
    forms: list[Any] = [fields, dict(reversed(fields.items())), {**fields, "tool_calls": tuple(fields["tool_calls"])}]
    forms += [MappingProxyType(fields), {**fields, "tool_calls": list(map(MappingProxyType, fields["tool_calls"]))}]
    assert len({message_key(each, openai_chat) for each in forms}) == 1
    assert message_key({"role": "user", "content": "é"}, openai_chat) == "d73bbeb94014dfbc733731e1"


def test_the_key_of_a_message_is_the_same_in_every_process() -> None:
    messages = [user("hi"), user("hi"), user("ho")]
    keys = [message_key(raw, Wrapped()) for raw in messages]
    assert keys[0] == keys[1] != keys[2]
    index = MessageIndex([*messages, user("so")], counter="chars/4", format=Wrapped())
    assert index.apply(Drop(2))
    again = MessageIndex.from_dict(index.to_dict(messages=False), counter="chars/4", format=Wrapped())
    again.sync([dict(raw) for raw in index.source])
    assert (again.edits, again.messages()) == (index.edits, index.messages())
