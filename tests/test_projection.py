"""The state behind an index: what stands before a group, which line stands for it, and sums that follow every change."""

from __future__ import annotations

from chats import Chat, assistant, call, result, thought, user

from compaction.formats import openai_chat
from compaction.marks import COLLAPSED_BY
from compaction.messages import Message
from compaction.metrics import Metrics
from compaction.projection import Projection

SUMMARY = (openai_chat.new("user", "so far"),)


def projected(messages: Chat) -> Projection:
    """The messages, each of ten tokens and twenty bytes."""
    projection = Projection()
    for raw in messages:
        projection.append(raw, openai_chat.read(raw), 10, 20)
    return projection


def inserted(projection: Projection, anchor: int, replaces: tuple[int, ...] = ()) -> int:
    """The id of a new summary of one token that stands there."""
    return projection.insert(SUMMARY, (1, 2), anchor, replaces).id


class TestDirectlyBefore:
    def test_the_message_before(self) -> None:
        """Of the first group there is none, of any other the last message before it."""
        projection = projected([user(), assistant(), call("1"), result("1"), user()])
        found = [projection.directly_before(record) for record in projection.grouping.records]
        assert found == [None, 0, 1, 3]

    def test_what_is_out_of_the_view_is_passed_over(self) -> None:
        """Whether its group was taken out, or the message alone."""
        projection = projected([user(), assistant(), call("1"), result("1"), user(), assistant()])
        projection.exclude(projection.by_id[4])
        assert projection.directly_before(projection.by_id[5]) == 3
        projection.show(3, (None, 0, 0))
        assert projection.directly_before(projection.by_id[5]) == 2
        projection.exclude(projection.by_id[2])
        assert projection.directly_before(projection.by_id[5]) == 1
        projection.exclude(projection.by_id[1])
        projection.exclude(projection.by_id[0])
        assert projection.directly_before(projection.by_id[5]) is None

    def test_a_summary_is_no_source_message(self) -> None:
        """What an edit inserted hides what stands before it, where it stands directly before the group or further up."""
        projection = projected([user(), assistant(), user(), assistant()])
        at_once = inserted(projection, 3)
        assert projection.directly_before(projection.by_id[3]) is None
        projection.exclude(projection.by_id[at_once])
        assert projection.directly_before(projection.by_id[3]) == 2
        earlier = inserted(projection, 2)
        assert projection.directly_before(projection.by_id[3]) == 2
        projection.exclude(projection.by_id[2])
        assert projection.directly_before(projection.by_id[3]) is None
        projection.exclude(projection.by_id[earlier])
        assert projection.directly_before(projection.by_id[3]) == 1

    def test_before_a_summary(self) -> None:
        """What hangs at one place stands there in the order it was inserted."""
        projection = projected([user(), assistant(), user()])
        one, two = inserted(projection, 2), inserted(projection, 2)
        assert projection.directly_before(projection.by_id[one]) == 1
        assert projection.directly_before(projection.by_id[two]) is None
        projection.exclude(projection.by_id[one])
        assert projection.directly_before(projection.by_id[two]) == 1


def test_the_line_that_stands_for_a_group_alone() -> None:
    """Only a collapsed tool call that the view shows, and that stands for no other group, is the line for one."""
    projection = projected([user(), call("1"), user()])
    record = projection.by_id[1]

    def stands(replaces: tuple[int, ...], made_by: str | None) -> int:
        id = inserted(projection, 1, replaces)
        projection.by_id[id].made_by = made_by
        return id

    stands((1,), "Tests")
    stands((0, 1), COLLAPSED_BY)
    assert projection.line_for(record) is None
    line = stands((1,), COLLAPSED_BY)
    assert projection.line_for(record) is projection.by_id[line]
    projection.exclude(projection.by_id[line])
    assert projection.line_for(record) is None
    assert projection.line_for(projection.by_id[2]) is None


def test_withdrawing_the_newest_leaves_what_stands_beside_it() -> None:
    """Two summaries at one place: the one before is still shown, and goes next."""
    projection = projected([user(), assistant()])
    before = projection.included.metrics()
    one, two = inserted(projection, 1), inserted(projection, 1)
    projection.withdraw(projection.by_id[two])
    assert [record.id for record in projection.records()] == [0, one, 1]
    projection.withdraw(projection.by_id[one])
    assert [record.id for record in projection.records()] == [0, 1]
    assert (list(projection.by_id), projection.included.metrics()) == ([0, 1], before)


def test_sums_follow_what_is_shown() -> None:
    """A message that is hidden counts for nothing, one that comes back as before; showing another is no message more."""
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
    projection.exclude(projection.by_id[1])
    assert projection.append(call("1"), openai_chat.read(call("1")), 10, 20).id == 1
    assert projection.included.metrics() == Metrics(tokens=10, bytes=20, messages=1, groups=1, turns=1, tool_calls=0)
    assert projection.total.metrics().tool_calls == 1
    projection.include(projection.by_id[1])
    assert projection.included.metrics() == projection.total.metrics()


def test_a_group_as_a_value_is_made_once() -> None:
    """Until it changes: then it is made anew, and the old value stays what it was."""
    projection = projected([user(), call("1"), result("1")])
    record = projection.by_id[1]
    value = projection.snapshot(record)
    assert projection.snapshot(record) is value
    projection.show(2, (None, 0, 0))
    assert projection.snapshot(record).messages == value.messages[:1]
    assert len(value.messages) == 2
    assert projection.snapshot(projection.by_id[inserted(projection, 1)]).messages == SUMMARY
