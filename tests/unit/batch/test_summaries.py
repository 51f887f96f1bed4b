"""Batches with a summarizer: limits, failures and usage."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import attrs
import pyarrow as pa
import pytest

from compaction import last, presets
from compaction.batch import BatchProgress, Job, Limits, SummarizerDown
from compaction.batch.rate_limits import LimitedSummarizer, RateLimiter, find_summarizers, replace_summarizers
from compaction.batch.report import BatchCounts
from compaction.batch.table import table_of
from compaction.errors import ConfigurationError, SummaryFailed
from compaction.strategies import Pipeline, Strategy, Summarization, TokenBudgetComposed, Truncation, as_strategy
from compaction.summarizers import CachedSummarizer, FactSummarizer, FirstOf, OpenAISummarizer, SummaryRequest
from compaction.tokens import Usage
from compaction.triggers import messages_exceed, tokens_exceed
from tests.support.chats import tool_turns, turns, user
from tests.support.corpora import errors_of, read_rows, run, store
from tests.support.scripted import Awaited, request_for
from tests.support.servers import FaultServer, reply, status

SUMMARY = "## Goal\nThe user counts.\n"


class Slow(Awaited):
    """A summarizer that takes its time, and may be down after so many requests. Holds state: its requests."""

    cache_key = "slow"

    def __init__(self, seconds: float = 0.0, *, down_from: int = 1_000) -> None:
        super().__init__(*[summary_of] * down_from, SummaryFailed("nobody there"), seconds=seconds)

    def __repr__(self) -> str:
        return "Slow()"

    @property
    def asked(self) -> int:
        return len(self.requests)


def summary_of(request: SummaryRequest) -> str:
    return f"{SUMMARY}{len(request.groups)} groups, from {request.groups[0].messages[0].text[:20]}"


def summarizing(summarizer: Any, **options: Any) -> Strategy:
    """Return a strategy that summarizes conversations of more than six messages, except the last two messages."""
    return Summarization(summarizer, trigger=messages_exceed(6), keep=last(messages=2), **options)


LONG = [{"id": number, "messages": [user(f"shelf {number}"), *turns(6, words=60)]} for number in range(24)]


# -------------------------------------------------------------------- the batch


def test_conversations_wait_together(tmp_path: Path) -> None:
    """At most ``concurrency`` conversations wait for the summarizer at a time, and the order is kept."""
    slow = Slow(0.02)
    source = store(tmp_path / "in.jsonl", "jsonl", LONG)
    threads = threading.active_count()
    report = run(source, tmp_path / "out.jsonl", strategy=summarizing(slow), limits=Limits(concurrency=5), slice_bytes=50_000)
    assert threading.active_count() == threads
    rows = read_rows(tmp_path / "out.jsonl", "jsonl")
    assert [row["id"] for row in rows] == list(range(24))
    assert all(SUMMARY in row["messages"][0]["content"] for row in rows)
    assert (slow.asked, slow.most_running, report.tally.requests, report.workers) == (24, 5, 24, 5)
    assert report.tally.completion_tokens > 0
    assert report.tally.seconds == 0


def test_requests_are_shown_before_their_slice_is_finished(tmp_path: Path) -> None:
    """The progress, which is also reported while nothing is finished, counts each request once."""
    seen: list[BatchProgress] = []
    source = store(tmp_path / "in.jsonl", "jsonl", LONG[:1])
    run(source, tmp_path / "out.jsonl", strategy=summarizing(Slow(0.7)), on_progress=seen.append)
    assert [(now.tally.requests, now.tally.conversations) for now in (seen[0], seen[-1])] == [(1, 0), (1, 1)]


def test_what_was_paid_for_is_not_paid_for_again(tmp_path: Path) -> None:
    """After a stop or a failure, earlier answers are in the cache, and each conversation is summarized once."""
    source = store(tmp_path / "in.jsonl", "jsonl", LONG)
    first, second = Slow(down_from=10), Slow()
    limits = Limits(concurrency=2, give_up_after=3)
    with pytest.raises(SummarizerDown, match=r"failed 3 times in a row, at last: nobody there; .* run the same command again"):
        run(source, tmp_path / "out.jsonl", strategy=summarizing(first), limits=limits, slice_bytes=100_000)
    assert not (tmp_path / "out.jsonl").exists()
    report = run(source, tmp_path / "out.jsonl", strategy=summarizing(second), limits=limits, slice_bytes=100_000)
    assert (report.outcome, report.tally.degraded) == ("finished", 0)
    assert 10 + second.asked == len(LONG)
    run(source, tmp_path / "out.jsonl", strategy=summarizing(second), limits=limits, slice_bytes=100_000)
    assert not (tmp_path / "out.jsonl.parts").exists(), "a run after the end leaves nothing"


def test_stopped_it_finishes_conversations_not_slices(tmp_path: Path) -> None:
    """When the batch is stopped, conversations in progress are finished, and their summaries are not requested again."""
    source = store(tmp_path / "in.jsonl", "jsonl", LONG)
    first, second = Slow(0.01), Slow()
    options: dict[str, Any] = {"limits": Limits(concurrency=3), "slice_bytes": 1_000_000}
    report = run(source, tmp_path / "out.jsonl", strategy=summarizing(first), stop=lambda: first.asked >= 6, **options)
    assert (report.outcome, report.tally.conversations) == ("interrupted", 0)
    assert 6 <= first.asked == report.tally.requests <= 9
    assert run(source, tmp_path / "out.jsonl", strategy=summarizing(second), **options).outcome == "finished"
    assert first.asked + second.asked == len(LONG)


def test_a_summarizer_that_fails_now_and_then(tmp_path: Path) -> None:
    """A single failure affects only its conversation: the strategy's policy applies, and the report counts it."""

    class Moody(Slow):
        async def summarize(self, request: SummaryRequest) -> str:
            answer = await super().summarize(request)
            if self.asked % 4 == 0:
                raise SummaryFailed("not now")
            return answer

    source = store(tmp_path / "in.jsonl", "jsonl", LONG)
    limits = Limits(concurrency=1, give_up_after=2)
    kept = run(source, tmp_path / "kept.jsonl", strategy=summarizing(Moody()), limits=limits)
    raised = run(source, tmp_path / "raised.jsonl", strategy=summarizing(Moody(), on_failure="raise"), limits=limits)
    assert (kept.tally.degraded, kept.tally.bad) == (6, 0)
    assert [entry["reason"] for entry in errors_of(raised)] == ["SummaryFailed: not now"] * 6
    options: dict[str, Any] = {"strategy": summarizing(Moody()), "budget": None, "strict": True, "max_errors": 9}
    strict = run(source, tmp_path / "strict.jsonl", limits=limits, **options)
    assert [entry["reason"] for entry in errors_of(strict)] == ["degraded: not now"] * 6


def test_a_real_client_that_is_told_to_wait(tmp_path: Path) -> None:
    """With OpenAI's client: a 429 delays every conversation, then all are summarized; the reported usage is counted."""
    with FaultServer(status(429, headers={"retry-after": "0.4"}), reply(ANSWER)) as server:
        model = OpenAISummarizer("m", base_url=server.url, api_key="none", max_retries=0)
        source = store(tmp_path / "in.jsonl", "jsonl", LONG[:6])
        report = run(source, tmp_path / "out.jsonl", strategy=summarizing(model), limits=Limits(concurrency=3))
    assert (report.tally.degraded, report.tally.changed) == (0, 6)
    assert len(server.requests) == report.tally.requests == 7
    prompt = sum(sum(len(message["content"]) for message in request["messages"]) // 4 for request in server.requests[1:])
    assert report.tally.prompt_tokens == prompt


ANSWER = "\n\n".join(
    f"## {name}\n{text}"
    for name, text in [
        ("Goal", "Count the shelves and say how many boxes stand on each of them."),
        ("Constraints & Preferences", "None were given."),
        ("Progress", "### Done\nThe first shelves were counted.\n### In Progress\nThe next one.\n### Blocked\nNothing."),
        ("Key Decisions", "To count from the left."),
        ("Relevant Files", "None."),
        ("Next Steps", "Count the next shelf."),
        ("Critical Context", "There are words in great number."),
    ]
)


def test_a_strategy_that_awaits_unseen_is_told(tmp_path: Path) -> None:
    """A plain function that awaits a summarizer, which cannot be detected, ends the batch with an error."""

    def hidden(index: Any) -> Any:
        yield from summarizing(Slow())(index)

    with pytest.raises(Exception, match="has to be awaited"):
        run(store(tmp_path / "in.jsonl", "jsonl", LONG), tmp_path / "out.jsonl", strategy=hidden)


# -------------------------------------------------------------------- the rate limiter


class Clock:
    """Time that passes only by waiting. Holds state."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await anyio.lowlevel.checkpoint()


def limiter_of(clock: Clock, **limits: Any) -> RateLimiter:
    return RateLimiter(Limits(**limits), clock=clock, sleep=clock.sleep)


async def test_requests_a_minute() -> None:
    """A second's worth of requests is sent at once, and further ones at the rate. A longer pause saves up no more."""
    clock = Clock()
    rate_limiter = limiter_of(clock, requests_per_minute=120)
    for pause, requests, seconds in ((0, 11, 4.0), (100, 11, 4.0)):
        clock.now += pause
        began = clock.now
        for _ in range(requests):
            await rate_limiter.acquire(0)
        assert clock.now - began == pytest.approx(seconds)


async def test_tokens_a_minute() -> None:
    """A request that is larger than what is left goes, and the next waits until it is paid; usage puts the estimate right."""
    clock = Clock()
    rate_limiter = limiter_of(clock, tokens_per_minute=600)
    await rate_limiter.acquire(100)
    await rate_limiter.acquire(0)
    assert clock.now - 100 == pytest.approx(9)
    rate_limiter.record_usage(Usage(15, 5), 0)
    await rate_limiter.acquire(0)
    assert clock.now - 100 == pytest.approx(11)


@pytest.mark.parametrize(("limits", "seconds"), [({"requests_per_minute": 6}, 19), ({"tokens_per_minute": 600}, 9)], ids=str)
async def test_a_further_reply_is_a_request(limits: dict[str, Any], seconds: float) -> None:
    """The first reply to a summary corrects the estimate; each further one counts as a request, with all of its tokens.

    The summarizer's own ``on_usage`` is told of each.
    """
    clock = Clock()
    told: list[Usage] = []

    class Twice(OpenAISummarizer):
        async def summarize(self, request: SummaryRequest) -> str:
            assert self.on_usage is not None
            self.on_usage(Usage(60, 30))
            self.on_usage(Usage(5, 5))
            return SUMMARY

    limited = LimitedSummarizer(Twice("m", api_key="none", on_usage=told.append), limiter_of(clock, **limits))
    assert await limited.summarize(request_for(limited, tool_turns(2))) == SUMMARY
    assert limited.rate_limiter.usage == BatchCounts(requests=2, prompt_tokens=65, completion_tokens=35)
    assert told == [Usage(60, 30), Usage(5, 5)]
    await limited.rate_limiter.acquire(0)
    assert clock.now - 100 == pytest.approx(seconds)


async def test_a_pause_is_everybodys() -> None:
    """A pause for one request delays all others; the request is sent again, its tokens are counted already."""
    clock = Clock()
    rate_limiter = limiter_of(clock, tokens_per_minute=6)
    times: list[float] = []

    async def other() -> None:
        await rate_limiter.acquire(0)
        times.append(clock.now)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rate_limiter.pause, 7.0)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(other)
    await rate_limiter.acquire(0)
    assert [*times, clock.now] == [pytest.approx(107)] * 2
    assert rate_limiter.usage.requests == 3


class Refused(Exception):
    """The error that clients raise for HTTP 429."""

    status_code = 429

    def __init__(self, **headers: str) -> None:
        super().__init__("too many")
        self.response = attrs.make_class("Response", ["headers"])(headers)


async def test_a_summarizer_that_is_refused_is_asked_again() -> None:
    """After a 429 the request is repeated, after the server's delay or after growing delays; other errors are raised."""
    clock = Clock()
    answers: list[Any] = [Refused(**{"retry-after": "5"}), Refused(), Refused(), "an answer"]

    class Server:
        def summarize(self, request: SummaryRequest) -> str:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise SummaryFailed("refused") from answer
            return str(answer)

    limited = LimitedSummarizer(Server(), limiter_of(clock))
    request = request_for(limited, tool_turns(2))
    assert await limited.summarize(request) == "an answer"
    assert clock.now - 100 == pytest.approx(5 + 2 + 4)
    sent, received = sum(group.tokens for group in request.groups), request.counter.count_text("an answer")
    assert limited.rate_limiter.usage == BatchCounts(requests=4, prompt_tokens=sent, completion_tokens=received)
    unusable = [Refused(**{"retry-after": wait}) for wait in ("soon", "inf", "nan", "-1", "1e999", "-inf", "")]
    for refusals, seconds in (([ValueError("no")], 0), (unusable, 1 + 2 + 4 + 8 + 16 + 32)):
        answers[:], began = refusals, clock.now
        with pytest.raises(SummaryFailed):
            await limited.summarize(request)
        assert clock.now - began == pytest.approx(seconds)


async def test_failures_in_a_row_are_counted() -> None:
    """A summary in between starts the count again; a wrong configuration is an error of its own."""
    limited = LimitedSummarizer(Slow(), limiter_of(Clock(), give_up_after=2))
    for _ in range(2):
        limited.rate_limiter.record_failure(SummaryFailed("no"))
        await limited.summarize(request_for(limited, tool_turns(2)))

    class Wrong:
        def summarize(self, request: SummaryRequest) -> str:
            raise ConfigurationError("no such model")

    limited.rate_limiter.record_failure(SummaryFailed("no"))
    with pytest.raises(ConfigurationError, match="no such model"):
        await attrs.evolve(limited, inner=Wrong()).summarize(request_for(limited, tool_turns(2)))
    with pytest.raises(SummarizerDown, match="failed 2 times in a row"):
        limited.rate_limiter.record_failure(SummaryFailed("no"))


def test_cached_answers_are_those_of_the_inner_summarizer() -> None:
    """The cache knows a limited summarizer by the key of the one in it, or else by its text."""
    assert LimitedSummarizer(Slow(), limiter_of(Clock())).cache_key == "slow"
    assert LimitedSummarizer(FactSummarizer(), limiter_of(Clock())).cache_key == repr(FactSummarizer())


def test_limits_are_divided() -> None:
    """Workers that cannot share a rate limiter get equal shares, of the conversations at least one."""
    assert Limits(concurrency=9, tokens_per_minute=8).divided(2) == Limits(concurrency=4, tokens_per_minute=4.0)
    assert Limits(concurrency=1, requests_per_minute=1).divided(2) == Limits(concurrency=1, requests_per_minute=0.5)
    assert Limits(give_up_after=1, requests_per_minute=0.1, tokens_per_minute=0.1).divided(1).give_up_after == 1


@pytest.mark.parametrize(
    "limits", [{"concurrency": 0}, {"requests_per_minute": 0}, {"tokens_per_minute": -1}, {"give_up_after": 0}], ids=str
)
def test_limits_out_of_range(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Limits(**limits)


class Plain(Strategy):
    """A strategy that is not an attrs class."""

    def __call__(self, index: Any) -> Any:
        return ()


def test_summarizers_are_found_and_changed(tmp_path: Path) -> None:
    """Summarizers in pipelines, budgets and caches are found; those without a model are not, and stay."""
    asked = Slow()
    inner = summarizing(asked)
    nested = Truncation() >> Pipeline(inner, trigger=tokens_exceed(9)) >> TokenBudgetComposed([inner], budget=5)
    assert find_summarizers(nested) == [asked, asked]
    for preset in (presets.adaptive(8_000), presets.context_window(8_000), presets.hermes(8_000), presets.token_budget(8_000)):
        assert find_summarizers(preset) == []
    held = summarizing(FirstOf(asked, FactSummarizer())), summarizing(CachedSummarizer(asked, tmp_path / "answers.sqlite"))
    assert [find_summarizers(each) for each in held] == [[asked], [asked]]
    for strategy in (nested, *held, as_strategy(lambda index: ()), Plain()):
        assert replace_summarizers(strategy, lambda same: same) is strategy
    other = Slow()
    assert find_summarizers(replace_summarizers(nested, lambda _: other)) == [other, other]
    assert replace_summarizers(presets.hermes(8_000), lambda _: other) == presets.hermes(8_000)
    cached = replace_summarizers(held[1], lambda _: other)
    assert find_summarizers(cached) == [other]
    assert "CachedSummarizer" in repr(cached)


def test_each_event_loop_limits_its_own_conversations() -> None:
    """Threads can share a rate limiter. A conversation never waits for one of another event loop, which could not wake it."""
    limiter = RateLimiter(Limits(concurrency=2))
    in_progress: list[float] = []

    class AsksAnotherThread:
        async def summarize(self, request: SummaryRequest) -> str:
            in_progress.append(limiter.capacity.borrowed_tokens)
            if len(in_progress) == 1:
                await anyio.to_thread.run_sync(compact_a_table)
            return SUMMARY

    def compact_a_table() -> None:
        table = pa.table({"messages": [json.dumps(LONG[0]["messages"])]})
        table_of(Job(summarizing(AsksAnotherThread())), table, on_error="raise", limiter=limiter)

    compact_a_table()
    assert in_progress == [1, 1]
