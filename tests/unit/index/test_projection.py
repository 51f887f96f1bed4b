"""The projection: the neighbours of a place, inserted groups, and sums that follow every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import openai_chat
from compaction.index.projection import Metrics, NewMessages, Projection
from tests.support.chats import Chat, call, result, thought, user

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


class TestNeighbours:
    @given(st.data())
    def test_as_the_list_says(self, data: st.DataObject) -> None:
        """Whatever was excluded, included, inserted and withdrawn, neighbours are those of the list that the view shows."""
        projection = projected([user() for _ in range(data.draw(st.integers(1, 9)))])
        view = projection.visibility
        for _ in range(data.draw(st.integers(0, 12))):
            ids = projection.every_id()
            id = data.draw(st.sampled_from(ids))
            move = data.draw(st.sampled_from(["toggle", "toggle", "insert", "withdraw"]))
            if move == "toggle":
                (projection.include if projection.excluded(id) else projection.exclude)([id])
            elif move == "insert":
                inserted(projection, data.draw(st.integers(0, len(projection.source) - 1)))
            elif projection.inserted and view.is_shown(-projection.made):
                projection.withdraw(-projection.made)
            shown = list(projection.visibility.nodes())
            for before, node, after in zip([None, *shown], shown, [*shown[1:], None], strict=False):
                assert (view.before(node), view.after(node)) == (before, after)
            assert view.first() == (shown[0] if shown else None)


def test_what_joins_a_group_that_is_out_counts_when_it_comes_back() -> None:
    """The view shows none of it until the group is included; the source has it at once."""
    projection = projected([user(), thought()])
    projection.exclude([1])
    assert add(projection, [call("1")]) == [1]
    assert projection.included.metrics() == Metrics(tokens=10, bytes=20, messages=1, groups=1, turns=1, tool_calls=0)
    assert projection.total.metrics().tool_calls == 1
    projection.include([1])
    assert projection.included.metrics() == projection.total.metrics()


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
