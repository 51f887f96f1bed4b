"""The sliding window: whole turns are dropped, oldest first; ``keep`` is the window."""

from __future__ import annotations

from typing import Any

from compaction import Drop, GroupKind, compact_sync, first, kinds, last, nothing, run_sync
from compaction.index.marks import Marks, marked
from compaction.strategies import Clip, SlidingWindow, ToolResult, Truncation
from compaction.testing import check_strategy
from compaction.triggers import always, messages_exceed, tokens_exceed, turns_exceed
from tests.support.chats import Chat, assistant, edits_of, indexed, shown, system, tool_turns, turns, user

REASON = "outside the window"


def left(strategy: SlidingWindow, messages: Chat, **options: Any) -> list[str]:
    return shown(compact_sync(messages, strategy, counter="chars/4", **options).messages)


class TestTurns:
    def test_the_oldest_turns_go_whole(self) -> None:
        index = indexed([system("s"), *tool_turns(4, words=1)])
        edits = list(edits_of(SlidingWindow(trigger=turns_exceed(2)), index))
        assert edits == [Drop([1, 2, 4], REASON), Drop([5, 6, 8], REASON)]
        assert shown(index.messages()) == ["s", *shown(tool_turns(4, words=1)[8:])]
        assert index.included.turns == 2

    def test_without_trigger_what_is_kept_is_left(self) -> None:
        assert left(SlidingWindow(), [system("s"), *turns(3)]) == ["s", "q3", "a3"]
        assert left(SlidingWindow(keep=last(turns=2)), [system("s"), *turns(3)]) == ["s", "q2", "a2", "q3", "a3"]

    def test_a_window_of_groups(self) -> None:
        assert left(SlidingWindow(keep=last(groups=3)), tool_turns(3, words=1)) == ["q3", "c3", "r3 word", "a3"]
        assert left(SlidingWindow(keep=last(groups=3)), turns(4)) == ["q3", "a3", "q4", "a4"]
        assert left(SlidingWindow(keep=first(messages=1) | last(groups=2)), turns(4)) == ["q1", "q4", "a4"]

    def test_what_comes_before_the_first_turn_is_a_turn(self) -> None:
        messages = [assistant("hello"), assistant("there"), *turns(2)]
        index = indexed(messages)
        assert list(edits_of(SlidingWindow(trigger=messages_exceed(5)), index)) == [Drop([0, 1], REASON)]
        assert shown(index.messages()) == ["q1", "a1", "q2", "a2"]

    def test_the_target_is_asked_before_each_turn(self) -> None:
        index = indexed(turns(5))
        strategy = SlidingWindow(trigger=turns_exceed(3), target=~messages_exceed(7))
        assert len(list(edits_of(strategy, index))) == 2
        assert index.included.turns == 3
        assert list(edits_of(SlidingWindow(target=always), indexed(turns(5)))) == []


class TestWhatStays:
    def test_system_messages_and_summaries(self) -> None:
        messages = [system("s"), user(marked("so far", by="X")), user("q1"), system("t"), assistant("a1"), *turns(1)]
        index = indexed(messages, marks=Marks())
        run_sync(index, SlidingWindow())
        assert (len(index.messages()), shown(index.messages())[2:]) == (5, ["t", "q1", "a1"])

    def test_a_collapsed_tool_call_is_of_the_turn_it_stands_in(self) -> None:
        index = indexed([*tool_turns(2), user("q")])
        run_sync(index, ToolResult(keep=nothing))
        assert list(edits_of(SlidingWindow(), index)) == [Drop([0, -1, 3], REASON), Drop([4, -2, 7], REASON)]

    def test_answers_of_two_turns_are_two_steps(self) -> None:
        index = indexed(turns(3))
        index.pin([2])
        assert list(edits_of(SlidingWindow(), index)) == [Drop([0, 1], REASON), Drop([3], REASON)]

    def test_a_kept_group_within_an_old_turn(self) -> None:
        """Only the answer of the turn is dropped, because its question starts the view."""
        strategy = SlidingWindow(keep=last(turns=1) | kinds(GroupKind.TOOL_CALL))
        assert left(strategy, tool_turns(2, words=1)) == ["q1", "c1", "r1 word", "q2", "c2", "r2 word", "a2"]


class TestCutPoints:
    def test_both_sides_of_a_kept_group_go_in_one_step(self) -> None:
        """The question that starts the view is dropped last."""
        window = SlidingWindow(trigger=tokens_exceed(0))
        messages = [user("task"), user("q1"), assistant("keep"), assistant("a1"), *turns(1)]
        index = indexed(messages)
        index.pin([0, 2])
        assert list(edits_of(window, index)) == [Drop([1, 3], REASON)]
        index = indexed(messages[1:])
        index.pin([1])
        assert list(edits_of(window, index)) == [Drop([2], REASON), Drop([0], REASON)]


class TestSystem:
    """``SlidingWindowStrategy(preserve_system=False)`` of Agent Framework is ``SlidingWindow(drop_system=True)``."""

    def test_they_go_after_everything_else(self) -> None:
        index = indexed([system("s"), user("q1"), assistant("a1"), system("t"), user("q2"), assistant("a2")])
        edits = list(edits_of(SlidingWindow(keep=last(groups=2), drop_system=True), index))
        dropped = [(edit.groups, edit.allow_system) for edit in edits if isinstance(edit, Drop)]
        assert dropped == [((1, 2), False), ((0,), True), ((3,), True)]
        assert shown(index.messages()) == ["q2", "a2"]


def test_a_turn_that_is_too_long_stays_unless_other_strategies_follow() -> None:
    full = tokens_exceed(500)
    run = [user("q"), *(message for message in tool_turns(100) if message["role"] != "user")]
    window = SlidingWindow(trigger=full)
    assert len(compact_sync(run, window, counter="chars/4").messages) == len(run)
    composed = window >> Truncation(trigger=full, keep=last(groups=1)) >> Clip(tokens=300, trigger=full)
    assert compact_sync(run, composed, counter="chars/4").after.tokens <= 500


def test_a_replaced_reminder_does_not_become_the_current_one() -> None:
    """With ``drop_system``, a system message stays while an older one that it replaced is kept."""
    messages = [assistant("Fine."), system("Fine."), system("Fine.")]
    strategy = SlidingWindow(keep=last(groups=3), drop_system=True)
    assert compact_sync(messages, strategy, counter="chars/4").messages == messages
    check_strategy(strategy, messages=messages)
