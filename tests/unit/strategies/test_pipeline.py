"""Pipelines: strategies run one after the other, each with its own trigger; a pipeline is a strategy too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction import Drop, Edit, MessageIndex, Pipeline, Step, compact_sync, last, nothing, run_sync
from compaction.errors import ConfigurationError, StrategyError
from compaction.stores import SQLiteStore
from compaction.strategies import (
    Clear,
    FunctionStrategy,
    Lossless,
    SelectiveToolCall,
    SlidingWindow,
    Steps,
    Strategy,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.triggers import always, as_trigger, messages_exceed, never, tokens_exceed, turns_exceed
from tests.support.chats import assistant, edits_of, indexed, system, tool_turns, turns


def drop_first(index: MessageIndex) -> Iterator[Edit]:
    """Drop the first group, as a plain function."""
    yield Drop(index.included_groups[0], "first")


class TestOrder:
    def test_each_step_sees_what_the_one_before_it_left(self) -> None:
        index = indexed([system("s"), *tool_turns(4)])
        clearing = ToolResult(Clear(), trigger=always, keep=nothing)
        pipeline = clearing >> Truncation(trigger=tokens_exceed(index.tokens // 2), keep=nothing)
        edits = list(edits_of(pipeline, index))
        assert [type(edit).__name__ for edit in edits] == ["Rewrite"] * 4
        assert index.included.messages == index.total.messages


class TestTrigger:
    def test_a_trigger_for_the_whole(self) -> None:
        pipeline = Pipeline(SlidingWindow(), Truncation(keep=nothing), trigger=turns_exceed(2))
        seen: list[Step] = []
        done = compact_sync([assistant("hello"), *turns(3)], pipeline, counter="chars/4", on_step=seen.append)
        assert [(step.strategy, step.why, step.reached) for step in seen] == [
            ("SlidingWindow", "always", True),
            ("Truncation", "always", True),
            ("Pipeline", "turns 3 > 2", True),
        ]
        assert done.outcome == "compacted"
        assert compact_sync(turns(2), pipeline, counter="chars/4").outcome == "unchanged"

    def test_its_target_is_that_the_trigger_rests(self) -> None:
        pipeline = Pipeline(Truncation(trigger=never), trigger=turns_exceed(2))
        assert compact_sync(turns(3), pipeline, counter="chars/4").outcome == "over_target"

    @pytest.mark.parametrize(("count", "outcome"), [(2, "over_target"), (6, "compacted")])
    def test_a_target_for_the_whole(self, count: int, outcome: str) -> None:
        steps = (SlidingWindow(trigger=turns_exceed(2)), Truncation(trigger=messages_exceed(1)))
        for trigger in (always, turns_exceed(2)):
            pipeline = Pipeline(*steps, trigger=trigger, target=~messages_exceed(count))
            assert compact_sync(turns(3), pipeline, counter="chars/4").outcome == outcome


class TestAlgebra:
    def test_arrows_build_pipelines(self) -> None:
        a, b, c = SlidingWindow(), Truncation(), SelectiveToolCall()
        assert a >> b >> c == a >> (b >> c) == Pipeline(a, b, c) == Pipeline(Pipeline(a), Pipeline(b, Pipeline(c)))
        assert a >> b != b >> a
        lifted = FunctionStrategy(drop_first)
        assert drop_first >> a == Pipeline(lifted, a)
        assert a >> drop_first == Pipeline(a, lifted)
        assert Pipeline() >> Pipeline() == Pipeline()

    @pytest.mark.parametrize("options", [{"trigger": turns_exceed(2)}, {"target": ~turns_exceed(2)}])
    def test_a_pipeline_with_a_trigger_or_a_target_is_not_taken_apart(self, options: dict[str, Any]) -> None:
        inner = Pipeline(SlidingWindow(), **options)
        assert Pipeline(inner, Truncation()).steps == (inner, Truncation())
        assert eval(repr(inner)) == inner

    def test_the_text_is_short(self) -> None:
        inner = Pipeline(drop_first, ToolResult(Clear(placeholder="gone " * 99), at_least=500), trigger=turns_exceed(3))
        outer = Pipeline(SlidingWindow(keep=last(turns=9)), inner, target=never)
        pipeline = outer >> TokenBudgetComposed([Truncation()], budget=9)
        assert str(pipeline).split("\n") == [
            "Pipeline(",
            "    SlidingWindow(keep=last(turns=9)),",
            "    Pipeline(",
            "        drop_first,",
            f"        ToolResult(style=Clear(placeholder='{'gone ' * 8}...', min_chars=200, inputs=()), at_least=500),",
            "        trigger=turns_exceed(3),",
            "    ),",
            "    TokenBudgetComposed(strategies=[Truncation()], budget=9),",
            ")",
        ]
        assert str(Pipeline()) == "Pipeline()"

    def test_a_strategy_that_is_not_an_attrs_class_has_its_repr_as_text(self) -> None:
        class Plain(Strategy):
            def __call__(self, index: MessageIndex) -> Steps:
                yield from ()

            def __repr__(self) -> str:
                return "Plain()"

        assert str(Plain()) == "Plain()"

    def test_repr_says_what_was_said(self) -> None:
        assert repr(Pipeline()) == "Pipeline()"
        assert repr(Pipeline(trigger=turns_exceed(2))) == "Pipeline(trigger=turns_exceed(2))"
        assert repr(Pipeline(target=turns_exceed(2))) == "Pipeline(target=turns_exceed(2))"
        assert compact_sync(turns(1), Pipeline(trigger=turns_exceed(2)), counter="chars/4").outcome == "unchanged"

    @pytest.mark.parametrize("wrong", [None, 7, "Truncation"])
    def test_what_is_no_strategy(self, wrong: Any) -> None:
        with pytest.raises(ConfigurationError, match="a strategy must be a callable that takes an index and yields edits"):
            Pipeline(wrong)
        with pytest.raises(ConfigurationError, match="a strategy must be a callable that takes an index and yields edits"):
            Truncation() >> wrong


class TestForced:
    """``forced()`` returns the strategy for a run that a user requests."""

    def test_what_is_gentle_runs_whatever_its_trigger_says(self) -> None:
        """A dropping strategy is unchanged and keeps the trigger of the pipeline around it."""
        rough, gentle = Truncation(trigger=never), ToolResult(Clear(), trigger=never, at_least=99)
        forced = ToolResult(Clear(), trigger=always, target=never, at_least=0)
        assert rough.forced() is rough
        assert gentle.forced() == forced
        assert Pipeline(gentle, rough).forced() == Pipeline(forced, rough)
        full = tokens_exceed(9)
        assert Pipeline(gentle, rough, trigger=full).forced() == Pipeline(forced, Pipeline(rough, trigger=full))

    def test_triggers_of_nested_pipelines_hold_together(self) -> None:
        outer, inner = tokens_exceed(9), turns_exceed(2)
        nested = Pipeline(Pipeline(Truncation(), trigger=inner), trigger=outer)
        assert nested.forced() == Pipeline(Pipeline(Truncation(), trigger=outer & inner))

    def test_a_budget(self) -> None:
        """A forced budget always runs its shortening strategies, and drops groups only above the budget."""
        gentle = ToolResult(Clear(), trigger=never)
        budget = TokenBudgetComposed([gentle, SlidingWindow()], budget=10_000)
        assert budget.forced() == Pipeline(gentle.forced(), budget)
        done = run_sync(indexed(tool_turns(4)), budget.forced())
        assert done.after.messages == done.before.messages
        assert done.after.tokens < done.before.tokens

    def test_what_wraps_others_is_forced_inside(self, tmp_path: Path) -> None:
        store = SQLiteStore(tmp_path / "store.db")
        assert Lossless(ToolResult(trigger=never), store).forced() == Lossless(ToolResult().forced(), store)
        rough = Lossless(Truncation(), store)
        assert rough.forced() is rough


class TestFunctions:
    """A plain function works as a strategy."""

    def test_a_pipeline_of_functions_has_no_target(self) -> None:
        """If all steps are functions and no target is given, the trigger may still fire at the end: no target is missed."""

        def full(index: MessageIndex) -> bool:
            return index.included.messages > 1

        for steps, target, outcome in (
            ([drop_first], None, "compacted"),
            ([drop_first], ~as_trigger(full), "over_target"),
            ([drop_first, Truncation(trigger=never)], None, "over_target"),
        ):
            pipeline = Pipeline(*steps, trigger=full, target=target)
            assert compact_sync(turns(3), pipeline, counter="chars/4").outcome == outcome
            assert pipeline.with_children(pipeline.children) == pipeline
        assert Pipeline(drop_first, trigger=full).target == never
        assert Pipeline().default_target == never

    def test_nothing_is_not_a_list_of_edits(self) -> None:
        async def later(index: MessageIndex) -> Any:
            yield Drop(0)

        for wrong in (lambda index: None, later):
            with pytest.raises(StrategyError, match="a strategy must yield edits, or return a list of them"):
                compact_sync(turns(2), wrong, counter="chars/4")  # type: ignore[arg-type]
