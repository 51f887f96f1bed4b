"""Summaries prepared in the background: no call waits for one, and an outdated one is never used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import pytest
from anyio.from_thread import start_blocking_portal

from compaction import MessageIndex, last
from compaction.errors import ConfigurationError, SummaryFailed
from compaction.index import RunHistory
from compaction.run import run_sync
from compaction.session import BackgroundTasks, CompactionSession, Event, SessionPool
from compaction.session.ahead import SummariesAhead
from compaction.stores import SQLiteStore
from compaction.strategies import (
    Clear,
    GrowingSummary,
    Lossless,
    Offload,
    Pipeline,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import SummaryBudget, SummaryRequest
from compaction.triggers import messages_exceed, tokens_below, tokens_exceed
from tests.support.chats import Chat
from tests.support.limits import WAIT_SECONDS
from tests.support.scripted import Scripted

AHEAD: dict[str, Any] = {"ahead": tokens_exceed(700), "counter": "chars/4", "clock": lambda: 0.0}


class Gated:
    """A model that answers once the test allows it. Holds state: its requests, and how many are running."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers) or ["Ahead."]
        self.requests: list[SummaryRequest] = []
        self.running = 0
        self.gate = anyio.Event()

    async def summarize(self, request: SummaryRequest) -> str:
        """Wait, then give the next answer, or raise it; the last one repeats."""
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        self.running += 1
        try:
            await self.gate.wait()
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def begins(self) -> None:
        await settled(lambda: self.running == 1)

    async def finishes(self) -> None:
        """Allow all answers, and wait until no request is running."""
        self.gate.set()
        await settled(lambda: not self.running)


def said(number: int) -> dict[str, Any]:
    """A message of about 100 tokens."""
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"Message {number}: " + f"shelf {number} " * 43}


def chat(messages: int) -> Chat:
    return [{"role": "system", "content": "You keep a store."}, *(said(number) for number in range(messages))]


def summarizing(model: Any, **options: Any) -> Summarization:
    given: dict[str, Any] = {"trigger": tokens_exceed(1_000), "keep": last(messages=2), **options}
    return Summarization(model, budget=SummaryBudget(floor=40, ceiling=60), **given)


def session(strategy: Any, **options: Any) -> CompactionSession:
    return CompactionSession(strategy, **{**AHEAD, **options})


async def settled(done: Callable[[], bool] = lambda: False) -> None:
    """Let other tasks run until a condition is true, or long enough for everything to finish."""
    for step in range(200):
        await anyio.lowlevel.checkpoint()
        if step > 9 and done():  # a task that was just started has begun by then
            return
    for _ in range(50):  # a thread may have to come back
        await anyio.sleep(0.002)
        if done():
            return


async def prepared(model: Gated, talk: CompactionSession, source: Chat, messages: int = 8) -> None:
    """Let a conversation grow past the ahead trigger, then let the model answer."""
    asked = len(model.requests)
    await talk.view(source[: messages + 1])
    await settled(lambda: len(model.requests) > asked)
    await model.finishes()


def shows(view: Chat, text: str) -> bool:
    return any(text in str(message["content"]) for message in view)


@pytest.mark.parametrize("counts", [range(2, 15), [14]], ids=["step by step", "due at once"])
async def test_a_model_that_does_not_answer_delays_no_call(counts: Sequence[int]) -> None:
    """While the model writes, calls send the list unchanged, also past the trigger, and the model gets one request."""
    model, source = Gated(), chat(16)
    async with session(summarizing(model), window=4_000) as talk:
        for count in counts:
            assert await talk.view(source[:count]) == source[:count]
            await settled()
        assert model.running == len(model.requests) == 1
        await model.finishes()
        view = await talk.view(source)
    assert shows(view, "Ahead.")
    assert view[2:] == source[1 + len(model.requests[0].groups) :]
    assert len(model.requests) == 1


async def test_the_prepared_summary_is_used_when_it_is_due() -> None:
    """The summary covers the messages of its request; newer messages stay in the view."""
    model, source = Gated(), chat(14)
    async with session(summarizing(model)) as talk:
        await prepared(model, talk, source)
        assert await talk.view(source[:10]) == source[:10]  # ready, but not due yet
        view = await talk.view(source[:12])
        assert talk.status().outcome == "compacted"
    assert len(model.requests) == 1
    assert view[0] is source[0]
    assert shows(view[1:2], "Ahead.")
    assert view[2:] == source[7:12]
    assert [group.messages[0].raw for group in model.requests[0].groups] == source[1:7]


async def test_the_prepared_summary_covers_what_will_be_due() -> None:
    """At the limit, the oldest messages go first, and the request is about the others; in a forced run they would stay."""
    model, source = Gated(), chat(8)
    cut = Truncation(trigger=tokens_exceed(900), target=tokens_below(800), keep=last(messages=2))
    strategy = Pipeline(cut, summarizing(model, trigger=tokens_exceed(10)), trigger=tokens_exceed(1_000))
    async with session(strategy) as talk:
        await prepared(model, talk, source)
    assert [group.messages[0].raw for group in model.requests[0].groups] == source[5:7]


async def test_later_rounds_update_the_summary_ahead_of_time() -> None:
    """The second request contains the first summary, and its answer replaces it."""
    model, source = Gated("First.", "Second."), chat(40)
    async with session(summarizing(model)) as talk:
        model.gate.set()
        for count in range(2, 41):
            view = await talk.view(source[:count])
            await settled(lambda: not model.running)
        status = talk.status()
    assert [request.previous for request in model.requests][:2] == [None, "First."]
    assert shows(view, "Second.")
    assert not shows(view, "First.")
    assert status.compactions in (len(model.requests) - 1, len(model.requests))


@pytest.mark.parametrize(("less", "waits"), [(0, False), (1, True)])
async def test_a_request_that_fills_the_window_waits(less: int, waits: bool) -> None:
    """If it has more than nine tenths of the window, it does not fit unchanged, and the model is called at once."""
    model, source = Gated(), chat(14)
    model.gate.set()
    tokens = MessageIndex(source, counter="chars/4").tokens
    overhead = -tokens % 9
    async with session(summarizing(model), overhead_tokens=overhead, window=(tokens + overhead) // 9 * 10 - less) as talk:
        assert shows(await talk.view(source), "Ahead.") is waits


async def test_without_a_window_a_due_summary_is_asked_for_at_once() -> None:
    """Without a window the running request is cancelled, so that only one runs at a time."""
    model, source = Gated(), chat(14)
    most = 0
    async with session(summarizing(model)) as talk, anyio.create_task_group() as group:
        await talk.view(source[:9])
        await model.begins()
        views: list[Chat] = []

        async def due() -> None:
            views.append(await talk.view(source))

        group.start_soon(due)
        await settled(lambda: len(model.requests) == 2)
        await settled()
        most = model.running
        model.gate.set()
    assert most == 1
    assert shows(views[0], "Ahead.")
    assert views[0][2:] == source[13:]


def growing(model: Any) -> GrowingSummary:
    figures = {"tokens": 500, "initial_tokens": 120, "added_tokens": 60, "max_tokens": 200}
    return GrowingSummary(model, trigger=tokens_exceed(1_000), target=tokens_below(600), **figures)


TREES: dict[str, Callable[[Any], Any]] = {
    "alone": summarizing,
    "pipeline": lambda model: Pipeline(Truncation(trigger=tokens_exceed(9_000)), summarizing(model)),
    "pipeline with the trigger": lambda model: Pipeline(
        ToolResult(Clear()), summarizing(model, trigger=tokens_exceed(10)), trigger=tokens_exceed(1_000)
    ),
    "budget": lambda model: TokenBudgetComposed([summarizing(model, trigger=tokens_exceed(0))], budget=1_000),
    "lossless": lambda model: Lossless(summarizing(model), SQLiteStore("store.db")),
    "after a store": lambda model: Offload(SQLiteStore("store.db"), trigger=tokens_exceed(900)) >> summarizing(model),
    "growing": growing,
    "by messages": lambda model: Pipeline(summarizing(model, trigger=messages_exceed(10))),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
async def test_every_summarizing_strategy_of_a_tree_is_asked_ahead(
    tree: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is ready when due, wherever in a pipeline its strategy is."""
    monkeypatch.chdir(tmp_path)  # where the trees put their stores
    model, source = Gated(), chat(14)
    async with session(tree(model)) as talk:
        await prepared(model, talk, source)
        view = await talk.view(source[:13])
    assert shows(view, "Ahead.")
    assert len(model.requests) == 1


async def test_a_rehearsal_leaves_no_trace(tmp_path: Path) -> None:
    """Preparing a summary changes no view, journal, refusal or pause, and writes to no store."""
    model, source, store = Gated(), chat(9), SQLiteStore(tmp_path / "store.db")
    strategy = Pipeline(Truncation(target=tokens_below(800), trigger=tokens_exceed(950)), Lossless(summarizing(model), store))
    async with session(strategy) as talk:
        view = await talk.view(source)
        await settled(lambda: bool(model.requests))
        assert view == source
        assert talk.index.journal == talk.index.refused == ()
        assert talk.index.context.overhead_tokens == 0
        assert talk.index.context.pauses.to_dict() == RunHistory().to_dict()
        assert store.range("default", 0, 10) == []


def rewound(source: Chat) -> Chat:
    return [*source[:4], *(said(number) for number in range(50, 60))]


def changed_in_place(source: Chat) -> Chat:
    source[2]["content"] = "Nothing of that. " * 25
    return [*source, *(said(number) for number in range(8, 12))]


@pytest.mark.parametrize("change", [rewound, changed_in_place])
async def test_not_used_after_the_host_changed_its_list(change: Callable[[Chat], Chat]) -> None:
    """The summary is about messages of an abandoned branch, or with other content."""
    model, source = Gated("Ahead.", "Anew."), chat(9)
    async with session(summarizing(model)) as talk:
        await prepared(model, talk, source[:9])
        with anyio.fail_after(5):
            given = change(source[:9])
            view = await talk.view(given)
    assert (shows(view, "Ahead."), shows(view, "Anew.")) == (False, True)
    assert all(group.messages[0].raw in given for group in model.requests[-1].groups)


async def test_an_outdated_summary_is_replaced_before_it_is_due() -> None:
    """After the host changed a message that the prepared summary covers, the next one is requested at once."""
    model, source = Gated("Ahead.", "Again."), chat(9)
    async with session(summarizing(model)) as talk:
        await prepared(model, talk, source[:9])
        source[2] = {**source[2], "content": "Nothing of that. " * 25}
        await prepared(model, talk, source[:9])
    assert len(model.requests) == 2


async def test_a_message_that_is_forgotten_takes_the_prepared_text_with_it() -> None:
    """`forget` does not wait for the call in which the summary would be found to be outdated."""
    model, source = Gated(), chat(9)
    async with session(summarizing(model)) as talk:
        await prepared(model, talk, source)
        await talk.view(source)
        assert talk.index.context.prepared.summary is not None
        assert await talk.forget(source[2:3]) == 1
        assert talk.index.context.prepared.summary is None


async def test_an_interrupted_call_discards_the_prepared_summary() -> None:
    """It may be about messages that nobody has seen in a whole call."""
    interruptions = list[BaseException]()

    def watch(event: Event) -> None:
        if interruptions:
            raise interruptions.pop()

    model, source = Gated(), chat(9)
    async with session(summarizing(model), on_event=watch) as talk:
        await prepared(model, talk, source)
        await talk.view(source)
        interruptions.append(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            talk.view_sync(source)
        talk.follow(source)
        assert talk.index.context.prepared.summary is None


async def test_not_used_after_the_previous_summary_changed() -> None:
    """A forced run wrote another summary in between, so the prepared one is not used."""
    model, source = Gated("First.", "Ahead.", "Forced.", "Anew."), chat(40)
    model.gate.set()
    async with session(summarizing(model)) as talk:
        count = 9
        while len(model.requests) < 2:
            await talk.view(source[:count])
            await settled(lambda: not model.running)
            count += 1
        await talk.compact(focus="shelves")
        view = await talk.view(source[: count + 9])
    assert (shows(view, "Ahead."), shows(view, "Anew.")) == (False, True)
    assert model.requests[-1].previous == "Forced."


async def test_a_request_under_way_is_cancelled_when_its_messages_go() -> None:
    model, source = Gated(), chat(9)
    async with session(summarizing(model)) as talk:
        await talk.view(source[:9])
        await model.begins()
        await talk.view(source[:3])
        await settled(lambda: model.running == 0)
        assert model.running == 0


@pytest.mark.parametrize("window", [None, 4_000])
async def test_a_failure_counts_and_is_told_in_the_next_result(window: int | None) -> None:
    """After a failure the strategy pauses: the model gets no request, in the background or when due."""
    model, source = Gated(SummaryFailed("no")), chat(14)
    async with session(summarizing(model), window=window) as talk:
        await prepared(model, talk, source)
        await talk.view(source[:10])
        status = talk.status()
        assert (status.outcome, len(status.failures)) == ("degraded", 1)
        assert talk.index.context.pauses.is_paused(summarizing(model), 0.0)
        await talk.view(source)
        assert talk.status().failures == ()
    assert len(model.requests) == 1


@pytest.mark.parametrize("tree", [partial(summarizing, on_failure="digest"), growing], ids=["summarization", "growing"])
async def test_a_failure_of_a_due_summary_is_decided_by_the_strategy(tree: Callable[[Any], Any]) -> None:
    """If the summary was due when requested, the next call applies the strategy's ``on_failure``."""
    model, source = Gated(SummaryFailed("no")), chat(14)
    async with session(tree(model), window=4_000) as talk:
        assert await talk.view(source) == source
        await settled(lambda: bool(model.requests))
        await model.finishes()
        await talk.view(source)
        status = talk.status()
    assert (status.compactions, status.outcome, len(status.failures)) == (1, "degraded", 1)
    assert "no" in status.failures[0]
    assert len(model.requests) == 1


async def test_a_rehearsal_that_fails_fails_no_call() -> None:
    """An exception of the ahead trigger is reported and does not change the view."""

    def broken(index: Any) -> bool:
        raise ValueError("broken")

    source = chat(3)
    async with session(summarizing(Gated()), ahead=broken, window=9_000) as talk:
        assert await talk.view(source) == source
        assert "broken" in talk.status().failures[0]


@pytest.mark.parametrize("shared", [False, True])
async def test_leaving_cancels_what_is_under_way_and_the_session_stays_usable(shared: bool) -> None:
    """After leaving the session or the tasks that it shares, no task is left, and calls run as without ``ahead=``."""
    model, source = Gated(), chat(14)
    tasks = BackgroundTasks() if shared else None
    talk = session(summarizing(model), tasks=tasks)
    async with tasks or talk:
        await talk.view(source[:9])
        await model.begins()
    assert model.running == 0
    assert await talk.view(source[:10]) == source[:10]
    model.gate.set()
    assert shows(await talk.view(source), "Ahead.")
    assert len(model.requests) == 2


async def test_an_answer_that_comes_after_all_is_not_used() -> None:
    """A summarizer may ignore that its request was cancelled."""

    class Stubborn(Gated):
        async def summarize(self, request: SummaryRequest) -> str:
            with anyio.CancelScope(shield=True):
                return await super().summarize(request)

    model, source = Stubborn(), chat(9)
    strategy, index = summarizing(model), MessageIndex(source, counter="chars/4")
    async with SummariesAhead(tokens_exceed(700)) as ahead:
        index.context = attrs.evolve(index.context, prepared=ahead.prepared)
        ahead.end(index, strategy, run_sync(index, ahead.begin(index, strategy)))
        await model.begins()
        ahead.drop()
        model.gate.set()
        await settled(lambda: model.running == 0)
        await settled()
        ahead.begin(index, strategy)
        assert ahead.prepared.summary is None


@pytest.mark.parametrize("steps", range(12))
async def test_a_call_cancelled_at_any_point_loses_nothing(steps: int) -> None:
    """After a cancellation the prepared summary is still there or was used once."""
    model, source = Gated(), chat(14)
    async with session(summarizing(model)) as talk:
        await prepared(model, talk, source)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(talk.view, source)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        view = await talk.view(source)
    assert shows(view, "Ahead.")
    assert len(model.requests) == 1


async def test_a_vetoed_or_failed_run_keeps_the_prepared_summary() -> None:
    """If a later step raises, the index is as before, and the next call uses the summary."""
    model, source, fails = Gated(), chat(14), [True]

    def later(index: Any) -> Any:
        if fails and index.edit_count:
            fails.clear()
            raise RuntimeError("later")
        return iter(())

    async with session(Pipeline(summarizing(model), later)) as talk:
        await prepared(model, talk, source)
        with pytest.raises(RuntimeError, match="later"):
            await talk.view(source)
        assert shows(await talk.view(source), "Ahead.")
    assert len(model.requests) == 1


async def test_calls_of_threads_start_tasks_in_the_owners_loop() -> None:
    model, source = Gated(), chat(14)
    async with session(summarizing(model)) as talk:
        await anyio.to_thread.run_sync(talk.view_sync, source[:9])
        await model.begins()
        await model.finishes()
        view = await anyio.to_thread.run_sync(talk.view_sync, source)
    assert shows(view, "Ahead.")


async def test_a_summarizer_that_blocks_is_called_in_a_thread() -> None:
    """The event loop keeps running while a sync summarizer writes."""
    opened, asked, answered = threading.Event(), threading.Event(), threading.Event()

    class Blocking:
        def summarize(self, request: SummaryRequest) -> str:
            asked.set()
            opened.wait(10)
            answered.set()
            return "Ahead."

    source = chat(14)
    async with session(summarizing(Blocking())) as talk:
        await talk.view(source[:9])
        await settled(asked.is_set)
        assert await talk.view(source[:10]) == source[:10]
        opened.set()
        await settled(answered.is_set)
        await settled()
        assert shows(await talk.view(source), "Ahead.")
    for event in (opened, asked, answered):
        event.clear()
    async with session(summarizing(Blocking())) as talk:
        await talk.view(source[:9])
        await settled(asked.is_set)
    assert not answered.is_set()  # leaving does not wait for the thread
    opened.set()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_sync_host_passes_a_portal(backend: str) -> None:
    """The portal's loop calls the model; the host's thread never waits, and `close` ends the request."""
    source, answered, ended = chat(40), threading.Event(), threading.Event()

    class Model:
        requests = 0

        async def summarize(self, request: SummaryRequest) -> str:
            self.requests += 1
            if self.requests == 1:
                answered.set()
                return "Ahead."
            try:
                answered.set()
                await anyio.sleep_forever()
            finally:
                ended.set()
            raise AssertionError

    model = Model()
    with (
        start_blocking_portal(backend) as portal,
        contextlib.closing(session(summarizing(model), tasks=BackgroundTasks(portal))) as talk,
    ):
        talk.view_sync(source[:9])
        assert answered.wait(10)
        portal.call(settled)
        assert shows(talk.view_sync(source[:13]), "Ahead.")
        answered.clear()
        for count in range(13, 16):
            talk.view_sync(source[:count])
        assert answered.wait(10)
        talk.close()
        assert ended.wait(10)
        talk.view_sync(source[:15])
        portal.call(settled)
    assert model.requests == 2


async def test_tasks_are_cancelled_before_they_begin_and_opened_once() -> None:
    """A task that was cancelled at once does nothing, and a closed object starts none."""
    ran: list[int] = []

    async def work() -> None:
        ran.append(1)

    background = BackgroundTasks()
    async with background as tasks:
        with pytest.raises(ConfigurationError, match="already open"):
            await tasks.__aenter__()
        for cancels in (True, False):
            task = tasks.start(work)
            assert task is not None
            if cancels:
                task.cancel()
            await settled(lambda: bool(ran))
            assert len(ran) == (not cancels)
            task.cancel()  # it has ended
        assert tasks.start(work) is not None  # it has not begun when the block is left
    await settled()
    assert len(ran) == 1
    model = Gated()
    async with background as tasks:
        async with session(summarizing(model), tasks=tasks) as talk:
            await talk.view(chat(8))
            await model.begins()
        await settled(lambda: not model.running)
        assert (len(model.requests), model.running) == (1, 0)
        assert tasks.start(settled) is not None  # they belong to others, too
    assert tasks.start(work) is None
    await tasks.__aexit__(None, None, None)


async def test_a_request_that_never_began_is_made_again() -> None:
    """If the owner of the tasks is left before the request begins, it is lost; the next owner's begins another."""
    model, source, tasks = Gated(), chat(16), BackgroundTasks()
    talk = session(summarizing(model), tasks=tasks, window=4_000)
    async with tasks:
        await talk.view(source[:9])
    assert not model.requests
    async with tasks:
        await talk.view(source[:10])
        await settled(lambda: bool(model.requests))
    assert len(model.requests) == 1


def test_a_portal_that_is_closed_delays_nothing() -> None:
    """No task can start there, so the summarizer is called when the summary is due."""
    model, source = Scripted("Now."), chat(14)
    with start_blocking_portal() as portal:
        tasks = BackgroundTasks(portal)
    assert tasks.start(settled) is None
    talk = session(summarizing(model), tasks=tasks, window=4_000)
    assert talk.view_sync(source[:9]) == source[:9]
    assert shows(talk.view_sync(source), "Now.")


async def test_a_call_without_an_owner_is_refused() -> None:
    talk = session(summarizing(Gated()))
    with pytest.raises(ConfigurationError, match="async with session"):
        await talk.view(chat(1))
    with pytest.raises(ConfigurationError, match="async with session"):
        session(summarizing(Gated())).view_sync(chat(1))


async def test_what_can_never_work_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="tasks="):
        session(summarizing(Gated()), ahead=None, tasks=BackgroundTasks())
    with pytest.raises(ConfigurationError, match="hard=True"):
        session(summarizing(Gated()), hard=True)
    with pytest.raises(ConfigurationError, match="trigger"):
        session(summarizing(Gated()), ahead=True)


@pytest.mark.parametrize("how", ["discard", "delete", "evict"])
async def test_a_session_that_leaves_the_pool_cancels_its_request(how: str) -> None:
    model = Gated()
    async with SessionPool(summarizing(model), **AHEAD, limit=1) as pool:
        async with pool.call(chat(8)) as talk:
            await talk.compact_due()
            await model.begins()
        if how == "discard":
            assert pool.discard(talk.id)
        elif how == "delete":
            assert await pool.delete(None) == 1
        else:
            await pool.view(chat(1)[:1])
        await settled(lambda: model.running == 0)
        assert (model.running, len(model.requests)) == (0, 1)


def test_a_portal_also_runs_tasks_after_an_async_with() -> None:
    """The block is not needed for a portal, and leaving it does not close the portal."""
    with start_blocking_portal() as portal:
        tasks, done = BackgroundTasks(portal), threading.Event()

        async def use() -> None:
            async with tasks:
                pass

        async def work() -> None:
            done.set()

        portal.call(use)
        task = tasks.start(work)
        assert task is not None
        assert done.wait(WAIT_SECONDS)
