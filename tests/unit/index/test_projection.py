"""The projection: the neighbours of a place, inserted groups, and sums that follow every change."""

from __future__ import annotations

from compaction.formats import openai_chat
from compaction.index.projection import NewMessages, Projection
from tests.support.chats import Chat, call, result, user

SUMMARY = (openai_chat.new("user", "so far"),)


def projected(messages: Chat) -> Projection:
    """The messages, each of ten tokens and twenty bytes."""
    projection = Projection(openai_chat)
    add(projection, messages)
    return projection


def add(projection: Projection, messages: Chat) -> list[int]:
    """Add messages; returns the groups that are to be restored."""
    restored: list[int] = []
    count = len(messages)
    projection.extend(NewMessages(messages, list(map(openai_chat.read, messages)), [10] * count, [20] * count), restored.append)
    return restored


def inserted(projection: Projection, anchor: int, replaces: tuple[int, ...] = (), made_by: str | None = None) -> int:
    """Insert a summary of one token at an anchor, and return its id."""
    return projection.insert(SUMMARY, (1, 2), anchor, replaces, made_by)


def test_values_of_groups_are_not_kept_without_end() -> None:
    """Values of groups that left the view are discarded once there are many; those of the view are made again."""
    projection = projected([user(str(at)) for at in range(900)])
    first = projection.snapshot(0)
    for id in range(1, 900):
        assert projection.snapshot(id).id == id
        projection.exclude([id])
    assert projection.snapshot(0) == first
    assert len(projection._snapshots) < 900


def test_a_group_as_a_value_is_made_once() -> None:
    """Until it changes: then it is made from scratch, and the old value stays what it was."""
    projection = projected([user(), call("1"), result("1")])
    value = projection.snapshot(1)
    assert projection.snapshot(1) is value
    projection.show(2, (None, 0, 0))
    assert projection.snapshot(1).messages == value.messages[:1]
    assert len(value.messages) == 2
    assert projection.snapshot(inserted(projection, 1)).messages == SUMMARY


def test_a_message_that_was_only_glanced_at_is_read_when_it_is_asked_for() -> None:
    """As what it was when it was added, whatever became of the caller's object since."""
    raw = call("1")
    outline = openai_chat.outline(raw)
    assert outline is not None
    projection = Projection(openai_chat)
    projection.extend(NewMessages([raw], [outline], [10], [20]), restore=id)
    read = openai_chat.read(raw)
    raw["tool_calls"] = None
    assert (projection.read(0).role, projection.read(0).parts) == (read.role, read.parts)
    assert projection.read(0) is projection.read(0)
