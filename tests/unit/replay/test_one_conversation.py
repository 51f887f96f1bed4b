"""Replay of one conversation: the baselines, the record of each call, and failures that do not stop the replay."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Replace, last, nothing, validate
from compaction.formats import openai_chat
from compaction.models import ModelPrices
from compaction.replay import Candidate, Recording
from compaction.replay.candidate_names import candidate_of, candidates_of
from compaction.replay.one_conversation import PromptCache, replay_conversation
from compaction.replay.recordings import without_unreadable
from compaction.replay.records import CacheUse, CandidateRun, ReplayedConversation, ReplaySetting, Share
from compaction.strategies import Pipeline, SlidingWindow, ToolResult, Truncation
from compaction.tokens import counter
from compaction.triggers import idle_for, messages_exceed, tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, said, system, tool_turns, turns, user

PRICES = ModelPrices(model="m", input=1.0, cached=0.1, write=1.0, output=8.0, minimum_tokens=0, block_tokens=1)


def setting(window: int = 200, **options: Any) -> ReplaySetting:
    """Return the settings of a replay that counts a token per four characters."""
    usual = {"window": window, "prices": PRICES, "counter": counter("chars/4"), "format": openai_chat}
    return ReplaySetting(**{**usual, **options})


def replayed(messages: Chat, strategy: Any, *, times: Any = (), **options: Any) -> ReplayedConversation:
    recording = without_unreadable(Recording(id="1", messages=messages, times=times), openai_chat)
    return replay_conversation(recording, [candidate_of(strategy)], setting(**options))


def run_of(messages: Chat, strategy: Any, **options: Any) -> CandidateRun:
    [run] = replayed(messages, strategy, **options).runs.values()
    return run


def views_of(messages: Chat, candidate: Candidate, **options: Any) -> list[list[Any]]:
    """Return every request that a candidate would have sent."""
    views: list[list[Any]] = []

    def watched(inner: Any) -> Callable[[list[Any]], list[Any]]:
        session = candidate.session(inner)

        def view(history: list[Any]) -> list[Any]:
            views.append(session.view(history))
            return views[-1]

        return view

    recording = Recording(id="1", messages=messages, format=openai_chat)
    replay_conversation(recording, [Candidate("watched", watched)], setting(**options))
    return views


# ---------------------------------------------------------------- baselines


def test_none_sends_everything() -> None:
    """Whatever the window, all of the history is sent, and nothing ever breaks."""
    run = run_of(turns(20, words=20), "none")
    assert [each.messages for each in run.calls] == list(range(1, 40, 2))
    assert [each.broken for each in run.calls if each.broken] == []
    assert run.calls[-1].over


@pytest.mark.parametrize("name", ["truncate", "hysteresis"])
def test_rules_of_thumb_stay_in_the_window_and_valid(name: str) -> None:
    """Both stay in the window, keep calls with their results, and keep the system message and the last user message."""
    chat = [system(), *tool_turns(30, words=20)]
    for view in views_of(chat, candidate_of(name)):
        assert validate(view) == []
        assert view[0] is chat[0]
        assert [message["content"] for message in view if message["role"] == "user"]
    assert [each.over for each in run_of(chat, name).calls if each.over] == []


def test_a_group_that_does_not_fit_is_dropped_though_it_is_the_newest() -> None:
    chat = [system(), user("short"), call("c1"), result("c1", "x" * 4_000), assistant("done")]
    assert views_of(chat, candidate_of("truncate"))[-1] == chat[:2]


def test_truncate_cuts_whenever_it_does_not_fit() -> None:
    """At the window, every new turn drops a turn at the start."""
    run = run_of(turns(40, words=20), "truncate")
    full = [each for each in run.calls if each.compacted]
    assert len(full) > 25
    assert min(each.tokens for each in full) >= 150


def test_hysteresis_cuts_to_half_and_then_appends() -> None:
    """Above four fifths it cuts to half; between two cuts each request continues the last one."""
    run = run_of(turns(40, words=20), "hysteresis")
    cuts = [number for number, each in enumerate(run.calls) if each.compacted]
    assert [run.calls[number].tokens for number in cuts if run.calls[number].tokens > 100] == []
    assert max(each.tokens for each in run.calls) <= 160
    assert min(after - before for before, after in pairwise(cuts)) > 1
    assert [number for number, each in enumerate(run.calls) if each.broken] == cuts


# ---------------------------------------------------------------- records


def test_a_break_names_the_edit_that_caused_it() -> None:
    """The cause is the strategy and its reason; the lost tokens are those of the last request from there on."""
    strategy = Truncation(trigger=tokens_exceed(150), target=tokens_below(80), keep=nothing)
    run = run_of([system(), *turns(20, words=20)], strategy)
    first = next(each for each in run.calls if each.broken)
    assert first.broken is not None
    assert (first.broken.cause, first.broken.message) == ("Truncation: the oldest go first", 1)
    before = run.calls[run.calls.index(first) - 1]
    assert first.broken.lost_tokens == before.tokens - 6 - 1  # the question that opens the view starts as the one before
    assert [action.kind for action in first.actions] == ["drop"] * len(first.actions)


def test_what_left_and_what_came_back_is_recorded() -> None:
    """A message that leaves the request is recorded once; a late result brings its call back."""
    chat = [user(), call("c1"), user("more"), assistant(), user("more"), assistant(), result("c1"), user(), assistant()]

    def drop_the_call(index: MessageIndex) -> Any:
        if len(index.included_groups) == 3:
            yield Drop([1], "to see")

    calls = run_of(chat, drop_the_call, window=1_000).calls
    assert [(each.ordinal, each.left, each.back) for each in calls if each.left or each.back] == [(3, (1,), ()), (8, (), (1,))]


def test_cost_counts_what_the_cache_reads() -> None:
    """Between breaks only what is new is written; the last request is read."""
    run = run_of(turns(3), "none")
    uses = [each.cache for each in run.calls]
    assert [use.read for use in uses] == [0, *(each.tokens for each in run.calls[:-1])]
    assert [use.read + use.written + use.fresh for use in uses] == [each.tokens for each in run.calls]


def test_recorded_times_let_the_cache_expire() -> None:
    """A pause in the log is a pause in the replay, for the cache and for the session."""
    chat = turns(3)
    run = run_of(chat, "none", times=[0.0, 1.0, 2.0, 3.0, 900.0, 901.0])
    assert [each.cache.expired for each in run.calls] == [False, False, True]
    assert run.calls[2].cache.read == 0
    strategy = SlidingWindow(trigger=idle_for(60))
    calls = run_of(turns(4), strategy, times=[0.0, 1.0, 2.0, 3.0, 500.0, 501.0, 502.0, 503.0]).calls
    assert [bool(each.actions) for each in calls] == [False, False, True, False]


def test_summaries_are_counted() -> None:
    """A summary counts the tokens it replaces and its own."""

    def summarize(index: MessageIndex) -> Any:
        groups = [group for group in index.included_groups if index.is_removable(group)]
        if len(groups) == 4:
            yield Replace(groups, [index.format.new("user", "all of it")], "summarized")

    run = run_of(turns(3, words=20), summarize)
    [action] = [action for each in run.calls for action in each.actions]
    assert (action.read_tokens, action.written_tokens) == (4 * 30, 7)
    assert (action.kind, action.ordinals, action.texts) == ("summarize", (0, 1, 2, 3), ("all of it",))


def test_a_collapsed_tool_call_is_not_a_summary() -> None:
    run = run_of(tool_turns(4), Pipeline(ToolResult(keep=last(groups=1))), window=1_000)
    actions = [action for each in run.calls for action in each.actions]
    assert {action.kind for action in actions} == {"collapse"}
    assert sum(action.read_tokens for action in actions) == 0


def test_what_is_nested_too_deeply_is_skipped() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    record = replayed([{"role": "user", "content": nested}, *turns(1)], "none")
    assert record.recording.notes == ("messages[0]: nested too deeply to be read; the message is skipped",)
    assert len(record.needs) == 1


def test_missing_facts_are_named_by_place() -> None:
    chat = [user("order A-170 and B-280"), *turns(4, words=20), user("B-280"), *turns(3), assistant("A-170, B-280")]
    record = replayed(chat, SlidingWindow(keep=last(turns=4)), window=1_000)
    [run] = record.runs.values()
    assert [fact.text for fact in record.needs[-1].facts] == ["A-170", "B-280"]
    assert [each.missing_facts for each in run.calls[-2:]] == [(), (0,)]


def test_instructions_survive_or_not() -> None:
    """After each compaction, every earlier instruction is searched for, and its compactions are counted."""
    chat = [user("Never touch prod.db."), *turns(6, words=20)]
    run = run_of(chat, Truncation(trigger=messages_exceed(4), target=~messages_exceed(4), keep=nothing))
    assert list(run.survival) == [1, 2, 3, 4]
    assert list(run.survival.values()) == [Share(0, 1)] * 3 + [Share(0, run.survival[4].needed)]


def test_what_the_user_said_is_counted_at_each_call() -> None:
    """Words and sentences count while their message is sent, or another message that contains them."""
    chat = [user("Never touch prod.db. Tidy the attic."), assistant("ok"), user("And?"), assistant("done")]

    def summarizes(index: MessageIndex) -> Any:
        if index.total.messages == 3:
            yield Replace(index.included_groups[:2], index.summary("Tidy the attic.", index.included_groups[:2], by="me"))

    record = replayed(chat, summarizes)
    [run] = record.runs.values()
    assert [each.shares["said"] for each in run.calls] == [Share(7, 7), Share(4, 8)]
    assert [each.shares["sentences"] for each in run.calls] == [Share(2, 2), Share(1, 2)]


# ---------------------------------------------------------------- what goes wrong


def test_a_strategy_that_raises_is_named_and_the_run_continues() -> None:
    """The last request is sent again with the new messages, and the later calls are replayed."""

    def fails_at_third(index: MessageIndex) -> Any:
        if index.total.messages == 5:
            raise ValueError("no")
        yield from ()

    run = run_of(turns(4), fails_at_third)
    assert run.failures == ("ValueError: no, once, at message 5",)
    assert [each.messages for each in run.calls] == [1, 3, 5, 7]


def test_a_function_that_raises_continues_with_its_last_view() -> None:
    """A plain function has no session; the new messages are added to its last request."""

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        return lambda messages: messages[-1:] if len(messages) < 4 else messages[99]

    run = run_of(turns(3), Candidate("fails", start))
    assert [each.messages for each in run.calls] == [1, 1, 3]
    assert run.failures == ("IndexError: list index out of range, once, at message 5",)


def test_a_candidate_that_cannot_start_is_named() -> None:

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        raise RuntimeError("no license")

    recording = Recording(id="1", messages=turns(2), format=openai_chat)
    runs = replay_conversation(recording, candidates_of([Candidate("x", start)]), setting()).runs
    assert (runs["x"].calls, len(runs["none"].calls)) == ((), 2)
    assert runs["x"].failures == ("RuntimeError: no license, once, at message 0",)


def test_a_request_is_bad_for_what_the_log_is_not() -> None:
    """A gap in the log is not the strategy's fault; a result without its call is."""
    chat = [user(), call("c1"), user("go on"), call("c2"), result("c2"), assistant()]
    assert [each.broken_rules for each in run_of(chat, "none").calls] == [(), (), ()]

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        return lambda messages: messages[-1:]

    calls = run_of(chat, Candidate("last", start)).calls
    assert [each.broken_rules for each in calls] == [(), (), ("result-without-call",)]
    assert [each.would_fail for each in calls] == [False, False, True]
    unreadable = Candidate("unreadable", lambda setting: lambda messages: [{"content": "?"}])
    assert [each.broken_rules for each in run_of(turns(1), unreadable).calls] == [("missing-role",)]


def test_faults_of_a_log_are_noted() -> None:
    """Broken rules, an answer without a question, an unreadable message, times that go back, and a log without a call."""
    chat = [assistant(), {"content": "?"}, user(), call("c1"), user("go on"), assistant()]
    record = replayed(chat, "none", times=[5.0, 6.0, 7.0, 6.0, 8.0, 9.0])
    assert record.recording.notes == (
        "messages[1].role: a message needs a role that is a non-empty string (got None); the message is skipped",
        "the time goes backwards at 1 messages; they get the time of the message before",
        "the log itself breaks call-without-result, 1 times",
        "it starts with an answer without a question; that call is not replayed",
    )
    assert replayed([user()], "none").recording.notes == ("it contains no call: no assistant message has a history",)


def test_a_conversation_within_the_window_has_nothing_to_compact() -> None:
    """Only the whole history decides whether a conversation exceeds the window."""
    assert [replayed(turns(count, words=20), "truncate").exceeds for count in (2, 20)] == [False, True]
    assert replayed([*turns(2), said("user", "x" * 4_000)], "none").exceeds is False  # no call has that history


# ------------------------------------------------------------------------ the model of a provider's prompt cache


def cache_of(**rules: float) -> PromptCache:
    """A cache with the given rules, OpenAI's by default."""
    return PromptCache(ModelPrices(model="m", **{"input": 1, "cached": 0.1, "write": 1, "output": 8, **rules}))  # type: ignore[arg-type]


def test_a_short_request_is_not_cached() -> None:
    """A request below the minimum length is not cached, so that the next one reads nothing from the cache."""
    cache = cache_of()
    assert cache.send(1_023, shared_tokens=0) == CacheUse(0, 0, 1_023)
    assert cache.send(2_000, shared_tokens=1_023) == CacheUse(0, 2_000, 0)


@pytest.mark.parametrize(("block", "read"), [(128, 1_920), (0, 2_000)])
def test_a_shared_prefix_is_read_in_whole_blocks(block: int, read: int) -> None:
    """The rest is written; with a block size of 0, all shared tokens are read."""
    cache = cache_of(block_tokens=block)
    cache.send(2_000, shared_tokens=0)
    assert cache.send(2_500, shared_tokens=2_000) == CacheUse(read, 2_500 - read, 0)


def test_a_prefix_expires_unless_it_is_used() -> None:
    """A cached prefix expires some seconds after its last use; without times it does not expire."""
    cache = cache_of(ttl_seconds=300.0)
    cache.send(2_000, shared_tokens=0, now=0.0)
    assert cache.send(2_100, shared_tokens=2_000, now=300.0) == CacheUse(1_920, 180, 0)
    assert cache.send(2_200, shared_tokens=2_100, now=600.0) == CacheUse(2_048, 152, 0)
    assert cache.send(2_300, shared_tokens=2_200, now=901.0) == CacheUse(0, 2_300, 0, expired=True)
    assert cache.send(2_400, shared_tokens=2_300) == CacheUse(2_176, 224, 0)
