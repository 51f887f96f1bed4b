"""Triggers: when they fire, how they explain themselves, and how they combine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Pipeline, RunContext, compact_sync, last, run_sync
from compaction import triggers as all_triggers
from compaction.errors import ConfigurationError, StrategyError
from compaction.strategies import SlidingWindow, Strategy, Summarization
from compaction.triggers import (
    Trigger,
    always,
    as_trigger,
    bytes_exceed,
    context_exceeds,
    every,
    groups_exceed,
    has_tool_calls,
    idle_for,
    messages_exceed,
    never,
    tokens_below,
    tokens_exceed,
    turns_exceed,
)
from tests.support.chats import assistant, call, indexed, result, system, turns, user
from tests.support.options import TRIGGER_ATOMS
from tests.support.scripted import Scripted


def night(index: MessageIndex) -> bool:
    """A plain function that can be used as a trigger."""
    return index.included.messages == 2


class TestTokenLimit:
    def test_the_tokens_past_which_it_fires(self) -> None:
        """The lowest limit of an alternative, and the highest of a conjunction."""
        index = MessageIndex([], counter="chars/4", context=RunContext(window=900))
        low, high = tokens_exceed(100), context_exceeds(0.5)
        limits = {
            low: 100,
            high: 450,
            low | high: 100,
            low & high: 450,
            low & has_tool_calls: 100,
            turns_exceed(3) | (high & night): 450,
            turns_exceed(3) | groups_exceed(3): None,
            ~low: None,
            tokens_below(100): None,
            always: None,
            as_trigger(night): None,
        }
        assert {trigger: trigger.token_limit(index) for trigger in limits} == limits


class TestSizes:
    @pytest.mark.parametrize(
        ("make", "size"),
        [
            (tokens_exceed, lambda index: index.tokens),
            (messages_exceed, lambda index: index.included.messages),
            (turns_exceed, lambda index: index.included.turns),
            (groups_exceed, lambda index: index.included.groups),
            (bytes_exceed, lambda index: index.included.bytes),
        ],
    )
    def test_more_than_the_limit(self, make: Callable[[int], Trigger], size: Callable[[MessageIndex], int]) -> None:
        index = indexed([system(), *turns(2), call("1"), result("1")])
        limit = size(index)
        assert make(limit - 1)(index)
        assert not make(limit)(index)
        assert make(0)(index)

    def test_fewer_than_the_limit(self) -> None:
        index = indexed(turns(2))
        assert tokens_below(index.tokens + 1)(index)
        assert not tokens_below(index.tokens)(index)
        assert not tokens_below(0)(index)

    def test_the_five_sizes_are_different_things(self) -> None:
        index = indexed([system("s"), user("안녕"), user("b"), call("1", "2"), result("1"), result("2")])
        told = [each.explain(index) for each in (messages_exceed(3), turns_exceed(3), groups_exceed(3), bytes_exceed(3_000))]
        assert told == ["messages 6 > 3", "turns 2 <= 3", "groups 4 > 3", f"bytes {index.included.bytes} <= 3,000"]

    def test_messages_without_system_messages(self) -> None:
        index = indexed([system(), {"role": "developer", "content": "d"}, *turns(2)])
        index.append([system("later")])
        more, fewer = messages_exceed(3, system=False), messages_exceed(4, system=False)
        assert (more(index), fewer(index)) == (True, False)
        mark = index.checkpoint()
        index.apply(Drop([0], allow_system=True))
        assert (more(index), fewer(index), index.included.messages) == (True, False, 6)
        index.apply(Drop([2]))
        assert (more(index), fewer(index)) == (False, False)
        index.rollback(mark)
        assert (more(index), fewer(index), index.included.messages) == (True, False, 7)

    def test_a_summary_is_a_message_of_the_conversation(self) -> None:
        """``messages_exceed(system=False)`` counts a summary as a message, as Agent Framework does."""
        index = indexed([system(), *turns(4, words=60)])
        run_sync(index, Summarization(Scripted("Short."), keep=last(messages=2)))
        assert index.included.messages == 4
        assert messages_exceed(2, system=False)(index)
        assert not messages_exceed(3, system=False)(index)

    def test_whether_system_messages_count_is_true_or_false(self) -> None:
        assert messages_exceed(3, system=True) == messages_exceed(3)
        assert messages_exceed(3, system=False) != messages_exceed(3)
        assert repr(messages_exceed(3, system=False)) == "messages_exceed(3, system=False)"
        index = indexed([system(), *turns(2)])
        assert messages_exceed(3, system=False).explain(index) == "messages without system messages 4 > 3"
        assert messages_exceed(4, system=False).explain(index) == "messages without system messages 4 <= 4"
        with pytest.raises(ConfigurationError, match="system must be True or False"):
            messages_exceed(3, system="no")  # type: ignore[arg-type]

    def test_overhead_counts_in_tokens(self) -> None:
        index = indexed(turns(1))
        trigger, target = tokens_exceed(index.tokens), tokens_below(index.tokens + 1)
        assert (trigger(index), target(index)) == (False, True)
        index.context = RunContext(overhead_tokens=1)
        assert (trigger(index), target(index)) == (True, False)

    def test_explanations_give_both_figures(self) -> None:
        index = indexed([user("word " * 4_000)])
        assert tokens_exceed(1_000).explain(index) == f"tokens {index.tokens:,} > 1,000"
        assert tokens_exceed(10_000).explain(index) == f"tokens {index.tokens:,} <= 10,000"
        assert tokens_below(10_000).explain(index) == f"tokens {index.tokens:,} < 10,000"
        assert tokens_below(1_000).explain(index) == f"tokens {index.tokens:,} >= 1,000"


@pytest.mark.parametrize(
    ("make", "values", "rule"),
    [
        *(
            (each, [-1, 1.5, True, "10", None], f"{each.__name__}: the limit must be a whole number >= 0")
            for each in (tokens_exceed, tokens_below, messages_exceed, turns_exceed, groups_exceed, bytes_exceed)
        ),
        (
            context_exceeds,
            [0, -0.5, 1.01, True, "half", float("nan")],
            "context_exceeds: 'ratio' must be a share above 0 and at most 1",
        ),
        (every, [0, -1, 1.5, True], "every: 'turns' must be a whole number >= 1"),
        (idle_for, [0, -1.0, True, "1", float("nan")], "idle_for: 'seconds' must be a number above 0"),
    ],
)
def test_bad_figures(make: Callable[[Any], Trigger], values: list[Any], rule: str) -> None:
    for value in values:
        with pytest.raises(ConfigurationError, match=rule):
            make(value)


class TestContent:
    def test_constants(self) -> None:
        index = indexed([])
        assert (always(index), never(index)) == (True, False)
        assert (~always, ~never) == (never, always)
        assert (always.explain(index), never.explain(index)) == ("always", "never")

    def test_tool_calls(self) -> None:
        assert not has_tool_calls(indexed(turns(1)))
        assert not has_tool_calls(indexed([result("9"), user()]))
        index = indexed([user(), call("1", "2"), result("1"), result("2"), assistant()])
        assert has_tool_calls(index)
        assert has_tool_calls.explain(index) == "tool calls 2 in the view"
        index.apply(Drop([1]))
        assert not has_tool_calls(index)


class TestContext:
    def test_a_share_of_the_window(self) -> None:
        index = indexed(turns(2))
        index.context = RunContext(window=2 * index.tokens)
        assert not context_exceeds(0.5)(index)
        assert context_exceeds(0.49)(index)
        index.context = RunContext(window=2 * index.included.tokens, overhead_tokens=1)
        assert context_exceeds(0.5)(index)
        assert context_exceeds(0.5).explain(index) == f"tokens {index.tokens} > {index.included.tokens}, 50% of the window"
        assert context_exceeds(1).explain(index).endswith(f"<= {2 * index.included.tokens}, 100% of the window")
        assert context_exceeds(0.125).explain(index).endswith(", 12.5% of the window")

    def test_without_a_window(self) -> None:
        for ask in (context_exceeds(0.5), context_exceeds(0.5).explain):
            with pytest.raises(ConfigurationError, match=r"pass context=RunContext\(window=\.\.\.\)"):
                ask(indexed([]))

    def test_every_so_many_turns(self) -> None:
        index = indexed(turns(2))
        assert every(2)(index)
        assert not every(3)(index)
        index.apply(Drop([0]))
        assert not every(1)(index)
        index.append([user("q3")])
        assert every(1)(index)
        assert every(2).explain(index) == "1 of 2 turns since the last edit"

    def test_idle_for_so_long(self) -> None:
        """``idle_for`` fires if that much time passed before the latest messages, and never without a clock."""
        index = indexed(turns(1), context=RunContext(now=1_000.0))
        index.context = RunContext(now=1_299.0)
        index.append([user("q2")])
        assert idle_for(299)(index)
        assert not idle_for(300)(index)
        assert idle_for(1_300).explain(index) == "idle 299 of 1,300 seconds"
        assert not idle_for(0.001)(indexed(turns(1)))

    @pytest.mark.parametrize("arguments", [{"window": 0}, {"window": -1}, {"window": 1.5}, {"overhead_tokens": 1.5}])
    def test_what_surrounds_a_conversation_is_checked(self, arguments: dict[str, int]) -> None:
        with pytest.raises(ConfigurationError, match="must be a whole number"):
            RunContext(**arguments)


class TestAlgebra:
    def test_what_is_not_needed_is_not_asked(self) -> None:
        index = indexed([])
        assert not (never & context_exceeds(0.5))(index)
        assert (always | context_exceeds(0.5))(index)

    def test_functions_are_lifted_on_either_side(self) -> None:
        index = indexed(turns(1))
        for trigger in (always & night, night & always, never | night, night | never, as_trigger(night)):
            assert trigger(index) is True
            assert trigger(indexed([])) is False
        assert as_trigger(always) is always

    def test_an_answer_is_a_bool(self) -> None:
        """A trigger that returns something else, as a function without ``return`` does, raises an error that names it."""

        def forgot(index: MessageIndex) -> Any:
            """Return nothing."""

        class Forgetful(Trigger):
            def __call__(self, index: MessageIndex) -> Any:
                """Return nothing."""

            def explain(self, index: MessageIndex) -> str:
                return "it forgot"

            def __repr__(self) -> str:
                return "Forgetful()"

        remedy = "returned None; return True or False"
        for trigger in (as_trigger(forgot), always & forgot, forgot | never, ~as_trigger(forgot)):
            with pytest.raises(StrategyError, match=rf"the trigger \S+forgot {remedy}"):
                trigger(indexed(turns(1)))
        strategies: list[Strategy] = [SlidingWindow(trigger=Forgetful()), Pipeline(SlidingWindow(), trigger=Forgetful())]
        for strategy in strategies:
            with pytest.raises(StrategyError, match=rf"the trigger Forgetful\(\) {remedy}"):
                compact_sync(turns(2), strategy, counter="chars/4")
        with pytest.raises(StrategyError, match=r"returned \[1, 2, 3, 4, 5, 6, \.\.\.\];"):
            as_trigger(lambda index: list(range(1, 99)))(indexed([]))  # type: ignore[arg-type, return-value]

    def test_explanations_of_combinations(self) -> None:
        index = indexed(turns(1))
        assert (turns_exceed(0) & turns_exceed(1)).explain(index) == "turns 1 > 0 and turns 1 <= 1"
        assert (turns_exceed(0) | turns_exceed(1)).explain(index) == "turns 1 > 0 or turns 1 <= 1"
        assert ((turns_exceed(0) | never) & always).explain(index) == "(turns 1 > 0 or never) and always"
        assert (~turns_exceed(1)).explain(index) == "not (turns 1 <= 1)"
        assert as_trigger(night).explain(index) == "night says yes"
        assert as_trigger(night).explain(indexed([])) == "night says no"

    def test_a_trigger_is_not_true_or_false(self) -> None:
        """``bool()`` of a trigger raises a `TypeError`, because ``and`` and ``or`` would silently ignore one side."""
        with pytest.raises(TypeError, match=r"tokens_exceed\(1\) is a trigger, .* combine triggers with & \| ~"):
            bool(tokens_exceed(1))

    @pytest.mark.parametrize("wrong", [True, False, None, -7, "always"])
    def test_what_is_no_condition(self, wrong: object) -> None:
        with pytest.raises(ConfigurationError, match=r"a trigger must be a callable that takes an index .* or always or never"):
            as_trigger(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="a trigger must be a callable that takes an index"):
            always & wrong  # type: ignore[operator]


def test_the_laws_know_every_trigger() -> None:
    """A new trigger is in ``TRIGGER_ATOMS``, of which the laws and the tests of pipeline files make their conditions."""
    known = {repr(trigger).partition("(")[0] for trigger in TRIGGER_ATOMS}
    assert set(all_triggers.__all__) - {"Trigger", "TriggerLike", "as_trigger", "worth_it"} == known
