"""An index as JSON and back: the same view, the same sizes, and everything can still be undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from compaction import Drop, Edit, MessageIndex, Replace, Rewrite, RunContext, Together
from compaction.errors import StateError
from compaction.formats import anthropic, openai_chat
from compaction.index import Saved
from compaction.messages import Message
from tests.support.chats import assistant, call, indexed, result, shown, summary, system, tool_turns, turns, user

LONG = "word " * 100
State = dict[str, Any]


def stored(index: MessageIndex, *, messages: bool = True) -> State:
    """Return the state after a round trip through JSON."""
    data: State = json.loads(json.dumps(index.to_dict(messages=messages)))
    return data


def loaded(data: State, **options: Any) -> MessageIndex:
    return MessageIndex.from_dict(data, counter="chars/4", **options)


def edited() -> MessageIndex:
    """An index with an edit of every kind in its journal."""
    messages = [system("s"), *tool_turns(4), user("q5"), call("late"), user("q6"), assistant("a6")]
    index = indexed(messages)
    asked, found = index.group(2).messages
    edits: list[Edit] = [
        Rewrite(2, [asked, found.evolve(text="cut")], "long"),
        Drop([1], "old"),
        Replace([5, 6], [summary("one"), openai_chat.new("assistant", "I see")], "older"),
        Together(Drop([8]), Replace([10], [summary("two " * 20)], "inner"), reason="both"),
        Replace([-2, 12], [summary("three")], "a summary of a summary"),
        Drop([18], "no answer"),
    ]
    for edit in edits:
        assert index.apply(edit, by="Tests"), index.refused
    index.append([result("late"), user("q7")])
    index.pin([2, -3])
    return index


def answers(index: MessageIndex) -> list[object]:
    """All that an index answers about its view and its journal."""
    groups = [attrs.astuple(group, filter=lambda field, _: field.name != "messages") for group in index.included_groups]
    journal = [(entry.by, entry.turn, entry.edit.reason) for entry in index.journal]
    return [index.messages(), index.included, index.total, journal, groups, index.originals(-3), index.turns_since_edit]


class TestRoundTrip:
    @pytest.mark.parametrize("messages", [True, False])
    def test_all_that_the_index_answers_is_the_same(self, messages: bool) -> None:
        index = edited()
        other = loaded(stored(index, messages=messages))
        if not messages:
            assert other.messages() == []
            other.sync(list(index.source))
        assert answers(other) == answers(index)

    def test_the_state_is_independent(self) -> None:
        index = indexed(turns(2))
        data = index.to_dict()
        index.append([user("later")])
        index.apply(Drop([0]))
        assert (len(data["messages"]), data["journal"]) == (4, [])

    @pytest.mark.parametrize("messages", [True, False])
    def test_a_framework_that_gave_a_summary_an_id(self, messages: bool) -> None:
        """The edit that wrote it is repeated, although no new edit may write a message with an id."""
        index = edited()
        index.group(-3).messages[0].raw["id"] = "given"
        other = loaded(stored(index, messages=messages))
        other.sync(list(index.source))
        assert answers(other) == answers(index)
        assert not other.apply(Replace([-3], [openai_chat.read({"role": "user", "content": "four", "id": "given"})]))

    def test_pins_by_predicate(self) -> None:
        """They are the predicate's, not the state's: pass it again."""

        def wanted(message: Message) -> bool:
            return "keep" in message.text

        index = indexed([user("keep this" + LONG), assistant(LONG), user("q")], pin=wanted)
        index.apply(Replace([1], [summary("keep")]))
        other = loaded(stored(index), pin=wanted)
        assert [group.pinned for group in other.included_groups] == [True, False, False]
        assert stored(other) == stored(index)
        other.append([user("keep that")])
        assert other.included_groups[-1].pinned
        assert not loaded(stored(index)).group(0).pinned


class TestWithoutMessages:
    @pytest.mark.parametrize("messages", [True, False])
    def test_the_time_since_messages_last_came(self, messages: bool) -> None:
        """A conversation resumed after a pause has the pause as its idle time."""
        chat = turns(2)
        index = MessageIndex(chat, counter="chars/4", context=RunContext(now=1_000.0))
        again = loaded(stored(index, messages=messages), context=RunContext(now=4_600.0))
        again.sync([*chat, user("back")])
        assert again.idle_seconds == 3_600.0

    def test_only_fingerprints_are_kept(self) -> None:
        """With fingerprints, the state contains no text of the source, but the messages that edits wrote."""
        index = indexed([user("a secret"), assistant("another" + LONG), user("q")])
        index.apply(Replace([1], [summary("so far")]))
        text = json.dumps(index.to_dict(messages=False))
        assert "secret" not in text
        assert "so far" in text

    def test_messages_that_are_not_those(self) -> None:
        """From the first different message on, the list is read as new; edits before it stay."""
        messages = [system("s"), *turns(3)]
        index = indexed(messages)
        index.apply(Drop([1], "stays"))
        index.apply(Drop([2, 4], "touches what changed"))
        data = stored(index, messages=False)
        other = loaded(data)
        other.sync([*messages[:4], assistant("another a2"), user("another q3")])
        assert shown(other.messages()) == ["s", "a1", "q2", "another a2", "another q3"]
        stranger = loaded(data)
        stranger.sync([user("hello")])
        assert (stranger.messages(), stranger.edits) == ([user("hello")], ())

    def test_edits_are_judged_by_the_messages_that_are_there(self) -> None:
        """If the list differs right after a dropped group, that group is not the newest, and stays dropped."""
        messages = [system("s"), *turns(3)]
        index = indexed(messages)
        index.apply(Drop([2], "old"))
        other = loaded(stored(index, messages=False))
        other.sync([*messages[:3], user("another q2"), assistant("another a2")])
        assert shown(other.messages()) == ["s", "q1", "another q2", "another a2"]

    def test_it_is_no_conversation_before_that(self) -> None:
        unbound = loaded(stored(edited(), messages=False))
        with pytest.raises(StateError, match="pass the full list to sync first"):
            unbound.append([user()])
        with pytest.raises(StateError, match="call sync first, or pass messages=False"):
            unbound.to_dict()

    def test_a_list_that_cannot_be_read_leaves_it_unbound(self) -> None:
        index = edited()
        other = loaded(stored(index, messages=False))
        with pytest.raises(Exception, match=r"messages\[23\]"):
            other.sync([*index.source, None])
        other.sync(list(index.source))
        assert other.messages() == index.messages()


def put(key: str, value: Any) -> Callable[[State], object]:
    """A state with something else in a place."""
    return lambda data: data.update({key: value})


def edit_with(key: str, value: Any, place: int = 1) -> Callable[[State], object]:
    """A state with something else in one of its edits."""
    return lambda data: data["journal"][place]["edit"].update({key: value})


class TestCorrupt:
    @pytest.mark.parametrize(
        "damage",
        [
            put("version", "2"),
            put("format", "smoke-signals"),
            put("journal", [7]),
            put("messages", [{"content": "no role"}]),
            lambda data: data["messages"].append({"content": "no role"}),  # although no edit needs it
            put("messages", []),
            put("pinned", [99]),
            *(put("seen_at", value) for value in (True, "1", float("nan"), 10**400)),
            edit_with("type", "explode"),
            edit_with("groups", []),
            edit_with("groups", [0]),
            edit_with("messages", [], place=0),
            edit_with("messages", [{"role": "user", "content": "x"}], place=0),
            edit_with("messages", [{"content": "no role"}], place=2),
            edit_with("edits", [{"type": "drop", "groups": [99], "reason": ""}], place=3),
            edit_with("edits", [], place=3),
        ],
    )
    def test_what_to_dict_did_not_make(self, damage: Callable[[State], object]) -> None:
        data = stored(edited())
        damage(data)
        with pytest.raises(StateError):
            loaded(data)

    @pytest.mark.parametrize("data", [{}, [], "state", None, {"version": 3}])
    def test_what_is_no_state(self, data: Any) -> None:
        """Only data of another version is for another release."""
        remedy = (
            "upgrade, or compact from scratch"
            if data == {"version": 3}
            else "it is not what to_dict made; compact from scratch"
        )
        with pytest.raises(StateError, match=f"^saved index: version=.*: this release reads version 2; {remedy}"):
            loaded(data)

    def test_an_error_is_described_once(self) -> None:
        """With another format for a detected one, too."""
        data = {**stored(indexed([user()])), "journal": 5}
        with pytest.raises(StateError) as raised:
            loaded(data, format=openai_chat)
        assert str(raised.value).count("compact from scratch") == 1

    def test_a_format_that_is_not_that_of_the_messages(self) -> None:
        """Only the argument is wrong, so the error does not say that the state is."""
        data = stored(indexed([user()], format=openai_chat))
        with pytest.raises(StateError, match="'openai-chat'; pass this format, not 'anthropic'"):
            loaded(data, format=anthropic)


def edited_twice() -> MessageIndex:
    """An index with one edit at six messages and one at ten."""
    index = MessageIndex(counter="chars/4")
    index.sync(turns(3))
    assert index.apply(Drop([0, 1]))
    index.sync(turns(5))
    assert index.apply(Drop([2, 3]))
    return index


def test_only_edits_that_knew_nothing_more_are_taken_over() -> None:
    """Also from a saved state; one that does not say what was known gives nothing."""
    index = edited_twice()
    assert [applied.seen for applied in index.journal] == [6, 10]
    for count, edits in ((5, 0), (6, 1), (9, 1), (10, 2)):
        part = index.snapshot.beginning(count, turns(5)[:count])
        assert MessageIndex.from_dict(part, counter="chars/4").edit_count == edits
    data = json.loads(json.dumps(index.to_dict(messages=False)))
    assert [applied.seen for applied in Saved.read(data).journal] == [6, 10]
    for entry in data["journal"]:
        del entry["seen"]
    assert Saved.read(data).beginning(10, turns(5)).journal == ()


def test_what_a_host_changed_is_not_taken_over() -> None:
    """An edit decided with a message that was altered or removed later is not taken over by a fork."""
    index = edited_twice()
    index.sync([*turns(5)[:8], {"role": "user", "content": "another"}])
    assert [applied.seen for applied in index.journal] == [6, None]
