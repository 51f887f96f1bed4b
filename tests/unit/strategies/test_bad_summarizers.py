"""Every kind of bad summarizer with every summarizing strategy: nothing is lost, and the failure is reported in time."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from compaction import CompactionResult, MessageIndex, last, run, run_sync
from compaction.errors import SummaryFailed
from compaction.index import RunContext
from compaction.session import CompactionSession
from compaction.strategies import CompactionStrategy, GrowingSummary, Summarization
from compaction.summarizers import FirstOf
from compaction.summarizers.base import TIMEOUT_SECONDS, timeout_of
from compaction.triggers import tokens_exceed
from tests.support.scripted import Awaited, Scripted

HANGS = 3_600.0
MEGABYTE = "All is well. " * 80_000


def said(count: int, words: int = 30) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Note {number}: " + "as said before " * words} for number in range(count)]


class Hanging(Awaited):
    """A summarizer that answers after an hour and has a timeout of a hundredth of a second."""

    timeout_seconds = 0.01

    def __init__(self) -> None:
        super().__init__("Too late.", seconds=HANGS)


BAD: list[Any] = [
    pytest.param(RuntimeError("boom"), "boom", id="raises"),
    pytest.param("", "says something", id="empty"),
    pytest.param("I'm sorry, but I can't help with that request.", "this is not a summary", id="refusal"),
    pytest.param(lambda request: b"\x00\xff", "says something", id="garbage"),
    pytest.param(lambda request: [{"type": "function", "function": {"name": "search"}}], "'name': 'search'", id="tool calls"),
    pytest.param(lambda request: None, "answered None", id="nothing"),
    pytest.param(MEGABYTE, "tokens", id="1 MB"),
]


def growing(summarizer: Any) -> GrowingSummary:
    sizes = {"tokens": 300, "initial_tokens": 100, "added_tokens": 50, "max_tokens": 150}
    return GrowingSummary(summarizer, **sizes, trigger=tokens_exceed(600))


def summarizing(summarizer: Any) -> Summarization:
    return Summarization(summarizer, keep=last(messages=2))


strategies = pytest.mark.parametrize("make", [summarizing, growing])


def failure(outcome: CompactionResult) -> str:
    """The message of the one failure of a degraded run."""
    assert outcome.outcome == "degraded"
    (failed,) = outcome.failures
    assert len(str(failed.error)) < 1_000
    return str(failed.error)


@strategies
@pytest.mark.parametrize(("answer", "says"), BAD)
async def test_a_bad_answer_is_a_short_failure_and_a_pause(make: Any, answer: Any, says: str) -> None:
    for summarizer in (Scripted(answer), Awaited(answer)):
        index = MessageIndex(said(40), counter="chars/4", context=RunContext(now=0.0))
        strategy = make(summarizer)
        assert says in failure(await run(index, strategy))
        assert index.context.pauses.is_paused(strategy, 1.0)


@strategies
async def test_a_summarizer_that_hangs_is_given_up(make: Any) -> None:
    hanging = Hanging()
    index = MessageIndex(said(40), counter="chars/4")
    assert failure(await run(index, make(hanging))) == "Hanging did not answer within 0.01 s"
    assert hanging.running == 0


def test_an_awaited_summarizer_has_a_minute() -> None:
    """Unless it sets its own timeout; `FirstOf` has none, because its parts have theirs."""
    assert (TIMEOUT_SECONDS, timeout_of(Awaited("x")), timeout_of(Hanging())) == (60.0, 60.0, 0.01)
    assert timeout_of(FirstOf(Hanging())) is None


# ---------------------------------------------------------------- a summary that saves nothing


def test_a_summary_that_saves_nothing_is_not_a_failure() -> None:
    """A summary that saves no tokens is discarded without a failure, and not requested again for the same content."""
    scripted = Scripted("as long as it was " * 200)
    strategy = Summarization(scripted, keep=last(messages=2), on_failure="raise")
    index = MessageIndex(said(6), counter="chars/4")
    outcomes = [run_sync(index, strategy) for _ in range(3)]
    assert [(each.outcome, each.failures, each.edits) for each in outcomes] == [("unchanged", (), ())] * 3
    assert len(scripted.requests) == 1
    assert not index.context.pauses.is_paused(strategy, 0.0)


def test_new_content_is_worth_another_request() -> None:
    """After a summary that saved nothing, the next is requested once the content has changed by ``least_share`` of the view."""
    scripted = Scripted("as long as it was " * 400, "Short.")
    strategy = Summarization(scripted, keep=last(messages=2), least_share=0.3)
    index = MessageIndex(said(6), counter="chars/4")
    asked = []
    for turn in range(4):
        run_sync(index, strategy)
        asked.append(len(scripted.requests))
        index.append(said(1, words=30 + turn))
    assert asked == [1, 1, 1, 2]


# ---------------------------------------------------------------- where no pause counts


def paused(strategy: CompactionStrategy, context: RunContext) -> MessageIndex:
    """An index whose context says that the strategy has just failed."""
    context.pauses.record_failure(strategy, context.now)
    return MessageIndex(said(40), counter="chars/4", context=context)


@strategies
def test_a_run_that_a_person_asks_for_forgets_the_pause(make: Any) -> None:
    """``compact_sync`` of a session calls a paused summarizer at once; if it fails again, the strategy pauses."""
    scripted = Scripted(SummaryFailed("down"), SummaryFailed("still down"), "Up.")
    session = CompactionSession(make(scripted), counter="chars/4", clock=lambda: 10.0)
    session.view_sync(said(40))
    session.view_sync(said(41))
    assert len(scripted.requests) == 1
    again = session.compact_sync(said(80))
    assert ([str(each.error) for each in again.failures], again.notes) == (["still down"], ())
    session.view_sync(said(81))
    assert len(scripted.requests) == 2
    assert session.compact_sync(said(120)).outcome == "compacted"


@strategies
@pytest.mark.parametrize(("window", "asked"), [(None, 0), (1_000_000, 0), (1_000, 1)])
def test_past_the_window_nothing_pauses(make: Any, window: int | None, asked: int) -> None:
    scripted = Scripted("Up.")
    strategy = make(scripted)
    run_sync(paused(strategy, RunContext(now=0.0, window=window)), strategy)
    assert len(scripted.requests) == asked


def test_past_the_window_what_saved_nothing_is_tried_again() -> None:
    """Above the context window, a summary that saved nothing is requested again in each run; within the window it is not."""
    scripted = Scripted("as long as it was " * 200)
    strategy = Summarization(scripted, keep=last(messages=2))
    index = MessageIndex(said(6), counter="chars/4", context=RunContext(window=100))
    for _ in range(3):
        run_sync(index, strategy)
    index.context = attrs.evolve(index.context, window=100_000)
    run_sync(index, strategy)
    assert len(scripted.requests) == 3


# ---------------------------------------------------------------- the next one is asked


@strategies
async def test_the_next_summarizer_is_asked(make: Any) -> None:
    """`FirstOf` writes the answer of the first summarizer that works, and the result has a failure for each one before it."""
    index = MessageIndex(said(40), counter="chars/4", context=RunContext(now=0.0))
    strategy = make(FirstOf(Scripted(RuntimeError("boom")), Hanging(), Awaited(MEGABYTE), Awaited("Short and well.")))
    outcome = await run(index, strategy)
    assert outcome.outcome == "degraded"
    assert "Short and well." in str(outcome.messages[0])
    assert [str(each.error)[:15] for each in outcome.failures] == ["boom", "Hanging did not", "the summary has"]
    assert {each.policy for each in outcome.failures} == {"the next summarizer was asked"}
    assert not index.context.pauses.is_paused(strategy, 0.0)


@strategies
async def test_when_all_failed_the_strategy_does_what_it_always_does(make: Any) -> None:
    index = MessageIndex(said(40), counter="chars/4", context=RunContext(now=0.0))
    strategy = make(FirstOf(Awaited(""), Scripted(RuntimeError("boom"))))
    told = failure(await run(index, strategy))
    assert told.startswith("every summarizer failed: Awaited: the summarizer answered '': ")
    assert told.endswith("; Scripted: boom")
    assert index.context.pauses.is_paused(strategy, 1.0)
