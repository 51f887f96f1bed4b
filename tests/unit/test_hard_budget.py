"""``hard=True``: the result fits the budget, or an error lists which groups hold the tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import BudgetUnsatisfiable, Pipeline, RunContext, apply_compaction_sync, compact_sync, last, run_sync
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_responses
from compaction.selectors import nothing
from compaction.session import CompactionSession
from compaction.strategies import HeadTail, Offload, TokenBudgetComposed, ToolResult, Truncation
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, indexed, result, system, turns, user
from tests.support.wires import Shelf, valid_conversation

HUGE: Chat = [system("Be brief. " * 8), *turns(2), user("Read it."), call("1"), result("1", "a line of the log\n" * 2_000)]
"""A conversation whose newest group is a large result."""


class TestWhatHoldsTheSpace:
    def test_is_said_largest_first(self) -> None:
        with pytest.raises(BudgetUnsatisfiable) as caught:
            compact_sync(HUGE, Truncation(trigger=tokens_exceed(500)), counter="chars/4", hard=True)
        error = caught.value
        assert error.tokens > 9_000
        assert error.wanted == ("~tokens_exceed(500)",)
        first, *others = error.space_report
        assert (first.group, first.kind, first.why) == (6, "tool_call", "the newest group must be kept")
        assert "HeadTail" in first.remedy
        sizes = [held.tokens for held in error.space_report]
        assert sizes == sorted(sizes, reverse=True)
        assert {held.kind for held in others} >= {"system", "user"}
        assert "group 6 (tool_call): 9," in str(error)

    @pytest.mark.parametrize(
        ("messages", "why", "remedy"),
        [
            ([user("x " * 900)], "the newest group must be kept", "shorten or split"),
            ([system("x " * 900), user("q")], "system messages must be kept", "drop_system=True"),
            ([user("x " * 900), call("1"), result("1"), call("2")], "the last user message must be kept", "shorten or split"),
            ([user(), call("1", arguments="x " * 900)], "a tool call must be kept until its result arrives", "before you add"),
        ],
    )
    def test_each_law_has_its_remedy(self, messages: Chat, why: str, remedy: str) -> None:
        with pytest.raises(BudgetUnsatisfiable) as caught:
            compact_sync(messages, TokenBudgetComposed([], budget=50), counter="chars/4", hard=True)
        held = caught.value.space_report[0]
        assert (held.why, remedy in held.remedy) == (why, True)

    def test_what_is_kept_or_pinned_is_named_too(self) -> None:
        chat = [user("x " * 900), assistant("a"), user("q")]
        strategy = Truncation(trigger=tokens_exceed(50), keep=last(groups=3))
        with pytest.raises(BudgetUnsatisfiable) as caught:
            compact_sync(chat, strategy, counter="chars/4", hard=True)
        first = caught.value.space_report[0]
        assert (first.why, first.remedy) == ("no strategy removed it", "let the strategies keep less")
        with pytest.raises(BudgetUnsatisfiable) as caught:
            compact_sync(chat, strategy, counter="chars/4", hard=True, pin=lambda message: "x " in message.text)
        assert caught.value.space_report[0].remedy == "pin less"

    def test_what_is_sent_beside_the_messages(self) -> None:
        index = indexed([user("q")], context=RunContext(overhead_tokens=5_000))
        with pytest.raises(BudgetUnsatisfiable) as caught:
            run_sync(index, Pipeline(), budget=100, hard=True)
        assert caught.value.wanted == ("budget=100",)
        assert (caught.value.space_report[0].group, caught.value.space_report[0].kind) == (None, "overhead")


class TestOutcome:
    def test_a_budget_that_is_met_changes_nothing_else(self) -> None:
        chat = turns(40)
        strategy = Truncation(trigger=tokens_exceed(100), target=tokens_below(80), keep=last(groups=2))
        plain = compact_sync(chat, strategy, counter="chars/4")
        assert compact_sync(chat, strategy, counter="chars/4", hard=True) == plain
        assert apply_compaction_sync(chat, strategy, counter="chars/4", hard=True, budget=100) == plain.messages

    async def test_a_session_is_as_it_was(self) -> None:
        """A session raises `BudgetUnsatisfiable` without keeping edits, and returns a view for the next list that fits."""
        session = CompactionSession(Truncation(trigger=tokens_exceed(500)), counter="chars/4", hard=True)
        with pytest.raises(BudgetUnsatisfiable):
            await session.view(HUGE)
        assert session.index.edit_count == 0
        assert await session.view([*HUGE[:-1], result("1", "short")]) == [*HUGE[:-1], result("1", "short")]


def emergency(budget: int) -> Pipeline:
    """The composition in ``docs/hard-budgets.md``."""
    return Pipeline(
        TokenBudgetComposed([ToolResult(keep=last(groups=2))], budget=budget),
        ToolResult(HeadTail(chars=4 * budget // 3), trigger=tokens_exceed(budget), keep=nothing),
        ToolResult(HeadTail(chars=budget // 3), trigger=tokens_exceed(budget), keep=nothing),
        Offload(Shelf(), min_chars=100, trigger=tokens_exceed(budget), keep=nothing),
    )


class TestEmergency:
    def test_shortening_single_results_reaches_what_dropping_cannot(self) -> None:
        """Where dropping is not enough, the newest result is shortened; its call stays, and the budget is met."""
        done = compact_sync(HUGE, emergency(600), counter="chars/4", budget=600, hard=True)
        assert done.after.tokens <= 600
        assert done.messages[-2] is HUGE[-2]
        assert done.messages[-1]["content"].startswith("a line of the log")

    @given(st.data(), st.sampled_from([anthropic, gemini, bedrock, openai_responses]), st.integers(40, 600))
    def test_in_every_format_the_budget_is_met_or_named(self, data: st.DataObject, format: MessageFormat, budget: int) -> None:
        """Never a result above the budget, and never an error about one that could be sent."""
        messages = data.draw(valid_conversation(format))
        left, reached = outcome(messages, format, budget)
        assert (left <= budget) == reached


def outcome(messages: list[Any], format: MessageFormat, budget: int) -> tuple[int, bool]:
    """Return the tokens of the result, or of the error, and whether there is a result; check that a result is valid."""
    try:
        done = compact_sync(messages, emergency(budget), counter="chars/4", format=format, budget=budget, hard=True)
    except BudgetUnsatisfiable as error:
        return error.tokens, False
    assert {problem.rule for problem in format.validate(done.messages)} <= {"pending-call"}
    return done.after.tokens, True
