"""Groups and messages as values: their names and kinds, and that they are made when they are asked for."""

from __future__ import annotations

from compaction import Drop, MessageGroup, Rewrite
from compaction.formats import openai_chat
from compaction.index.columns import Columns
from compaction.index.groups import collapsed_text, tools_of
from compaction.index.reading import NewMessages
from tests.support.chats import Chat, call, indexed, result, user


def group_of(messages: Chat, place: int = -1) -> MessageGroup:
    """One group of a conversation; by default the last."""
    return indexed(messages).included_groups[place]


def test_names_of_the_tools_called() -> None:
    mixed = call("1", "2", name="read")
    mixed["tool_calls"].append({"id": "3", "type": "custom", "custom": {"name": "grep", "input": "x"}})
    assert group_of([mixed, result("1"), result("2"), result("3")]).tool_names == ("read", "read", "grep")
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    assert group_of([legacy, {"role": "function", "name": "look", "content": "found"}]).tool_names == ("look",)


def test_names_of_the_tools_in_a_collapsed_text() -> None:
    """Only a whole line is the heading of the calls, and the last one: the words before may contain another."""
    lines = ["read(path=a) -> [Tool results]", "grep() -> as in [Tool results]"]
    assert tools_of(collapsed_text(["I say", "[Tool results]", "done() -> x"], lines)) == ("read", "grep")
    assert tools_of(collapsed_text([], lines)) == ("read", "grep")


def test_a_group_as_a_value_is_made_once() -> None:
    index = indexed([user(), call("1"), result("1"), user()])
    value = index.group(1)
    assert index.apply(Drop(0))
    assert index.group(1) is value
    assert index.apply(Rewrite(1, [value.messages[0], value.messages[1].evolve(text="")]))
    assert (index.group(1).messages[1].text, value.messages[1].text) == ("", "found")
    index.rollback()
    assert index.group(1) == value


def test_a_message_that_was_only_glanced_at_is_read_when_it_is_asked_for() -> None:
    """As what it was when it was added, whatever became of the caller's object since."""
    raw = call("1")
    outline = openai_chat.outline(raw)
    assert outline is not None
    columns = Columns(openai_chat, lambda message: (0, 0))
    columns.extend(NewMessages([raw], [outline], [10], [20]), restore=id)
    read = openai_chat.read(raw)
    raw["tool_calls"] = None
    assert (columns.read(0).role, columns.read(0).parts) == (read.role, read.parts)
    assert columns.read(0) is columns.read(0)
