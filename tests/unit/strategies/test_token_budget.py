"""A hard token budget: shortening strategies first, then the oldest groups, then system messages if allowed."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Request, RunContext, Step, compact_sync, first, last, nothing, run_sync
from compaction.strategies import (
    Clear,
    SelectiveToolCall,
    SlidingWindow,
    StepBegan,
    StepEnded,
    Steps,
    TokenBudgetComposed,
    ToolResult,
)
from compaction.triggers import never
from tests.support.chats import Chat, assistant, edits_of, indexed, shown, system, tool_turns, turns, user

CLEAR = ToolResult(Clear(), keep=nothing)


def tokens(messages: Chat) -> int:
    return indexed(messages).tokens


class Asks(Request):
    def call(self) -> Any:
        return None


class TestOrder:
    def test_within_the_budget_nothing_runs(self) -> None:
        messages = tool_turns(2)
        assert list(TokenBudgetComposed([CLEAR], budget=tokens(messages))(indexed(messages))) == []

    def test_it_stops_as_soon_as_the_budget_holds(self) -> None:
        index = indexed(tool_turns(4))
        strategy = TokenBudgetComposed([CLEAR, SlidingWindow()], budget=index.tokens - 150)
        edits = list(edits_of(strategy, index))
        assert [type(edit).__name__ for edit in edits] == ["Rewrite", "Rewrite"]
        assert index.tokens <= strategy.budget

    def test_the_budget_to_the_token_is_enough(self) -> None:
        index = indexed(tool_turns(4))
        next(edits_of(CLEAR, index))
        strategy = TokenBudgetComposed([CLEAR, SlidingWindow()], budget=index.tokens)
        index = indexed(tool_turns(4))
        assert len(list(edits_of(strategy, index))) == 1
        assert index.tokens == strategy.budget

    def test_or_each_runs_to_its_own_target(self) -> None:
        """With ``early_stop=False``, every strategy runs to its own target, and the fallback runs only above the budget."""
        index = indexed(tool_turns(4))
        strategy = TokenBudgetComposed([CLEAR, SlidingWindow(keep=last(turns=2))], budget=index.tokens - 150, early_stop=False)
        edits = list(edits_of(strategy, index))
        assert [type(edit).__name__ for edit in edits] == ["Rewrite"] * 4 + ["Drop"] * 2
        assert index.included.turns == 2

    def test_a_strategy_s_own_trigger_is_asked(self) -> None:
        index = indexed(tool_turns(4))
        strategy = TokenBudgetComposed([ToolResult(Clear(), trigger=never)], budget=index.tokens - 1)
        assert [type(edit).__name__ for edit in edits_of(strategy, index)] == ["Drop"]

    def test_overhead_is_part_of_the_budget(self) -> None:
        messages = turns(4, words=20)
        strategy = TokenBudgetComposed([], budget=tokens(messages))
        assert compact_sync(messages, strategy, counter="chars/4").outcome == "unchanged"
        done = compact_sync(messages, strategy, counter="chars/4", context=RunContext(overhead_tokens=1))
        assert (len(done.edits), done.outcome) == (1, "compacted")


class TestFallback:
    def test_the_oldest_groups_go_if_nothing_else_suffices(self) -> None:
        messages = [system("s"), *tool_turns(3), user("q"), assistant("a")]
        done = compact_sync(messages, TokenBudgetComposed([CLEAR], budget=50), counter="chars/4")
        assert shown(done.messages) == ["s", "q3", "a3", "q", "a"]
        assert done.after.tokens <= 50
        assert done.outcome == "compacted"

    def test_what_is_kept_from_it(self) -> None:
        messages = [user("the task"), *turns(3, words=20)]
        done = compact_sync(messages, TokenBudgetComposed([], budget=80, keep=first(messages=1)), counter="chars/4")
        assert shown(done.messages)[0] == "the task"
        assert done.after.tokens <= 80

    def test_system_groups_go_only_if_told_so(self) -> None:
        """Otherwise nothing is dropped, since that would not help."""
        messages = [system("s " * 200), *turns(2)]
        kept = compact_sync(messages, TokenBudgetComposed([], budget=20), counter="chars/4")
        assert (kept.messages, kept.outcome) == (messages, "over_target")
        done = compact_sync(messages, TokenBudgetComposed([], budget=20, drop_system=True), counter="chars/4")
        assert (shown(done.messages), done.outcome) == (["q2", "a2"], "compacted")


class TestReports:
    def test_steps_within_a_step(self) -> None:
        index = indexed(tool_turns(4))
        before, budget = index.included, index.tokens - 150
        seen: list[Step] = []
        run_sync(index, TokenBudgetComposed([SelectiveToolCall(trigger=never), CLEAR], budget=budget), on_step=seen.append)
        assert [(step.strategy, step.why, step.reached, len(step.edits)) for step in seen] == [
            ("ToolResult", "always", None, 2),
            ("TokenBudgetComposed", f"tokens {before.tokens:,} > {budget:,}", True, 0),
        ]
        assert {(step.before, step.after) for step in seen} == {(before, index.included)}

    def test_one_budget_within_another(self) -> None:
        index = indexed(tool_turns(6))
        inner = TokenBudgetComposed([CLEAR], budget=10)
        outer = TokenBudgetComposed([inner, SlidingWindow()], budget=index.tokens - 150)
        seen: list[Step] = []
        done = run_sync(index, outer, on_step=seen.append)
        names = ["ToolResult", "TokenBudgetComposed", "TokenBudgetComposed"]
        assert [(step.strategy, step.reached) for step in seen] == list(zip(names, (None, None, True), strict=True))
        assert (len(done.edits), done.outcome) == (2, "compacted")
        assert [entry.by for entry in index.journal] == ["ToolResult", "ToolResult"]


class TestTheStrategyThatRuns:
    """Answers, exceptions and the end of the run reach the inner strategy."""

    def steps(self, strategy: Any, *, budget: int = 1) -> tuple[MessageIndex, Steps]:
        """A budget over one strategy, advanced to the first item of that strategy."""
        index = indexed(turns(4, words=20))
        steps = TokenBudgetComposed([strategy], budget=budget)(index)
        assert isinstance(next(steps), StepBegan)
        assert isinstance(steps.send(None), StepBegan)
        return index, steps

    def test_answers(self) -> None:
        got: list[object] = []

        def strategy(index: MessageIndex) -> Steps:
            got.append((yield Asks()))
            got.append((yield Drop(99)))

        _, steps = self.steps(strategy)
        assert isinstance(steps.send(None), Asks)
        assert steps.send("an answer") == Drop(99)
        assert isinstance(steps.send(False), StepEnded)
        assert got == ["an answer", False]
        steps.close()

    def test_failures(self) -> None:
        def strategy(index: MessageIndex) -> Steps:
            try:
                yield Asks()
            except OSError:
                yield Drop(0, "plan B")

        _, steps = self.steps(strategy)
        assert isinstance(steps.send(None), Asks)
        assert steps.throw(OSError("no")) == Drop(0, "plan B")
        steps.close()

    @pytest.mark.parametrize("by_budget", [True, False])
    def test_the_end_does_not_wait_for_the_garbage_collector(self, by_budget: bool) -> None:
        """The inner strategy is closed, by the budget or from outside, though there is another reference to its generator."""
        held: list[Steps] = []

        def strategy(index: MessageIndex) -> Steps:
            held.append(step for step in [Drop(0), Drop(1)])
            return held[0]

        index, steps = self.steps(strategy, budget=tokens(turns(4, words=20)) - 1)
        assert steps.send(None) == Drop(0)
        if by_budget:
            index.apply(Drop(0))
            assert isinstance(steps.send(True), StepEnded)
        steps.close()
        assert inspect.getgeneratorstate(held[0]) == inspect.GEN_CLOSED
