"""The drivers: they apply edits one by one, call or await requests, and return a complete result."""

from __future__ import annotations

import functools
import itertools
import logging
import operator
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import attrs
import pytest

from compaction import CompactionResult, Pipeline, Step, kinds, last, nothing
from compaction.errors import ConfigurationError, SyncDriverError
from compaction.index import Drop, Edit, GroupKind, MessageIndex, Refusal, Request, RunContext
from compaction.run import apply_compaction, apply_compaction_sync, compact, compact_sync, run, run_sync, unawaited
from compaction.strategies import Clear, Failed, SlidingWindow, StepBegan, StepEnded, Steps, Strategy, ToolResult, Truncation
from compaction.triggers import as_trigger, messages_exceed, never, tokens_below, tokens_exceed, turns_exceed
from tests.support.chats import assistant, indexed, shown, system, tool_turns, turns


@attrs.frozen
class Asks(Request):
    """A request with an answer that the test sets."""

    answer: Callable[[], Any]

    def call(self) -> Any:
        return self.answer()


def asking(answer: Callable[[], Any], got: list[object] | None = None) -> Callable[[MessageIndex], Steps]:
    """A strategy that drops the first group, yields a request, and drops the second group."""

    def strategy(index: MessageIndex) -> Steps:
        yield Drop(0)
        answered = yield Asks(answer)
        if got is not None:
            got.append(answered)
        yield Drop(1)

    return strategy


async def soon(value: object = "later") -> object:
    await anyio.lowlevel.checkpoint()
    return value


def fails() -> object:
    raise OSError("no answer")


@attrs.frozen
class Reporting(Strategy):
    """A strategy that only yields the given reports."""

    reports: tuple[Any, ...]

    def __call__(self, index: MessageIndex) -> Steps:
        yield StepBegan(self, "told so")
        yield from (report for report in self.reports)
        yield StepEnded(self, never, True)


def has_user(index: MessageIndex) -> bool:
    """A condition that no strategy changes, as the last user message stays."""
    return any(group.kind is GroupKind.USER for group in index.included_groups)


class TestResult:
    def test_all_that_happened(self) -> None:
        messages = [system("s"), *turns(3)]

        def strategy(index: MessageIndex) -> Iterator[Edit]:
            yield Drop([1, 2], "old")
            yield Drop(0, "not allowed")
            yield Drop(3, "older than the rest")

        index = indexed(messages)
        before = index.included
        done = run_sync(index, strategy)
        assert done == CompactionResult(
            messages=[messages[0], *messages[4:]],
            before=before,
            after=index.included,
            edits=(Drop([1, 2], "old"), Drop(3, "older than the rest")),
            refused=(Refusal(Drop(0, "not allowed"), "system messages must be kept", "strategy"),),
            failures=(),
            outcome="compacted",
            notes=("the shortened list does not begin with a user message; strict chat templates refuse such a list",),
            triggered=("strategy: it has no trigger",),
        )

    def test_a_view_that_opened_with_an_answer_before_is_not_noted(self) -> None:
        """There is no note if the view begins with a user message, or if it already began with an answer before the run."""
        greeted = indexed([system("s"), assistant("hello"), *turns(3)])
        assert run_sync(greeted, lambda index: [Drop([2])]).notes == ()
        assert run_sync(indexed(turns(3)), lambda index: [Drop([0, 1])]).notes == ()

    def test_a_missed_target_is_noted(self) -> None:
        pipeline = Truncation(trigger=messages_exceed(3), keep=last(groups=6)) >> Pipeline(
            SlidingWindow(keep=last(turns=9)), trigger=has_user, target=tokens_below(5)
        )
        done = compact_sync(turns(4), pipeline, counter="chars/4", budget=9)
        assert done.outcome == "over_target"
        kept = "keeps 30 tokens in 6 groups: choose fewer, such as keep=last(groups=2)"
        assert done.notes == (
            f"Truncation missed its target ~messages_exceed(3): messages 6 > 3; keep=last(groups=6) {kept}",
            f"Pipeline missed its target tokens_below(5): tokens 30 >= 5; keep=last(turns=9) {kept}",
            "the budget is 9 tokens; 30 are left",
        )
        assert repr(done).endswith(", notes 3>")

    def test_a_long_target_is_cut(self) -> None:
        """The figures that it compares stand beside it."""
        limits = [tokens_below(limit) for limit in range(10, 29)]
        target = functools.reduce(operator.or_, limits)
        [note] = compact_sync(turns(4), SlidingWindow(keep=last(turns=9), target=target), counter="chars/4").notes
        assert note.startswith(f"SlidingWindow missed its target {repr(target)[:100]}...: tokens 40 >= 10 ")

    def test_a_target_that_is_missed_although_little_is_kept(self) -> None:
        """The note then names the largest group, with the rule that keeps it and a remedy; an empty view has none."""
        done = compact_sync(turns(1), SlidingWindow(trigger=has_user, keep=nothing), counter="chars/4")
        [note] = done.notes
        assert "has_user says yes; the largest part is group 0 (user): 5 tokens, the last user message must be kept;" in note
        done = compact_sync([], SlidingWindow(trigger=~as_trigger(has_user)), counter="chars/4")
        assert done.notes[0].endswith("; the largest part is nothing: the view is empty")

    def test_the_result_is_only_of_this_run(self) -> None:
        index = indexed([system("s"), *turns(3)])
        run_sync(index, lambda index: [Drop(1), Drop(0)])
        done = run_sync(index, lambda index: [Drop(2)])
        assert (done.edits, done.refused, done.before.messages) == ((Drop(2),), (), 6)
        assert index.edits == (Drop(1), Drop(2))

    def test_whether_an_edit_was_applied_is_the_answer_to_it(self) -> None:
        got: list[object] = []

        def strategy(index: MessageIndex) -> Steps:
            got.append((yield Drop(0)))
            got.append(index.included.messages)
            got.append((yield Drop(99)))
            got.append(index.included.messages)

        run_sync(indexed(turns(3)), strategy)
        assert got == [True, 5, False, 5]


class TestOutcome:
    @pytest.mark.parametrize(
        ("strategy", "outcome"),
        [
            (Pipeline(), "unchanged"),
            (Truncation(trigger=never), "unchanged"),
            (Truncation(keep=nothing), "compacted"),
            (Truncation(trigger=messages_exceed(3), keep=nothing), "compacted"),
            (Truncation(trigger=messages_exceed(1), keep=nothing), "over_target"),
            (Truncation(trigger=messages_exceed(3), keep=last(groups=6)), "over_target"),
            (lambda index: [], "unchanged"),
            (lambda index: [Drop(0)], "compacted"),
            (lambda index: [Drop(99)], "unchanged"),
            (Reporting((Failed("X", OSError("no"), "kept"),)), "degraded"),
            (Reporting((Drop(0), Failed("X", OSError("no"), "dropped"))), "degraded"),
            (Pipeline(Reporting((Failed("X", OSError("no"), "kept"),)), Truncation(trigger=messages_exceed(1))), "over_target"),
        ],
    )
    def test_the_outcome_in_one_word(self, strategy: Any, outcome: str) -> None:
        """The outcome is the first that applies of ``"over_target"``, ``"degraded"``, ``"compacted"`` and ``"unchanged"``."""
        assert compact_sync(turns(3), strategy, counter="chars/4").outcome == outcome

    def test_a_later_step_may_get_there(self) -> None:
        gentle = ToolResult(Clear(), trigger=tokens_exceed(100), target=tokens_below(10), keep=nothing)
        rough = Truncation(trigger=tokens_exceed(100), target=tokens_below(60), keep=nothing)
        assert compact_sync(tool_turns(4), gentle, counter="chars/4").outcome == "over_target"
        assert compact_sync(tool_turns(4), gentle >> rough, counter="chars/4").outcome == "compacted"

    def test_another_target_does_not_make_up_for_a_step_that_would_run_again(self) -> None:
        """If a later step reaches its target but an earlier one still triggers, the outcome is ``"over_target"``."""
        stuck = ToolResult(trigger=tokens_exceed(10), keep=kinds(GroupKind.TOOL_CALL))
        later = Truncation(trigger=messages_exceed(6), keep=nothing)
        result = compact_sync(tool_turns(4), stuck >> later, counter="chars/4")
        assert (result.after.messages <= 6, result.outcome) == (True, "over_target")

    @pytest.mark.parametrize(("room", "outcome"), [(0, "unchanged"), (-1, "over_target")])
    def test_a_budget_to_be_judged_by(self, room: int, outcome: str) -> None:
        """``budget=`` changes no message; the outcome is ``"over_target"`` if view and overhead exceed the budget."""
        messages = turns(2)
        context = RunContext(overhead_tokens=10)
        budget = indexed(messages).tokens + 10 + room
        assert compact_sync(messages, Pipeline(), counter="chars/4", budget=budget, context=context).outcome == outcome

    @pytest.mark.parametrize("budget", [0, -5, 1.5, True, "32k"])
    async def test_a_budget_is_a_number_of_tokens(self, budget: Any) -> None:
        with pytest.raises(ConfigurationError, match="budget must be a whole number >= 1"):
            compact_sync(turns(1), Pipeline(), counter="chars/4", budget=budget)
        with pytest.raises(ConfigurationError, match="budget must be a whole number >= 1"):
            await run(indexed(turns(1)), Pipeline(), budget=budget)


class TestSteps:
    def test_what_an_observer_sees(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The observer gets a `Step` for each strategy that ran, and none for one that did not."""
        ticks = itertools.count()
        monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
        seen: list[Step] = []
        index = indexed(turns(4))
        sizes = [index.included]
        strategy = SlidingWindow(trigger=turns_exceed(3)) >> Truncation(trigger=never) >> Truncation(trigger=messages_exceed(1))
        run_sync(index, strategy, on_step=seen.append)
        sizes.append(index.included)
        edits = (Drop([0, 1], "outside the window"),)
        window, truncation = strategy.children[0], strategy.children[2]
        first, second = attrs.astuple(seen[0], recurse=False), attrs.astuple(seen[1], recurse=False)
        assert first == ("SlidingWindow", repr(window), "turns 4 > 3", *sizes, edits, 1.0, True)
        assert second == ("Truncation", repr(truncation), "messages 6 > 1", sizes[1], sizes[1], (), 1.0, False)

    def test_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        failing = Reporting((Failed("Summarization", OSError("no"), "kept as it is"),))
        strategy = Pipeline(SlidingWindow(trigger=turns_exceed(2)), Truncation(trigger=never), failing)
        with caplog.at_level(logging.INFO, logger="compaction"):
            compact_sync(turns(3), strategy, counter="chars/4")
        assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
            ("compaction", "INFO", "SlidingWindow: 1 edits, tokens 30 to 20, messages 6 to 4 (turns 3 > 2)"),
            ("compaction", "WARNING", "Summarization failed (OSError('no')): kept as it is"),
            ("compaction", "INFO", "Reporting: 0 edits, tokens 20 to 20, messages 4 to 4 (told so)"),
        ]

    def test_an_error_is_logged_without_the_secret_that_it_quotes(self, caplog: pytest.LogCaptureFixture) -> None:
        error = OSError(f"Incorrect API key provided: sk-proj-{'a1B2' * 6}")
        compact_sync(turns(1), Reporting((Failed("Summarization", error, "kept as it is"),)), counter="chars/4")
        assert "Incorrect API key provided: [REDACTED:openai-key]" in caplog.text
        assert "a1B2a1B2" not in caplog.text


class Suspended:
    """An awaitable that never finishes."""

    def __await__(self) -> Iterator[None]:
        yield

    async def suspend(self) -> None:
        await self


class TestRequests:
    def test_called_by_the_synchronous_driver(self) -> None:
        got: list[object] = []
        done = compact_sync(turns(3), asking(lambda: "an answer", got), counter="chars/4")
        assert (got, shown(done.messages)) == (["an answer"], ["q2", "a2", "q3", "a3"])

    @pytest.mark.parametrize("answer", [lambda: "at once", lambda: soon("at once")])
    async def test_called_or_awaited_by_the_other(self, answer: Callable[[], Any]) -> None:
        got: list[object] = []
        done = await compact(turns(3), asking(answer, got), counter="chars/4")
        assert (got, shown(done.messages)) == (["at once"], ["q2", "a2", "q3", "a3"])

    def test_the_synchronous_driver_refuses_to_await(self) -> None:
        index = indexed(turns(3))
        with pytest.raises(SyncDriverError, match="Asks has to be awaited: use the form without _sync"):
            run_sync(index, asking(soon))
        assert (index.messages(), index.edits) == (turns(3), ())

    def test_the_sync_form_of_an_async_function(self) -> None:
        async def done() -> str:
            return "done"

        assert unawaited(done()) == "done"
        with pytest.raises(SyncDriverError, match="use the method without _sync"):
            unawaited(Suspended().suspend())

    def test_no_policy_hides_that(self) -> None:
        def lenient(index: MessageIndex) -> Steps:
            try:
                yield Asks(soon)
            except Exception:
                yield Drop(0, "plan B")

        with pytest.raises(SyncDriverError):
            compact_sync(turns(3), lenient, counter="chars/4")

    async def test_a_failure_is_raised_where_it_was_asked(self) -> None:
        def lenient(index: MessageIndex) -> Steps:
            try:
                yield Asks(fails)
            except OSError:
                yield Drop(0, "plan B")

        for done in (compact_sync(turns(3), lenient, counter="chars/4"), await compact(turns(3), lenient, counter="chars/4")):
            assert done.edits == (Drop(0, "plan B"),)


class TestEntryPoints:
    async def test_four_ways_one_answer(self) -> None:
        messages = [system("s"), *turns(3)]
        strategy = SlidingWindow(trigger=turns_exceed(2))
        done = await compact(messages, strategy, counter="chars/4")
        assert done == compact_sync(messages, strategy, counter="chars/4")
        assert done.messages == await apply_compaction(messages, strategy, counter="chars/4")
        assert done.messages == apply_compaction_sync(messages, strategy, counter="chars/4")
        assert shown(done.messages) == ["s", "q2", "a2", "q3", "a3"]

    def test_options_reach_the_index(self) -> None:
        asked: list[tuple[Any, ...]] = []

        def look(index: MessageIndex) -> list[Edit]:
            asked.append((index.counter.name, index.format.name, index.context.window, index.included_groups[0].pinned))
            return []

        options: dict[str, Any] = {"counter": "bytes/4", "format": "openai-chat", "context": RunContext(window=99)}
        options["pin"] = lambda message: True
        compact_sync(turns(1), look, **options)
        apply_compaction_sync(turns(1), look, **options)
        assert asked == [("bytes/4", "openai-chat", 99, True)] * 2
