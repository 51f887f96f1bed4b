"""One conversation under one contender: the baselines, what a call's record says, and what goes wrong without stopping it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from chats import Chat, assistant, call, result, said, system, tool_turns, turns, user

from compaction import Drop, MessageIndex, Replace, last, nothing, validate
from compaction.formats import openai_chat
from compaction.replay import Contender, ConversationRecord, ModelPrices, Recording, Run, contender_of
from compaction.replay.names import contenders_of
from compaction.replay.playing import ReplaySetting, play
from compaction.strategies import Pipeline, SlidingWindow, ToolResult, Truncation
from compaction.tokens import counter
from compaction.triggers import idle_for, messages_exceed, tokens_below, tokens_exceed

PRICES = ModelPrices(model="m", input=1.0, cached=0.1, write=1.0, output=8.0, minimum_tokens=0, block_tokens=1)


def setting(window: int = 200, **options: Any) -> ReplaySetting:
    """What holds for a replay at a token for four characters."""
    return ReplaySetting(
        **{"window": window, "prices": PRICES, "counter": counter("chars/4"), "format": openai_chat, **options}
    )


def played(messages: Chat, strategy: Any, *, times: Any = (), **options: Any) -> ConversationRecord:
    """The conversation under one contender."""
    recording = Recording(id="1", messages=messages, times=times)
    return play(recording, [contender_of(strategy)], setting(**options))


def run_of(messages: Chat, strategy: Any, **options: Any) -> Run:
    """How that contender did."""
    [run] = played(messages, strategy, **options).runs.values()
    return run


def views_of(messages: Chat, contender: Contender, **options: Any) -> list[list[Any]]:
    """Every request that a contender would have sent."""
    views: list[list[Any]] = []

    def watched(inner: Any) -> Callable[[list[Any]], list[Any]]:
        player = contender.start(inner)

        def view(history: list[Any]) -> list[Any]:
            views.append(player.view(history))
            return views[-1]

        return view

    play(Recording(id="1", messages=messages), [Contender.of_function("watched", watched)], setting(**options))
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
    """Neither sends more than the window or parts a call from its result, and both keep the system and last user message."""
    chat = [system(), *tool_turns(30, words=20)]
    for view in views_of(chat, contender_of(name)):
        assert validate(view) == []
        assert view[0] is chat[0]
        assert [message["content"] for message in view if message["role"] == "user"]
    assert [each.over for each in run_of(chat, name).calls if each.over] == []


def test_a_group_that_does_not_fit_is_dropped_though_it_is_the_newest() -> None:
    """As many of the newest groups as fit may be none."""
    chat = [system(), user("short"), call("c1"), result("c1", "x" * 4_000), assistant("done")]
    assert views_of(chat, contender_of("truncate"))[-1] == chat[:2]


def test_truncate_cuts_whenever_it_does_not_fit() -> None:
    """At the window, every turn more is a turn less at the start."""
    run = run_of(turns(40, words=20), "truncate")
    full = [each for each in run.calls if each.compacted]
    assert len(full) > 25
    assert min(each.tokens for each in full) > 150


def test_hysteresis_cuts_to_half_and_then_appends() -> None:
    """Past four fifths it cuts to one half; between two cuts nothing departs from the last request."""
    run = run_of(turns(40, words=20), "hysteresis")
    cuts = [number for number, each in enumerate(run.calls) if each.compacted]
    assert [run.calls[number].tokens for number in cuts if run.calls[number].tokens > 100] == []
    assert max(each.tokens for each in run.calls) <= 160
    assert min(after - before for before, after in pairwise(cuts)) > 1
    assert [number for number, each in enumerate(run.calls) if each.broken] == cuts


# ---------------------------------------------------------------- records


def test_a_break_names_the_edit_that_caused_it() -> None:
    """The cause is the strategy and its reason; lost is what the last request had from there on."""
    strategy = Truncation(trigger=tokens_exceed(150), target=tokens_below(80), keep=nothing)
    run = run_of([system(), *turns(20, words=20)], strategy)
    first = next(each for each in run.calls if each.broken)
    assert first.broken is not None
    assert (first.broken.cause, first.broken.message) == ("Truncation: the oldest go first", 1)
    before = run.calls[run.calls.index(first) - 1]
    assert first.broken.lost_tokens == before.tokens - 6
    assert [deed.kind for deed in first.deeds] == ["drop"] * len(first.deeds)


def test_what_left_and_what_came_back_is_recorded() -> None:
    """Recorded messages that go out of view are named once, when they go; a late result brings its call back."""
    chat = [user(), call("c1"), user("more"), assistant(), user("more"), assistant(), result("c1"), user(), assistant()]

    def drop_the_call(index: MessageIndex) -> Any:
        if len(index.included_groups) == 3:
            yield Drop([1], "to see")

    calls = run_of(chat, drop_the_call, window=1_000).calls
    assert [(each.ordinal, each.left, each.back) for each in calls if each.left or each.back] == [(3, (1,), ()), (8, (), (1,))]


def test_cost_counts_what_the_cache_reads() -> None:
    """Between breaks only what is new is written; the last request is read."""
    run = run_of(turns(3), "none")
    assert [each.read for each in run.calls] == [0, *(each.tokens for each in run.calls[:-1])]
    assert [each.read + each.written + each.fresh for each in run.calls] == [each.tokens for each in run.calls]


def test_recorded_times_let_the_cache_expire() -> None:
    """Where the log has times, a request long after the last finds nothing."""
    chat = turns(3)
    run = run_of(chat, "none", times=[0.0, 1.0, 2.0, 3.0, 900.0, 901.0])
    assert [each.expired for each in run.calls] == [False, False, True]
    assert run.calls[2].read == 0


def test_a_strategy_sees_recorded_times() -> None:
    """The session's clock is the log's, so that a rest in the log is a rest in the replay."""
    strategy = SlidingWindow(trigger=idle_for(60))
    calls = run_of(turns(4), strategy, times=[0.0, 1.0, 2.0, 3.0, 500.0, 501.0, 502.0, 503.0]).calls
    assert [bool(each.deeds) for each in calls] == [False, False, True, False]


def test_summaries_are_counted() -> None:
    """Of a summary: the tokens it stands for, and its own."""

    def summarize(index: MessageIndex) -> Any:
        groups = [group for group in index.included_groups if index.is_removable(group)]
        if len(groups) == 4:
            yield Replace(groups, [index.format.new("user", "all of it")], "summarized")

    run = run_of(turns(3, words=20), summarize)
    [call_with_it] = [each for each in run.calls if each.summary_written]
    assert (call_with_it.summary_read, call_with_it.summary_written) == (4 * 30, 7)
    [deed] = call_with_it.deeds
    assert (deed.kind, deed.ordinals, deed.texts) == ("summarize", (0, 1, 2, 3), ("all of it",))


def test_a_collapsed_tool_call_is_no_summary() -> None:
    """It is told as what it is, and nobody is charged for it."""
    run = run_of(tool_turns(4), Pipeline(ToolResult(keep=last(groups=1))), window=1_000)
    deeds = [deed for each in run.calls for deed in each.deeds]
    assert {deed.kind for deed in deeds} == {"collapse"}
    assert sum(each.summary_read for each in run.calls) == 0


def test_what_is_nested_too_deeply_is_left_out() -> None:
    """A hostile message is named, and the rest is played."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    record = played([{"role": "user", "content": nested}, *turns(1)], "none")
    assert record.recording.notes == ("messages[0]: it is nested too deeply to be read; it is left out",)
    assert len(record.needs) == 1


def test_missing_facts_are_named_by_place() -> None:
    """A fact that cannot be read in the request is missing at the call that needs it, and only there."""
    chat = [user("order A-170 and B-280"), *turns(4, words=20), user("B-280"), *turns(3), assistant("A-170, B-280")]
    record = played(chat, SlidingWindow(keep=last(turns=4)), window=1_000)
    [run] = record.runs.values()
    assert [fact.text for fact in record.needs[-1].facts] == ["A-170", "B-280"]
    assert [each.missing_facts for each in run.calls[-2:]] == [(), (0,)]


def test_instructions_survive_or_not() -> None:
    """After each compaction, every instruction stated before is looked for; their compactions are counted."""
    chat = [user("Never touch prod.db."), *turns(6, words=20)]
    run = run_of(chat, Truncation(trigger=messages_exceed(4), target=~messages_exceed(4), keep=nothing))
    assert run.survival[0].compactions == 1
    assert [(each.stated, each.standing) for each in run.survival] == [(1, 0)] * 3 + [(run.survival[3].stated, 0)]


# ---------------------------------------------------------------- what goes wrong


def test_a_strategy_that_raises_is_named_and_the_run_goes_on() -> None:
    """What it had sent so far is sent with what came since, and the calls after are played."""

    def fails_at_third(index: MessageIndex) -> Any:
        if index.total.messages == 5:
            raise ValueError("no")
        yield from ()

    run = run_of(turns(4), fails_at_third)
    assert run.failures == ("ValueError: no, 1 times, first at message 5",)
    assert [each.messages for each in run.calls] == [1, 3, 5, 7]


def test_a_function_that_raises_goes_on_with_its_last_view() -> None:
    """A plain function has no session; its last request grows by what came since."""

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        return lambda messages: messages[-1:] if len(messages) < 4 else messages[99]

    run = run_of(turns(3), Contender.of_function("fails", start))
    assert [each.messages for each in run.calls] == [1, 1, 3]
    assert run.failures == ("IndexError: list index out of range, 1 times, first at message 5",)


def test_a_contender_that_cannot_start_is_named() -> None:
    """It plays no call; the others do."""

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        raise RuntimeError("no license")

    record = play(Recording(id="1", messages=turns(2)), contenders_of([Contender.of_function("x", start)]), setting())
    assert (record.runs["x"].calls, record.runs["x"].failures) == (
        (),
        ("RuntimeError: no license, 1 times, first at message 0",),
    )
    assert len(record.runs["none"].calls) == 2


def test_a_request_is_bad_for_what_the_log_is_not() -> None:
    """A hole in the log is no strategy's fault; a result without its call is."""
    chat = [user(), call("c1"), user("go on"), call("c2"), result("c2"), assistant()]
    assert [each.broken_rules for each in run_of(chat, "none").calls] == [(), (), ()]

    def start(_: Any) -> Callable[[list[Any]], list[Any]]:
        return lambda messages: messages[-1:]

    calls = run_of(chat, Contender.of_function("last", start)).calls
    assert [each.broken_rules for each in calls] == [(), (), ("result-without-call",)]
    assert [each.would_fail for each in calls] == [False, False, True]


def test_faults_of_a_log_are_noted() -> None:
    """Each rule that the log itself breaks, an answer without a question, a message nobody can read, a clock that goes back."""
    chat = [assistant(), {"content": "?"}, user(), call("c1"), user("go on"), assistant()]
    record = played(chat, "none", times=[5.0, 6.0, 7.0, 6.0, 8.0, 9.0])
    assert record.recording.notes == (
        "messages[1].role: a message needs a role that is a non-empty string (got None); it is left out",
        "the clock goes backwards at 1 messages; they count as written when the one before was",
        "the log itself breaks call-without-result, 1 times",
        "it starts with an answer; the question is not in the log, and that call is not played",
    )


def test_a_log_without_a_call_is_noted() -> None:
    """There is nothing to replay in it."""
    assert played([user()], "none").recording.notes == ("it holds no call: no assistant message with a history before it",)


def test_a_conversation_within_the_window_has_nothing_to_compact() -> None:
    """It is told apart by its whole history, whatever a strategy did to it."""
    assert [played(turns(count, words=20), "truncate").exceeds for count in (2, 20)] == [False, True]
    assert played([*turns(2), said("user", "x" * 4_000)], "none").exceeds is False  # no call has that history
