"""Events, vetoes, the loop guard, length errors and reported usage of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compaction import BudgetUnsatisfiable, MessageIndex, last
from compaction.errors import ConfigurationError
from compaction.index import Drop
from compaction.presets import adaptive
from compaction.session import (
    CacheBroken,
    Compacted,
    Compacting,
    CompactionSession,
    ContextUsed,
    Event,
    HostChanged,
    LittleSaved,
    NearLimit,
    Overflowed,
    Veto,
)
from compaction.stores import SessionStore
from compaction.strategies import LastResort, Pipeline, Strategy, Summarization, TokenBudgetComposed, Truncation
from compaction.triggers import always, never, tokens_below, tokens_exceed
from tests.support.chats import Chat, turns
from tests.support.scripted import Scripted


class TooLong(Exception):
    """A provider's answer 400."""

    status_code = 400


def too_long(tokens: int, window: int) -> TooLong:
    said = f"maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return TooLong(f"This model's {said} Please reduce the length of the messages.")


def talk(count: int) -> Chat:
    """Questions and answers of about 40 tokens each."""
    return turns(count, words=32)


def cutting(**options: Any) -> CompactionSession:
    """A session that cuts from 1,000 to 500 tokens."""
    cut = Truncation(trigger=tokens_exceed(1_000), target=tokens_below(500), keep=last(groups=1))
    return CompactionSession(cut, counter="chars/4", clock=None, **options)


def test_a_compaction_is_told_before_and_after() -> None:
    """`Compacting` lists the edits; `Compacted` holds the result."""
    told: list[Event] = []
    session = cutting(on_event=told.append, id="a")
    session.view_sync(talk(6))
    session.view_sync(talk(14))
    used, compacting, compacted, _ = told
    assert isinstance(used, ContextUsed)
    assert isinstance(compacting, Compacting)
    assert isinstance(compacted, Compacted)
    assert compacting.edits == compacted.result.edits
    assert compacting.after.tokens < compacting.before.tokens
    assert compacted.session == "a"


def test_each_view_tells_how_full_the_window_is() -> None:
    """`ContextUsed` has the tokens of each view, its share of the window, and what made the view change."""
    told: list[Event] = []
    session = cutting(on_event=told.append, window=2_000)
    sizes = []
    for count in (0, 6, 14):
        session.view_sync(talk(count))
        sizes.append(session.status().tokens)
    empty, first, second = [event for event in told if isinstance(event, ContextUsed)]
    assert [empty.tokens, first.tokens, second.tokens] == sizes
    assert empty.tokens == 0
    assert (first.window, first.share, first.triggered) == (2_000, sizes[1] / 2_000, ())
    assert second.triggered == ("Truncation: tokens 1,260 > 1,000",)
    assert ContextUsed(session="a", tokens=9, window=None).share is None


def test_the_broken_tokens_are_those_sent_again() -> None:
    """Messages that stay behind a changed beginning are billed again."""
    told: list[Event] = []
    session = cutting(on_event=told.append)
    before = session.view_sync(talk(10))
    view = session.view_sync([*before, *talk(14)[20:]])
    (broken,) = [event for event in told if isinstance(event, CacheBroken)]
    again = [message for message in view if any(message is old for old in before)]
    measure = session.index.measure
    assert broken.why == "compaction"
    assert broken.tokens == sum(measure(session.index.format.read(message))[0] for message in again) > 0


def test_a_cache_that_forgetting_breaks() -> None:
    """One event gives the cause, and the next call does not repeat it. Before the first view, nothing is reported."""
    told: list[Event] = []
    session, chat = cutting(on_event=told.append, window=100), talk(3)
    session.follow(chat)
    session.forget_sync(chat[:1])
    assert told == []
    session.view_sync(chat[1:])
    session.forget_sync(chat[2:3])
    session.view_sync(session.index.messages())
    assert [event.why for event in told if isinstance(event, CacheBroken)] == ["forget"]
    session.view_sync([*chat[4:5], *chat[3:4]])
    assert [event.why for event in told if isinstance(event, CacheBroken)] == ["forget", "the host"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_result_after_a_veto_describes_the_view_that_is_sent(fails: bool) -> None:
    """A failed summarizer is mentioned, and makes the outcome ``degraded``; no other note says why nothing changed."""

    def watch(event: Event) -> None:
        if isinstance(event, Compacting):
            raise Veto("not now")

    summarize = Summarization(Scripted(RuntimeError("down") if fails else "Short."), trigger=tokens_exceed(500))
    strategy = summarize >> Truncation(trigger=always, target=tokens_below(400), keep=last(groups=1))
    session = CompactionSession(strategy, counter="chars/4", clock=None, on_event=watch)
    result = session.compact_sync(talk(14))
    assert result is session.last_result
    assert (result.outcome, len(result.failures)) == (("degraded", 1) if fails else ("unchanged", 0))
    assert result.notes == ("vetoed: not now",)


def test_a_veto_does_not_hide_that_a_target_is_missed() -> None:
    """The list that is sent is larger than the one that missed it. The note about its changed beginning is left out."""

    def watch(event: Event) -> None:
        if isinstance(event, Compacting):
            raise Veto("not now")

    cut = Truncation(trigger=always, target=tokens_below(10), keep=last(groups=1))
    session = CompactionSession(cut, counter="chars/4", clock=None, on_event=watch)
    result = session.compact_sync(talk(14))
    assert (result.outcome, result.messages) == ("over_target", talk(14))
    vetoed, missed = result.notes
    assert vetoed == "vetoed: not now"
    assert missed.startswith("even with the vetoed edits, Truncation missed its target tokens_below(10)")


def test_another_exception_stops_nothing() -> None:
    def watch(event: Event) -> None:
        kind = type(event).__name__
        if len(told) < 3:
            told.append(kind)
            raise (RuntimeError if isinstance(event, Compacting) else Veto)(kind)

    told: list[str] = []
    session = cutting(on_event=watch)
    assert len(session.view_sync(talk(14))) < 28
    failures = session.status().failures
    assert session.status().outcome == "degraded"
    assert [failure.split("'")[1] for failure in failures] == told == ["Compacting", "Compacted", "ContextUsed"]
    session.view_sync(talk(14))
    assert session.status().failures == ()


@pytest.mark.parametrize("kind", [Compacted, ContextUsed])
def test_an_interrupted_compaction_is_as_if_it_had_not_begun(kind: type[Event]) -> None:
    """After Ctrl-C in the function, the saved state, the next call and its events are those without the edits."""
    interruptions, told = list[BaseException](), list[Event]()

    def watch(event: Event) -> None:
        told.append(event)
        if isinstance(event, kind) and interruptions:
            told.clear()
            raise interruptions.pop()

    whole, session = cutting(), cutting(on_event=watch)
    for each in (whole, session):
        each.view_sync(talk(10))
    before = session.to_dict()
    interruptions.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        session.view_sync(talk(12))
    assert session.to_dict()["index"]["journal"] == before["index"]["journal"] == []
    assert session.view_sync(talk(12)) == whole.view_sync(talk(12))
    assert session.to_dict() == whole.to_dict()
    assert [type(event) for event in told] == [Compacting, Compacted, CacheBroken, ContextUsed]


@pytest.mark.parametrize(("more", "told_near"), [(0, 2), (1, 0)])
def test_near_is_nine_tenths_of_the_window(more: int, told_near: int) -> None:
    """`NearLimit` is reported once from exactly nine tenths of the window on, and not in a window of one token more."""
    sizes = {count: MessageIndex(talk(count), counter="chars/4").included.tokens for count in range(2, 30)}
    near = next(count for count, tokens in sizes.items() if tokens % 9 == 0)
    told: list[Event] = []
    window = sizes[near] // 9 * 10 + more
    session = CompactionSession(Truncation(trigger=never), counter="chars/4", window=window, on_event=told.append)
    for count in (near, near, 1, near):
        session.view_sync(talk(count))
    found = [(event.tokens, event.window) for event in told if isinstance(event, NearLimit)]
    assert found == [(sizes[near], window)] * told_near


def test_a_host_that_changes_its_list_is_told() -> None:
    """`HostChanged` lists the changes; changes of a message in place are detected only if that is asked for."""
    told: list[Event] = []
    session = cutting(on_event=told.append)
    session.view_sync(talk(3))
    session.view_sync(talk(3)[:-2])
    changed = told[1]
    assert isinstance(changed, HostChanged)
    assert changed.changes.rewound == (4, 5)
    for options in ({}, {"verify": True}):
        session, chat = cutting(on_event=told.append, **options), talk(3)
        session.view_sync(chat)
        chat[0]["content"] = "Something else."
        told.clear()
        session.view_sync(chat)
        assert [type(event) for event in told] == [*([HostChanged] if options else []), ContextUsed]


class TestUselessRuns:
    """Two runs in a row that save less than a twentieth each."""

    def session(self, told: list[Event], **options: Any) -> CompactionSession:
        """A session whose strategy drops one small group on every call."""

        def nibble(index: Any) -> Any:
            free = index.removable_ids()
            if free:
                yield Drop([free[0]], "the oldest")

        return CompactionSession(nibble, counter="chars/4", clock=None, on_event=told.append, **options)

    def test_the_strategy_pauses(self) -> None:
        """The strategy pauses until a tenth of the request is new; one event is reported."""
        told: list[Event] = []
        session = self.session(told)
        sizes = [len(session.view_sync(talk(40 + turn))) for turn in range(6)]
        (little,) = [event for event in told if isinstance(event, LittleSaved)]
        assert little.saved_tokens > 0
        assert [sizes[turn + 1] - sizes[turn] for turn in range(5)] == [1, 2, 2, 2, 2]

    @pytest.mark.parametrize("how", ["compact", "overflowed", "reconfigure", "forget"])
    def test_it_ends_early(self, how: str) -> None:
        """The strategy runs again at once when it is asked to, for another model, and for another conversation."""
        told: list[Event] = []
        session, chat = self.session(told), talk(40)
        while not any(isinstance(event, LittleSaved) for event in told):
            session.view_sync(chat)
        assert session.view_sync(chat) == session.view_sync(chat)
        if how == "compact":
            assert session.compact_sync().edits
        elif how == "overflowed":
            session.overflowed_sync(too_long(session.index.tokens, session.index.tokens - 1))
        elif how == "forget":
            assert session.forget_sync(chat[-1:]) == 1
            del chat[-1]
        else:
            session.reconfigure(session._strategy)
        before = session.index.edit_count
        session.view_sync(chat)
        assert session.index.edit_count == before + 1

    def test_the_overhead_counts(self) -> None:
        """A run that saves a twentieth of the messages saves less of a request that has much besides."""
        told: list[Event] = []
        session = self.session(told, overhead_tokens=2_000)
        for _ in range(2):
            session.view_sync(talk(5))
        (little,) = [event for event in told if isinstance(event, LittleSaved)]
        assert little.saved_tokens > 0
        assert little.until_tokens == session.index.tokens + (session.index.tokens + little.saved_tokens // 2) // 10

    @pytest.mark.parametrize("strategy", [TokenBudgetComposed([], budget=4_000), Pipeline(LastResort(tokens=4_000))])
    def test_past_the_limit_of_the_strategy_it_does_not(self, strategy: Strategy) -> None:
        """A session without a window takes the strategy's limit for it."""
        told: list[Event] = []
        session = CompactionSession(strategy, counter="chars/4", on_event=told.append)
        for count in range(40, 80):
            session.view_sync(talk(count))
            assert session.index.tokens <= 4_000
        assert {event.until_tokens for event in told if isinstance(event, LittleSaved)} == {4_001}

    def test_past_the_window_it_does_not(self) -> None:
        """Every step is tried while the request does not fit, even by one token."""
        told: list[Event] = []
        session = self.session(told, window=100)
        sizes = [len(session.view_sync(talk(40 + turn))) for turn in range(5)]
        assert [sizes[turn + 1] - sizes[turn] for turn in range(4)] == [1, 1, 1, 1]
        for less, edits in ((0, 0), (1, 1)):
            before = session.index.edit_count
            session.use_window(session.index.tokens - less)
            session.view_sync(talk(44))
            assert session.index.edit_count == before + edits


class TestOverflowed:
    """A provider refuses a view because it is too long."""

    def test_the_view_is_shortened_to_the_learned_window(self) -> None:
        """If the provider counts twice as many tokens as we do, its count decides."""
        told: list[Event] = []
        session = CompactionSession(Truncation(trigger=never), counter="chars/4", on_event=told.append)
        session.view_sync(talk(20))
        counted = session.index.included.tokens
        view = session.overflowed_sync(too_long(2 * counted, counted))
        assert len(view) < 40
        assert session.index.included.tokens * 2 <= counted
        overflowed = told[1]
        assert isinstance(overflowed, Overflowed)
        assert (overflowed.tokens, overflowed.window) == (2 * counted, counted)
        assert session.status().window == counted // 2

    def test_another_error_is_raised_as_it_is(self) -> None:
        error = TooLong("Invalid value for messages[3].role")
        session = cutting()
        session.view_sync(talk(3))
        with pytest.raises(TooLong) as raised:
            session.overflowed_sync(error)
        assert raised.value is error

    def test_if_nothing_may_go_the_error_says_what_takes_up_the_space(self, tmp_path: Path) -> None:
        """The newest message alone is too large, and may not be shortened. The window is saved nevertheless."""
        store = SessionStore(tmp_path / "sessions.db")
        session = CompactionSession(Truncation(trigger=never), counter="chars/4", pin=lambda message: True, store=store)
        session.view_sync([{"role": "user", "content": "word " * 4_000}])
        with pytest.raises(BudgetUnsatisfiable, match="group 0 \\(user\\)"):
            session.overflowed_sync(too_long(5_000, 1_000))
        assert CompactionSession(Truncation(trigger=never), store=store).status().window == 1_000

    def test_a_view_that_fills_the_window_fits(self) -> None:
        """The rest has exactly as many tokens as the error allows."""
        chat = [*talk(1), {"role": "user", "content": "word " * 400}]
        session = CompactionSession(Truncation(trigger=never), counter="chars/4", pin=lambda message: message.raw is chat[-1])
        session.view_sync(chat)
        window = session.index.included_groups[-1].tokens
        assert session.overflowed_sync(too_long(session.index.tokens, window)) == chat[-1:]
        assert session.index.tokens == window

    def test_it_is_saved_and_dropped_by_reconfigure(self) -> None:
        session = CompactionSession(Truncation(trigger=never), counter="chars/4")
        session.view_sync(talk(20))
        session.overflowed_sync(too_long(1_700, 1_000))
        again = CompactionSession.from_dict(session.to_dict(), Truncation(trigger=never), counter="chars/4")
        assert again.status().window == 1_000
        again.reconfigure(Truncation(trigger=always))
        assert again.status().window is None


def test_after_a_refusal_it_is_as_if_the_most_that_fits_had_been_configured() -> None:
    """A provider that counts twice as many tokens and reports no usage has half the window, also after a restart."""

    def cuts(session: CompactionSession) -> int:
        before = session.status().compactions
        for count in range(41, 120):
            session.view_sync(talk(count))
        return session.status().compactions - before

    strategy = adaptive(6_000)
    refused = CompactionSession(strategy, counter="chars/4", window=6_000)
    refused.view_sync(talk(40))
    refused.overflowed_sync(too_long(2 * refused.index.included.tokens, 6_000))
    again = CompactionSession.from_dict(refused.to_dict(), strategy, counter="chars/4", window=6_000)
    assert again.status().window == refused.status().window == 3_000
    assert cuts(again) <= cuts(CompactionSession(adaptive(3_000), counter="chars/4", window=3_000)) + 2


def test_a_window_that_becomes_known_keeps_what_was_learned() -> None:
    """Only another model's window makes the provider's figures worthless."""
    session = CompactionSession(Truncation(trigger=never), counter="chars/4")
    session.view_sync(talk(20))
    session.overflowed_sync(too_long(1_700, 1_000))
    for _ in range(2):
        session.use_window(8_000)
        assert session.status().window == 1_000
    with pytest.raises(ConfigurationError, match="'window' must be a whole number >= 1"):
        session.use_window("8k")  # type: ignore[arg-type]
    assert session.status().window == 1_000
    session.use_window(4_000)
    assert session.status().window == session.index.context.window == 4_000


class TestReportedUsage:
    """Usage is anchored to the view that was sent."""

    def test_only_what_came_since_the_last_view_is_new(self) -> None:
        session = cutting()
        session.follow(talk(2))
        assert session.new_messages == []
        session.view_sync(talk(2))
        session.follow(talk(3))
        assert session.new_messages == talk(3)[4:]

    def test_a_late_report_is_ignored(self) -> None:
        session = cutting()
        first = session.view_sync(talk(2))
        second = session.view_sync(talk(3))
        session.record_usage({"prompt_tokens": 5_000, "completion_tokens": 1}, view=first)
        assert session.index.context.overhead_tokens == 0
        session.record_usage({"prompt_tokens": 5_000, "completion_tokens": 1}, view=list(second))
        assert session.index.tokens == 5_000
