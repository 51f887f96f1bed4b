"""The projection: the neighbours of a place, inserted groups, and sums that follow every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import openai_chat
from compaction.index.projection import Metrics, NewMessages, Projection
from compaction.messages import Message
from tests.support.chats import Chat, assistant, call, result, thought, user

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
    def test_of_every_message(self) -> None:
        """A message's neighbours are the messages directly beside it; the ends have none."""
        projection = projected([user(), assistant(), call("1"), result("1"), user()])
        view = projection.visibility
        assert [view.before(at) for at in range(5)] == [None, 0, 1, 2, 3]
        assert [view.after(at) for at in range(5)] == [1, 2, 3, 4, None]
        assert view.first() == 0

    def test_what_is_out_of_the_view_is_passed_over(self) -> None:
        """An excluded group and a removed message are skipped, and count again when shown again."""
        projection = projected([user(), assistant(), call("1"), result("1"), user(), assistant()])
        view = projection.visibility
        projection.exclude([4])
        assert (
            view.before(5),
            view.after(3),
            view.before(4),
            view.after(4),
        ) == (3, 5, 3, 5)
        hidden = projection.show(3, (None, 0, 0))
        assert (view.before(5), view.after(2)) == (2, 5)
        projection.exclude([2])
        assert (view.before(5), view.after(1)) == (1, 5)
        projection.exclude([1])
        projection.exclude([0])
        assert (view.before(5), view.first()) == (None, 5)
        projection.include([2])
        assert (view.before(5), view.first()) == (2, 2)
        projection.show(3, hidden)
        assert view.before(5) == 3
        projection.include([4])
        assert (view.before(5), view.after(3)) == (4, 4)

    def test_a_summary_stands_before_the_message_at_its_anchor(self) -> None:
        """A summary is a neighbour, directly beside a message or further away, and is named by its id."""
        projection = projected([user(), assistant(), user(), assistant()])
        view = projection.visibility
        at_once = inserted(projection, 3)
        assert (
            view.before(3),
            view.after(2),
            view.before(at_once),
            view.after(at_once),
        ) == (
            -1,
            -1,
            2,
            3,
        )
        projection.exclude([at_once])
        assert (view.before(3), view.after(2)) == (2, 3)
        earlier = inserted(projection, 2)
        assert (view.before(3), view.before(2), view.before(earlier)) == (
            2,
            earlier,
            1,
        )
        projection.exclude([2])
        assert (view.before(3), view.after(earlier), view.after(1)) == (
            earlier,
            3,
            earlier,
        )
        projection.exclude([earlier])
        assert (view.before(3), view.after(1)) == (1, 3)

    def test_summaries_at_one_place(self) -> None:
        """They stand there in the order they were inserted."""
        projection = projected([user(), assistant(), user()])
        view = projection.visibility
        one, two = inserted(projection, 2), inserted(projection, 2)
        assert (view.before(one), view.before(two), view.before(2)) == (
            1,
            one,
            two,
        )
        assert (view.after(1), view.after(one), view.after(two)) == (
            one,
            two,
            2,
        )
        projection.exclude([one])
        assert (view.before(two), view.after(1), view.after(one)) == (
            1,
            two,
            two,
        )
        projection.exclude([0])
        projection.exclude([1])
        assert (view.first(), view.before(two), view.before(one)) == (
            two,
            None,
            None,
        )

    def test_messages_that_come_later(self) -> None:
        """The last message is followed by later ones."""
        projection = projected([user(), assistant()])
        view = projection.visibility
        assert view.after(1) is None
        add(projection, [user()])
        assert (view.after(1), view.before(2)) == (2, 1)

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


def test_withdrawing_the_newest_leaves_what_stands_beside_it() -> None:
    """Two summaries at one place: the one before is still shown, and goes next."""
    projection = projected([user(), assistant()])
    before = projection.included.metrics()
    one, two = inserted(projection, 1), inserted(projection, 1)
    projection.withdraw(two)
    assert list(projection.ids()) == [0, one, 1]
    projection.withdraw(one)
    assert list(projection.ids()) == [0, 1]
    assert (projection.every_id(), projection.included.metrics()) == ([0, 1], before)


def test_sums_follow_what_is_shown() -> None:
    """A hidden message does not count, and counts again when shown; a changed message is not an additional one."""
    projection = projected([user(), thought(), call("1"), result("1"), user()])
    before = projection.included.metrics()
    other: Message = openai_chat.read(result("1", "cut"))
    shown = projection.show(3, (other, 4, 5))
    assert projection.included.metrics() == Metrics(tokens=44, bytes=85, messages=5, groups=3, turns=2, tool_calls=1)
    hidden = projection.show(1, (None, 0, 0))
    assert projection.included.metrics() == Metrics(tokens=34, bytes=65, messages=4, groups=3, turns=2, tool_calls=1)
    projection.show(1, hidden)
    projection.show(3, shown)
    assert projection.included.metrics() == before


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
