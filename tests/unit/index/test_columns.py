"""The columns: messages and values of groups are made when they are asked for."""

from __future__ import annotations

from compaction import Drop, Rewrite
from compaction.formats import openai_chat
from compaction.index.columns import Columns
from compaction.index.reading import NewMessages
from tests.support.chats import call, indexed, result, user


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
