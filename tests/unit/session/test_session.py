"""A session over many calls: edits stay applied, the beginning stays the same, and a killed process can resume."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction import BudgetUnsatisfiable, Edit, GroupKind, MessageIndex, last, presets
from compaction.errors import ConfigurationError, SummaryFailed, SyncDriverError
from compaction.index import Metrics, Replace
from compaction.session import CompactionSession, Event, Overflowed, StepFailed
from compaction.stores import SessionStore
from compaction.strategies import Clear, Summarization, ToolResult, Truncation
from compaction.summarizers import SummaryBudget
from compaction.tokens import Usage
from compaction.triggers import context_exceeds, idle_for, tokens_below, tokens_exceed
from tests.support.chats import Chat, system, tool_turns, user
from tests.support.scripted import Awaited, Scripted


def chat(turns: int) -> Chat:
    """Questions, tool calls, their results and answers: about 220 tokens a turn."""
    return [system("You keep a store."), *tool_turns(turns, words=160)]


def cut() -> Truncation:
    return Truncation(trigger=tokens_exceed(1_500), target=tokens_below(800), keep=last(groups=2))


def summarizing(scripted: Scripted) -> Summarization:
    budget = SummaryBudget(floor=50, ceiling=60)
    return Summarization(scripted, trigger=tokens_exceed(1_500), target=tokens_below(800), keep=last(messages=4), budget=budget)


def session(strategy: Any = None, **options: Any) -> CompactionSession:
    return CompactionSession(cut() if strategy is None else strategy, counter="chars/4", clock=lambda: 0.0, **options)


def test_a_session_knows_whether_it_decided_anything() -> None:
    """Neither at first nor after calls that change nothing; after a compaction, a failure, and in a resumed session."""
    watched = session()
    assert watched.status().tokens == 0
    assert (watched.to_dict()["version"], watched.revision) == (1, "default:0")
    assert watched.provider_reports == {"anchor": None, "learned": [None, 0]}
    watched.view_sync(chat(2))
    assert not watched.has_decided
    watched.view_sync(chat(9))
    assert watched.has_decided
    assert watched.index.marks is not None
    assert watched.index.marks.until == len(chat(2))  # of the first list; later messages cannot say that they are summaries
    resumed = CompactionSession.from_dict(watched.to_dict(), cut(), counter="chars/4")
    assert resumed.has_decided  # even before the first list
    resumed.follow(chat(9))
    assert resumed.has_decided
    failed = session(summarizing(Scripted(SummaryFailed("no"))))
    failed.view_sync(chat(9))
    assert (failed.has_decided, failed.index.edit_count) == (True, 0)
    resumed = CompactionSession.from_dict(failed.to_dict(), cut(), counter="chars/4")
    resumed.follow(chat(9))
    assert resumed.has_decided
    assert not CompactionSession.from_dict(session().to_dict(), cut(), id="another").has_decided


def test_a_revision_depends_on_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption in the middle of a `repr`, attrs may write ``...`` for another object at the same address."""
    revisions = list[str]()
    for shown in ("whole", "..."):
        monkeypatch.setattr(Metrics, "__repr__", lambda _, shown=shown: shown)
        running = session()
        running.view_sync(chat(20))
        revisions.append(running.revision)
    assert revisions[0] == revisions[1] != "default:0"


def test_reported_usage_anchors_the_count() -> None:
    """After a usage report, tokens outside the messages count, so the trigger fires earlier."""
    source, watched = chat(4), session()
    watched.view_sync(source)
    counted = watched.status().tokens
    watched.record_usage(Usage(counted + 700, 10))
    assert watched.status().tokens == counted + 700
    watched.view_sync(source)
    assert watched.status().compactions == 1


@pytest.mark.parametrize("ratio", [0.5, 0.8])
@pytest.mark.parametrize(("overhead", "turns"), [(0, (2, 10)), (500, (10,))], ids=["reported", "named"])
def test_the_count_is_not_too_low_after_a_large_cut(ratio: float, overhead: int, turns: tuple[int, ...]) -> None:
    """If a provider counts less than we do, a request after a cut is not counted with the offset of a long one."""
    strategy = Truncation(trigger=tokens_exceed(4_000), target=tokens_below(1_500), keep=last(groups=2))
    session = CompactionSession(strategy, counter="chars/4", overhead_tokens=overhead)
    for each in turns:
        session.view_sync(chat(each))
        session.record_usage({"prompt_tokens": 500 + int(ratio * session.index.included.tokens), "completion_tokens": 1})
    session.view_sync(chat(22))
    assert session.status().compactions == 1
    assert session.status().tokens == pytest.approx(500 + ratio * session.index.included.tokens, rel=0.02)


async def test_every_call_may_await_the_summarizer() -> None:
    """So may those after a length error and in a lock that is held. A call that must not is refused and changes nothing."""
    watched = session(summarizing(Awaited("Round.")))
    with pytest.raises(SyncDriverError):
        watched.view_sync(chat(9))
    assert watched.last_result is None
    await watched.view(chat(5))
    error = ValueError("prompt is too long: 1100 tokens > 1000 maximum")
    assert "Round." in (await watched.overflowed(error))[1]["content"]
    async with watched.lock.task:
        watched.follow(chat(20))
        assert "Round." in (await watched.compact_due()).messages[1]["content"]
    watched = session(summarizing(Awaited("Round.")))
    await watched.view(chat(5))
    async with watched.lock.task:
        assert "Round." in (await watched.compact_refused(error))[1]["content"]
        watched.follow(chat(20))
        assert "Round." in (await watched.compact_now()).messages[1]["content"]


async def test_compacting_on_demand_takes_a_focus_and_needs_no_trigger() -> None:
    """A forced run ignores the triggers of summaries and tool results, not those of cuts. It may await the summarizer."""
    scripted = Awaited("About boxes.")
    watched = session(summarizing(scripted) >> cut())
    await watched.view(chat(5))
    assert scripted.requests == []
    result = await watched.compact(focus="boxes")
    assert (scripted.requests[0].focus, result.outcome) == ("boxes", "compacted")
    assert result.messages[-4:] == chat(5)[-4:]


def test_a_preset_compacts_a_small_conversation_on_demand_or_says_why_not() -> None:
    """`adaptive` cuts to half, with the focus for its summarizer; `context_window` has nothing to collapse, and says so."""
    scripted = Scripted("About boxes.")
    for preset in (presets.adaptive(32_000), presets.adaptive(32_000, scripted), presets.token_budget(32_000)):
        watched = CompactionSession(preset, counter="chars/4")
        assert watched.view_sync(chat(9)) == chat(9)
        result = watched.compact_sync(focus="boxes")
        assert (result.outcome, result.messages[-1]) == ("compacted", chat(9)[-1])
        assert result.after.tokens <= result.before.tokens // 2
        assert watched.view_sync(chat(9)) == result.messages
    assert [request.focus for request in scripted.requests] == ["boxes"]
    watched = CompactionSession(presets.context_window(32_000), counter="chars/4")
    result = watched.compact_sync(chat(4))  # four calls, which are kept
    assert (result.outcome, result.messages) == ("unchanged", chat(4))
    assert re.match(r"nothing was compacted; .*: Truncation \(tokens [\d,]+ <= 16,000 and .*\), Excerpt ", result.notes[0])
    assert watched.last_result == result
    watched = CompactionSession(ToolResult(keep=last(groups=9)), counter="chars/4")
    [note] = watched.compact_sync(chat(2)).notes
    assert note == "nothing was compacted; no part of the strategy found anything that it may remove or shorten"


def test_status_tells_where_the_session_stands() -> None:
    """Sizes, window, runs and failures, for a host to show. A failure is an event, too."""
    told: list[Event] = []
    watched = session(summarizing(Scripted(SummaryFailed("no"))), window=4_000, on_event=told.append)
    watched.view_sync(chat(9))
    status = watched.status()
    assert (status.window, status.compactions, status.outcome) == (4_000, 0, "over_target")
    assert status.included == status.total
    assert repr(watched) == f"<CompactionSession 'default': messages 37, tokens {status.tokens:,}, compactions 0>"
    assert "SummaryFailed" in status.failures[0]
    assert [str(event.failure) for event in told if isinstance(event, StepFailed)] == list(status.failures)


def test_the_window_and_the_clock_reach_the_triggers() -> None:
    now = [0.0]
    strategy = ToolResult(Clear(), trigger=context_exceeds(0.5) | idle_for(600), keep=last(groups=1))
    watched = CompactionSession(strategy, counter="chars/4", window=10_000, clock=lambda: now[0])
    watched.view_sync(chat(3))
    assert watched.status().compactions == 0
    now[0] = 700.0
    watched.view_sync(chat(4))
    assert watched.status().compactions == 1


def test_another_strategy_and_window_go_on_from_there() -> None:
    """`reconfigure` keeps earlier edits; later calls use the new strategy and window; wrong values change nothing."""
    session = CompactionSession(cut(), counter="chars/4", window=1_000)
    view = session.view_sync(chat(9))
    session.reconfigure(Truncation(trigger=context_exceeds(0.5), keep=last(groups=1)), window=100_000)
    assert session.status().tokens == session.index.included.tokens
    assert session.index.context.window == 100_000
    assert session.view_sync(chat(9)) == view
    with pytest.raises(ConfigurationError):
        session.reconfigure(cut(), window=0)
    assert session.status().window == 100_000
    session.reconfigure(Truncation(trigger=context_exceeds(0.5), keep=last(groups=1)), window=400)
    assert len(session.view_sync(chat(9))) < len(view)


def test_the_first_list_is_read_by_the_rules_of_the_strategy_that_runs() -> None:
    """A strategy set before the first list recognizes the summaries that this list has."""
    view = session(summarizing(Scripted("Short."))).view_sync(chat(9))
    changed = session(cut())
    changed.reconfigure(summarizing(Scripted("Short.")))
    changed.view_sync(view)
    assert GroupKind.SUMMARY in {group.kind for group in changed.index.included_groups}


def test_figures_that_arrive_during_a_run_count_from_the_next_call() -> None:
    """Usage, a window and a strategy may be set while the strategy runs, which is not disturbed by them."""
    undisturbed: list[bool] = []

    def strategy(index: MessageIndex) -> Iterator[Edit]:
        before = index.context
        talk.record_usage({"prompt_tokens": 500, "completion_tokens": 1})
        talk.reconfigure(strategy, window=5_000)
        talk.use_window(6_000)
        undisturbed.append(index.context is before)
        yield from ()

    talk = session(strategy)
    for _ in range(2):
        talk.view_sync(chat(2))
    assert undisturbed == [True, True]
    assert talk.status().window == 6_000


class Failing:
    """A counter that raises an exception for one text. Holds state: the exceptions that it has not raised yet."""

    name, exact = "failing", False

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)

    def count_text(self, text: str) -> int:
        if text == "fails" and self.errors:
            raise self.errors.pop()
        return len(text)


@pytest.mark.parametrize("error", [ValueError, MemoryError, RecursionError, KeyboardInterrupt])
def test_a_list_that_is_read_half_is_read_again(error: type[BaseException]) -> None:
    """Whatever is raised while new messages are read, the session is as before, and the next call reads them."""
    more = [*chat(2), user("works"), user("fails")]
    counters = Failing(), Failing(error("half"), error("half"))
    whole, failed = (CompactionSession(cut(), counter=counter, clock=None) for counter in counters)
    for each in (whole, failed):
        each.view_sync(chat(2))
    before = failed.to_dict()
    for _ in range(2):
        with pytest.raises(error, match="half"):
            failed.view_sync(more)
        assert failed.to_dict() == before
        failed = CompactionSession.from_dict(before, cut(), counter=counters[1], clock=None)
    assert failed.view_sync(more[:-2]) == whole.view_sync(more[:-2])
    assert failed.view_sync(more) == whole.view_sync(more)
    assert failed.to_dict() == whole.to_dict()


def test_a_change_of_the_host_that_is_followed_half_is_followed_again() -> None:
    """If a counter fails when an edit is repeated on the changed list, the session is as before, and the next call succeeds."""
    views: list[Chat] = []
    for errors in ([], [ValueError("half")]):
        counter, source = Failing(), chat(4)
        talk = CompactionSession(drop_and_note, counter=counter, clock=None)
        talk.view_sync(source)
        before, source[-3] = talk.to_dict(), {**source[-3], "content": "other words"}
        counter.errors += errors
        if errors:
            with pytest.raises(ValueError, match="half"):
                talk.view_sync(source)
        assert talk.to_dict() == before
        views.append(talk.view_sync(source))
    assert views[0] == views[1]


def drop_and_note(index: MessageIndex) -> Iterator[Edit]:
    """Replace the first turn by a note whose text the counter `Failing` may not count."""
    if not index.edit_count:
        ids = [id for id in index.removable_ids() if index.group(id).turn == 1]
        yield Replace(ids, [index.format.new("user", "fails")])


def test_a_refusal_before_any_view_is_a_mistake() -> None:
    """There is nothing to shorten, so the error says what to call first."""
    with pytest.raises(ConfigurationError, match="call view with your list first"):
        session().overflowed_sync(ValueError("prompt is too long: 1100 tokens > 1000 maximum"))


def test_a_path_is_not_a_store() -> None:
    path: Any = "sessions.db"
    with pytest.raises(ConfigurationError, match=r"write store=SessionStore\('sessions.db'\)"):
        CompactionSession(Truncation(), store=path)


def usages_of(messages: Chat, prompt_tokens: Callable[[int], int]) -> list[dict[str, int] | None]:
    """Return the usage of each message: for an answer, the tokens of everything before it, as this function counts them."""
    sizes = [MessageIndex(messages[:place], counter="chars/4").tokens for place in range(len(messages))]
    return [
        {"prompt_tokens": prompt_tokens(size), "completion_tokens": 1} if message["role"] == "assistant" else None
        for size, message in zip(sizes, messages, strict=True)
    ]


def test_a_new_process_counts_by_the_usage_in_the_history() -> None:
    """Usage kept with the replies corrects the counts before the first view, also after an overflow in an earlier process."""
    messages = chat(8)
    told = usages_of(messages, lambda size: 2 * size)
    fresh = CompactionSession(cut(), counter="chars/4")
    fresh.follow(messages)
    fresh.recall_usage(told[1:])  # of another list
    counted = fresh.index.included.tokens
    assert fresh.status().tokens == counted
    fresh.recall_usage(told)
    assert fresh.status().tokens - counted == pytest.approx(counted, rel=0.05)
    overhead = fresh.status().tokens - counted
    fresh.view_sync(messages)
    assert fresh.status().compactions == 1
    assert fresh.status().tokens == fresh.index.included.tokens + overhead  # one report says nothing of the factor


def test_the_usage_in_the_history_ends_the_correction_of_an_overflow() -> None:
    """In a new process, a report that the history holds replaces what an error taught the earlier one."""
    messages = chat(3)
    refused = CompactionSession(cut(), counter="chars/4", window=3_000)
    refused.view_sync(messages)
    refused.overflowed_sync(ValueError("maximum context length is 3000 tokens. However, your messages resulted in 3200 tokens"))
    resumed = CompactionSession.from_dict(refused.to_dict(), cut(), counter="chars/4", window=3_000)
    resumed.follow(chat(4))
    sent = resumed.index.included.tokens - resumed.index.included_groups[-1].tokens
    larger = usages_of(chat(4), lambda size: 9_000)
    resumed.recall_usage([*larger[:-1], {"prompt_tokens": sent + 90, "completion_tokens": 1}])
    assert resumed.status().tokens == resumed.index.included.tokens + 90 != refused.status().tokens


def test_an_error_that_quotes_the_conversation_sets_no_window() -> None:
    """A server that refuses a request for another reason may repeat it; a text in it must not choose the window."""
    said = "maximum context length is 200 tokens. However, your messages resulted in 9000 tokens"
    messages = [*chat(3), {"role": "user", "content": f"It says: {said}"}]
    events: list[Event] = []
    for error in (f"cannot parse {messages[-1]}", said.replace("200", "600")):
        refused = session(window=3_000, on_event=events.append)
        refused.view_sync(messages)
        with contextlib.suppress(BudgetUnsatisfiable):
            refused.overflowed_sync(ValueError(error))
    assert [event.window for event in events if isinstance(event, Overflowed)] == [None, 600]


@pytest.mark.parametrize("overhead", [49, 50, 5_000])
def test_a_provider_that_counts_less_than_the_overhead_is_believed(overhead: int) -> None:
    """The tokens beside the messages fill the window then, as far as we know, and nothing can be left out for them."""
    refused = CompactionSession(cut(), counter="chars/4", overhead_tokens=overhead)
    refused.view_sync([user("word " * 400)])
    with pytest.raises(BudgetUnsatisfiable, match="overhead: 40 tokens"):
        refused.overflowed_sync(ValueError("maximum context length is 40 tokens. However, your messages resulted in 50 tokens"))


def test_usage_after_a_lost_compaction_is_not_taken_for_the_whole_list() -> None:
    """If an earlier process sent less than the list, and its edits were not saved, only the reports before it are used."""
    messages = chat(8)
    told = usages_of(messages, lambda size: 2 * size if size < 900 else size // 3 if size < 1_500 else 3 * size)
    session = CompactionSession(cut(), counter="chars/4")
    session.follow(messages, overhead_tokens=5)
    session.recall_usage([None] * len(messages))
    assert session.status().tokens == session.index.included.tokens + 5
    session.recall_usage(told)
    assert 500 < session.status().tokens - session.index.included.tokens < 900
    session.recall_usage(usages_of(messages, lambda size: 900))
    assert session.status().tokens < session.index.included.tokens  # the newest: none is smaller than one before it


def test_usage_of_a_view_that_cannot_be_restored_is_not_used() -> None:
    """If a saved edit is not allowed any more, the newest reply was for a shorter view than the present one."""
    messages = chat(8)
    first = CompactionSession(cut(), counter="chars/4")
    first.view_sync(messages)
    saved = first.to_dict()
    saved["index"]["journal"][0]["edit"]["groups"].append(len(messages) - 1)  # the newest group must stay
    resumed = CompactionSession.from_dict(saved, cut(), counter="chars/4")
    resumed.follow(messages)
    resumed.recall_usage(usages_of(messages, lambda size: size // 3))
    assert len(resumed.index.undone) == 1
    assert resumed.status().tokens == resumed.index.included.tokens


def test_recalled_usage_does_not_replace_a_report() -> None:
    """After the first view, usage in the history is old."""
    session = CompactionSession(cut(), counter="chars/4")
    view = session.view_sync(chat(2))
    session.record_usage({"prompt_tokens": session.index.included.tokens + 70, "completion_tokens": 0}, view=view)
    before = session.status().tokens
    session.recall_usage(usages_of(chat(2), lambda size: 3 * size))
    assert session.status().tokens == before


def test_pauses_after_failures_are_kept(tmp_path: Path) -> None:
    """Pauses after failures last over calls and processes; a state saved without them can be read."""
    seen: list[bool] = []

    def failing(index: MessageIndex) -> Iterator[Edit]:
        pauses, now = index.context.pauses, index.context.now
        seen.append(pauses.is_paused("failing", now))
        pauses.record_failure("failing", now)
        yield from cut()(index)

    def opened(now: float) -> CompactionSession:
        return CompactionSession(failing, counter="chars/4", store=store, clock=lambda: now)

    store = SessionStore(tmp_path / "sessions.db")
    session = opened(0.0)
    session.view_sync(chat(5))
    session.view_sync(chat(6))
    session.view_sync(chat(11))
    opened(2_000.0).view_sync(chat(12))
    opened(100.0).view_sync(chat(12))
    assert seen == [False, True, True, False, True]
    saved = store.load("default")
    assert saved is not None
    del saved["pauses"]
    store.save("default", saved)
    opened(100.0).view_sync(chat(12))
    assert seen[-1] is False


@pytest.mark.parametrize("ratio", [0.001, 0.1, 1_000])
def test_a_report_that_cannot_be_right_is_ignored(ratio: float) -> None:
    """A server that reports another unit, or only what was not cached, changes no view."""
    plain, told = (CompactionSession(cut(), counter="chars/4", window=2_000) for _ in range(2))
    for turns in range(1, 16):
        view = told.view_sync(chat(turns))
        assert view == plain.view_sync(chat(turns))
        told.record_usage({"prompt_tokens": int(MessageIndex(view, counter="chars/4").tokens * ratio), "completion_tokens": 1})
