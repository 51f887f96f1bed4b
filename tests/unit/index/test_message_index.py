"""The index: sizes that follow every change, a projection of the caller's own objects, edits that can be taken back."""

from __future__ import annotations

import gc
from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Metrics, Rewrite, RunContext
from compaction.errors import ConfigurationError, InputError, StrategyError
from compaction.formats import openai_chat
from compaction.index.edits import Restore
from compaction.tokens import MessageMeter
from tests.support.chats import assistant, call, indexed, result, system, tool_turns, turns, user


class TestSizes:
    def test_all_of_a_conversation(self) -> None:
        """Tokens by the counter and the meter, UTF-8 bytes, messages, groups, turns and calls."""
        messages = [system("s"), user("안녕"), call("1", "2", name="t", arguments="{}"), result("1", "r"), result("2", "rr")]
        index = indexed(messages)
        meter = MessageMeter("chars/4")
        tokens = sum(meter.measure(openai_chat.read(message))[0] for message in messages)
        assert index.total == index.included
        assert index.total == Metrics(tokens=tokens, bytes=1 + 6 + 3 + 3 + 1 + 2, messages=5, groups=3, turns=1, tool_calls=2)

    def test_reading_leaves_few_objects_to_the_garbage_collector(self) -> None:
        """Most of what is stored of a message are numbers, strings and tuples of these, of which it does not keep track."""
        messages = tool_turns(300)
        gc.collect()
        before = len(gc.get_objects())
        index = indexed(messages)
        for _ in range(3):  # a tuple is let go once the tuples in it are
            gc.collect()
        assert len(gc.get_objects()) - before < len(messages) / 4
        assert index.total.tool_calls == 300


class TestProjection:
    def test_mappings_that_are_no_dicts(self) -> None:
        message = UserDict(user("q"))
        assert indexed([message]).messages()[0] is message  # type: ignore[list-item]

    def test_groups_can_be_looked_at_when_they_are_out_of_the_view(self) -> None:
        index = indexed(turns(2))
        index.apply(Drop([0]))
        assert (index.is_included(0), index.is_included(index.group(1)), index.is_included(99)) == (False, True, False)
        assert index.group(0).messages[0].text == "q1"
        for ask in (index.group, index.originals, lambda id: index.pin([id])):
            with pytest.raises(InputError, match="group 99: this group does not exist"):
                ask(99)

    @pytest.mark.parametrize("ordinal", [-1, 4, "1", None, True])
    def test_a_position_that_the_source_does_not_have(self, ordinal: Any) -> None:
        with pytest.raises(InputError, match="the source has 4 messages"):
            indexed(turns(2)).kind_at(ordinal)


_ASKED_FOR_GROUPS: dict[str, Callable[[MessageIndex, Any], object]] = {
    "steps": MessageIndex.steps,
    "replaceable": MessageIndex.replaceable,
    "places": MessageIndex.places,
    "pin": MessageIndex.pin,
    "summary": lambda index, groups: index.summary("so far", groups, by="Tests"),
    "read_originals": lambda index, groups: index.read_originals(*groups),
}


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("ask", _ASKED_FOR_GROUPS.values(), ids=_ASKED_FOR_GROUPS)
class TestGroupsThatCannotBeNamed:
    """All methods raise the same errors, in formats with rules about neighbours and in others."""

    def test_an_id_that_no_group_has(self, ask: Callable[[MessageIndex, Any], object], format: str) -> None:
        index = MessageIndex(turns(3), counter="chars/4", format=format)
        for id in (99, -1):
            with pytest.raises(InputError, match=f"group {id}: this group does not exist"):
                ask(index, [0, id])

    @pytest.mark.parametrize("groups", [["1"], [None], [True], "abc", 5, None])
    def test_what_is_no_group(self, ask: Callable[[MessageIndex, Any], object], format: str, groups: Any) -> None:
        if ask is _ASKED_FOR_GROUPS["read_originals"] and not isinstance(groups, list | str):
            return  # its groups are arguments
        with pytest.raises(StrategyError, match=r"groups=.*: must be groups or group ids"):
            ask(MessageIndex(turns(3), counter="chars/4", format=format), groups)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_groups_that_the_view_does_not_show_are_in_no_plan(format: str) -> None:
    index = MessageIndex(turns(3), counter="chars/4", format=format)
    index.apply(Drop([0, 1]))
    assert (list(index.steps([0, 1])), index.replaceable([0, 1])) == ([], [])


@pytest.mark.parametrize("option", ["context", "marks"])
def test_an_option_of_another_type(option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"MessageIndex: '{option}' must be a "):
        MessageIndex([], **{option: {}})


class TestRollback:
    @pytest.mark.parametrize("mark", [-1, 2, "1", None])
    def test_a_mark_beyond_the_journal_is_an_error(self, mark: Any) -> None:
        index = indexed(turns(2))
        index.apply(Drop([0]))
        with pytest.raises(InputError, match=f"rollback\\({mark}\\): the journal has 1 edits"):
            index.rollback(mark)


class TestPinning:
    def test_all_of_the_groups_or_none(self) -> None:
        index = indexed([user("q"), assistant("a"), user("r")])
        with pytest.raises(InputError, match="group 99: this group does not exist"):
            index.pin([2, 99])
        assert not index.group(2).pinned

    def test_a_late_result_pins_its_group(self) -> None:
        index = indexed([user("q"), call("1"), user("r"), assistant("a")], pin=lambda message: "keep" in message.text)
        index.apply(Drop([1]))
        index.append([result("1", "keep")])
        assert (index.is_included(1), index.group(1).pinned) == (True, True)


class TestTime:
    def test_turns_since_the_last_edit(self) -> None:
        """The turns that began since; all of them without an edit. A restored group is not a strategy's edit."""
        index = indexed([user("q"), call("1"), user("r"), assistant("a"), user("s")])
        assert index.turns_since_edit == 3
        index.apply(Drop([1]))
        assert index.turns_since_edit == 0
        index.append([assistant("b"), user("t"), result("1")])
        assert isinstance(index.edits[-1], Restore)
        assert index.turns_since_edit == 1
        index.rollback()
        assert index.turns_since_edit == 4

    def test_idle_is_the_gap_before_the_latest_messages(self) -> None:
        """Or the time since them, if that is longer; the clock is whatever is passed in."""
        index = indexed(turns(1), context=RunContext(now=100.0))
        assert index.idle_seconds == 0
        index.context = RunContext(now=160.0)
        assert index.idle_seconds == 60
        index.append([user("q2")])
        assert index.idle_seconds == 60
        index.context = RunContext(now=165.0)
        index.append([assistant("a2")])
        assert index.idle_seconds == 5
        index.append([])  # no sign of life
        index.context = RunContext(now=265.0)
        assert index.idle_seconds == 100
        assert indexed(turns(1)).idle_seconds == 0  # without a clock


class TestTrial:
    def test_whatever_is_tried_is_taken_back(self) -> None:
        """View, journal and refusals are as before, and what was refused inside may be asked for outside."""
        index = indexed([*turns(3), user("q")])
        assert not index.apply(Drop([6]))
        before = index.messages(), index.edits, index.refused
        with index.trial():
            assert index.apply(Drop([0]))
            assert not index.apply(Drop([5, 6]))
        assert (index.messages(), index.edits, index.refused) == before
        assert not index.apply(Drop([5, 6]))


@pytest.mark.parametrize("edit", [Drop, lambda id: Rewrite(id, [])], ids=["drop", "rewrite"])
def test_a_boolean_is_not_the_id_of_a_group(edit: Callable[[object], object]) -> None:
    """It would be stored, and the stored state would be refused."""
    with pytest.raises(StrategyError, match=r"group.*True.*: must be"):
        edit(True)


def test_nothing_is_idle_after_the_clock_was_taken_away() -> None:
    index = indexed(turns(1), context=RunContext(now=100.0))
    index.context = RunContext(now=160.0)
    index.append([user("q2")])
    index.context = RunContext()
    assert index.idle_seconds == 0
