"""The integrations without any framework; ``tests.frameworks`` has the tests with the frameworks."""

from __future__ import annotations

import copy
import json
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import anyio
import pytest

from compaction import CompactionResult, Edit, MessageIndex, last, presets
from compaction.errors import BudgetUnsatisfiable, ConfigurationError, StateError
from compaction.formats import openai_chat
from compaction.index import Metrics
from compaction.integrations import IntegrationOptions
from compaction.integrations.conversation import FrameworkConversations, as_async
from compaction.integrations.requirements import Requirement
from compaction.run import unawaited
from compaction.stores import SQLiteStore
from compaction.strategies import Lossless, Summarization, Truncation
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.scripted import Awaited, Scripted, TooLong

ROOT = Path(__file__).resolve().parents[3]
FRAMEWORKS = {"agent_framework", "agents", "google.adk", "langchain", "langchain_core", "langgraph", "pydantic_ai", "strands"}
STRATEGY = presets.token_budget(300)
MAKERS: list[tuple[str, str, dict[str, Any]]] = [
    ("agent_framework", "CompactionProvider", {}),
    ("agent_framework", "ChatClientSummarizer", {"client": None}),
    ("anthropic", "RequestCompaction", {"strategy": STRATEGY}),
    ("google_adk", "CompactionPlugin", {"strategy": STRATEGY}),
    ("langchain", "CompactionMiddleware", {"strategy": STRATEGY}),
    ("langchain", "RewritingMiddleware", {"strategy": STRATEGY}),
    ("langchain", "ChatModelSummarizer", {"model": None}),
    ("langgraph", "SummarizationNode", {"strategy": STRATEGY}),
    ("litellm", "ProxyCompaction", {"strategy": STRATEGY}),
    ("openai_agents", "CompactingModel", {"model": None}),
    ("openai_agents", "CompactingModels", {}),
    ("openai_agents", "CompactingSession", {"underlying": None, "strategy": STRATEGY}),
    ("openai_agents", "CompactionFilter", {"strategy": STRATEGY}),
    ("opentelemetry", "OpenTelemetryEvents", {}),
    ("pydantic_ai", "CompactionProcessor", {"strategy": STRATEGY}),
    ("strands", "CompactionConversationManager", {"strategy": STRATEGY}),
]


def notes(number: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"Note {place}: " + "the shop is open. " * 5} for place in range(start, start + number)]


def broken(index: MessageIndex) -> Iterator[Edit]:
    raise ZeroDivisionError("broken strategy")
    yield  # makes this function a generator


def test_the_folder_loads_no_framework() -> None:
    """Importing ``compaction.integrations`` loads none of the frameworks."""
    program = "import json, sys, compaction.integrations; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert FRAMEWORKS & set(json.loads(done.stdout)) == set()


@pytest.mark.parametrize(("module", "maker", "arguments"), MAKERS, ids=[each[1] for each in MAKERS])
def test_a_framework_that_is_missing(
    module: str, maker: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the framework, an integration can be imported, and its class raises an error that names the extra."""
    made = getattr(import_module(f"compaction.integrations.{module}"), maker)

    def missing(distribution: str) -> str:
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(metadata, "version", missing)  # where the framework is installed, its metadata is hidden
    with pytest.raises(ConfigurationError, match=r"is not installed; pip install '\.\["):
        made(**arguments)


def test_a_framework_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for an old framework names the installed version, the extra and the minimum version."""
    with pytest.raises(ConfigurationError, match=r"pytest \S+ is too old; pip install '\.\[x\]' .* installs pytest 999"):
        Requirement("pytest", extra="x", minimum="999").check()
    for minimum in ("9", metadata.version("pytest")):
        Requirement("pytest", extra="x", minimum=minimum).check()
    monkeypatch.setattr(metadata, "version", lambda _: "unknown")
    with pytest.raises(ConfigurationError, match="pytest unknown is too old"):
        Requirement("pytest", extra="x", minimum="9").check()


async def test_a_failing_strategy_leaves_the_last_good_view() -> None:
    """If a strategy fails, the last good view with newer messages is sent, and the result reports the failure."""
    results: list[CompactionResult] = []
    cut = Truncation(trigger=tokens_exceed(400), target=tokens_below(300), keep=last(groups=1))

    def works_once(index: MessageIndex) -> Iterator[Edit]:
        yield from broken(index) if index.edits else cut(index)

    options = IntegrationOptions(strategy=works_once, counter="chars/4", on_result=results.append)
    conversations = FrameworkConversations(options, openai_chat)
    good = await conversations.turn(notes(20))
    turn = await conversations.turn([*notes(20), *notes(1, 20)])
    assert turn.view == [*good.view, *notes(1, 20)]
    assert turn.index is not None
    assert [result.outcome for result in results] == ["compacted", "degraded"]
    assert "broken strategy" in turn.report()["failures"][0]
    assert (turn.result.before, turn.result.after) == (turn.index.included, turn.index.included)
    unread = await conversations.turn(["no message"])
    unread.record_usage({"prompt_tokens": 700})
    assert (unread.view, unread.index, unread.state({"revision": 0})) == (["no message"], None, None)
    assert (unread.result.before, unread.result.after) == (Metrics(), Metrics())
    assert await unread.overflowed(TooLong("prompt is too long: 2000 tokens > 1000 maximum")) is None
    assert conversations.last is unread


async def test_saved_and_resumed() -> None:
    options = IntegrationOptions(strategy=presets.token_budget(400), counter="chars/4")
    turn = await FrameworkConversations(options, openai_chat).turn(notes(30))
    saved = json.loads(json.dumps(turn.state()))
    assert turn.state(saved) is None
    assert turn.state({**saved, "revision": -1}) == turn.state("of another version") == saved
    before, after = turn.result.before.tokens, turn.result.after.tokens
    report = {"outcome": "compacted", "tokens_before": before, "tokens_after": after, "edits": 1}
    assert saved["last"] == {**report, "failures": [str(failed) for failed in turn.result.failures]}
    short = await FrameworkConversations(options, openai_chat).turn(notes(3))
    assert (short.state(), short.state({})) == (None, None)
    assert short.state({"revision": -1}) is not None
    resumed = await FrameworkConversations(options, openai_chat).turn(notes(30), saved=saved)
    assert resumed.view == turn.view
    assert len(turn.view) < 30
    assert resumed.result.edits == ()


@pytest.mark.parametrize("saved", ["text", {"version": 0, "index": {}}, {"version": 1, "index": {"version": 1}}])
async def test_state_of_another_version(saved: object) -> None:
    """Unreadable state is ignored and reported in the first result, or is an error with ``on_failure="raise"``."""
    results: list[CompactionResult] = []
    options = IntegrationOptions(strategy=presets.token_budget(400), counter="chars/4", on_result=results.append)
    await FrameworkConversations(options, openai_chat).turn(notes(3), saved=saved)
    assert "ignored" in results[0].failures[0].policy
    strict = IntegrationOptions(strategy=presets.token_budget(400), on_failure="raise")
    with pytest.raises(StateError):
        await FrameworkConversations(strict, openai_chat).turn(notes(3), saved=saved)


async def test_a_locked_store_is_not_bad_saved_state(tmp_path: Path) -> None:
    """If the strategy's store cannot be written, the saved decisions stay in force, and the failure names the store."""
    store = SQLiteStore(tmp_path / "store.db", timeout_seconds=0.05)
    cut = Truncation(trigger=tokens_exceed(600), target=tokens_below(400), keep=last(groups=2))
    options = IntegrationOptions(strategy=Lossless(cut, store, on_failure="raise"), counter="chars/4")
    turn = await FrameworkConversations(options, openai_chat).turn(notes(30))
    assert turn.result.edits
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    resumed = await FrameworkConversations(options, openai_chat).turn(notes(60), saved=turn.state())
    other.close()
    [failed] = resumed.result.failures
    assert "locked" in str(failed.error)
    assert failed.policy == "the run continued with the unchanged view"
    assert resumed.view == [*turn.view, *notes(30, 30)]


async def test_a_length_error_gives_a_shorter_list_to_send_once_more() -> None:
    """A length error gives a shorter list to send, another error gives none, and reported usage counts for the last view."""
    results: list[CompactionResult] = []
    options = IntegrationOptions(strategy=presets.token_budget(100_000), counter="chars/4", on_result=results.append)
    conversations = FrameworkConversations(options, openai_chat)
    turn = await conversations.turn(notes(30))
    assert await turn.overflowed(RuntimeError("the server is down")) is None
    again = await turn.overflowed(TooLong("prompt is too long: 2000 tokens > 1000 maximum"))
    assert again is not None
    assert again == turn.view
    assert len(again) < 30
    assert [each.outcome for each in results] == ["unchanged", "compacted"]
    assert turn.result is results[-1]
    assert turn.report()["tokens_after"] < turn.report()["tokens_before"]
    turn.record_usage({"prompt_tokens": 700, "completion_tokens": 5})
    turn.record_usage("nothing that reports usage")
    assert turn.index is not None
    assert turn.index.tokens == 700


@pytest.mark.parametrize("sync", [False, True])
def test_a_request_that_was_too_long_is_repeated_once(sync: bool) -> None:
    """After a length error the request is repeated once with a shorter view; any other or second error is raised."""
    refusal = TooLong("prompt is too long: 2000 tokens > 1000 maximum")
    summarizer = Scripted("The shop is open.")
    strategy = Summarization(
        summarizer if sync else Awaited("The shop is open."), trigger=tokens_exceed(100_000), keep=last(groups=1)
    )
    options = IntegrationOptions(strategy=strategy, counter="chars/4")
    how = {"sync": True} if sync else {}

    async def sent(*errors: Exception) -> list[int]:
        turn = await FrameworkConversations(options, openai_chat).turn(notes(30), **how)
        answers, sizes = iter([*errors, None]), list[int]()

        def call(view: list[Any]) -> list[int]:
            sizes.append(len(view))
            if (error := next(answers)) is not None:
                raise error
            return sizes

        result = await turn.send(as_async(call), **how)
        assert turn.was_refused is (len(sizes) == 2)
        return result

    def run(*errors: Exception) -> list[int]:
        return unawaited(sent(*errors)) if sync else anyio.run(sent, *errors)

    assert run() == [30]
    first, second = run(refusal)
    assert second < first == 30
    with pytest.raises(TooLong):
        run(refusal, refusal)
    with pytest.raises(ZeroDivisionError):
        run(ZeroDivisionError())


async def test_a_stream_is_repeated_once_if_nothing_was_yielded() -> None:
    """A stream that was refused before its first event is repeated with a shorter view; one that breaks later is not."""
    refusal = TooLong("prompt is too long: 2000 tokens > 1000 maximum")
    strategy = Summarization(Awaited("The shop is open."), trigger=tokens_exceed(100_000), keep=last(groups=1))
    options = IntegrationOptions(strategy=strategy, counter="chars/4")

    async def streamed(*ends: int) -> tuple[list[int], list[int]]:
        """Return the sizes that were sent, and the events; each stream fails after so many events, unless that is 2."""
        turn = await FrameworkConversations(options, openai_chat).turn(notes(30))
        left, sizes = iter(ends), list[int]()

        async def call(view: list[Any]) -> AsyncIterator[int]:
            sizes.append(len(view))
            return events(next(left))

        async def events(end: int) -> AsyncIterator[int]:
            for event in range(end):
                yield event
            if end < 2:
                raise refusal

        return sizes, [event async for event in turn.stream(call)]

    sizes, events = await streamed(0, 2)
    assert (sizes[0], sizes[1] < 30, events) == (30, True, [0, 1])
    for ends in ((1, 2), (0, 0)):
        with pytest.raises(TooLong):
            await streamed(*ends)


@pytest.mark.parametrize("closing", ["aclose", "close", "awaited close"])
async def test_a_stream_is_closed_however_it_ends(closing: str) -> None:
    """Every stream that was opened is closed, with the method that its library has; a refused call has opened none."""
    opened, closed = list[object](), list[object]()

    class Stream:
        def __init__(self) -> None:
            opened.append(self)
            setattr(self, closing.removeprefix("awaited "), partial(as_async(closed.append), self))
            if closing == "close":
                self.close = partial(closed.append, self)

        def __aiter__(self) -> AsyncIterator[int]:
            return events(len(opened))

    async def events(number: int) -> AsyncIterator[int]:
        if number == 1:
            raise TooLong("prompt is too long: 2000 tokens > 1000 maximum")
        yield number

    options = IntegrationOptions(strategy=presets.token_budget(100_000), counter="chars/4")
    turn = await FrameworkConversations(options, openai_chat).turn(notes(30))
    assert [event async for event in turn.stream(as_async(lambda view: Stream()))] == [2]
    assert closed == opened

    async def refused(view: list[Any]) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await anext(turn.stream(refused))


@pytest.mark.parametrize("sync", [False, True])
async def test_a_request_that_cannot_be_shortened(sync: bool) -> None:
    options = IntegrationOptions(strategy=presets.token_budget(100_000), counter="chars/4", pin=lambda _: True)
    turn = await FrameworkConversations(options, openai_chat).turn(notes(30), sync=sync)
    refusal = TooLong("prompt is too long: 2000 tokens > 1000 maximum")
    with pytest.raises(BudgetUnsatisfiable) as raised:
        await turn.overflowed(refusal, sync=sync)
    assert raised.value.__cause__ is refusal


async def test_a_person_asks_for_compaction() -> None:
    """A turn with a focus compacts at once, even if the trigger is not met; so does the next turn after `compact_next`."""
    strategy = Summarization(trigger=tokens_exceed(100_000), keep=last(groups=1))
    conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, counter="chars/4"), openai_chat)
    assert (await conversations.turn(notes(30))).result.outcome == "unchanged"
    assert (await conversations.turn(notes(30), focus="the shop")).result.outcome == "compacted"
    conversations.compact_next("the shop", "a")
    outcomes = [(await conversations.turn(notes(30, start), key=key)).result.outcome for start, key in ((40, "b"), (80, "a"))]
    assert outcomes == ["unchanged", "compacted"]
    after = await conversations.turn(notes(30, 120), key="a")
    assert (after.result.outcome, after.index.context.overhead_tokens) == ("unchanged", 0)


def test_windows() -> None:
    """A window is a number of tokens from one on, the word auto, or unknown."""
    for window in (1, "auto", None):
        assert IntegrationOptions(strategy=STRATEGY, window=window).window == window
    for window in (0, "large"):
        with pytest.raises(ConfigurationError, match="window"):
            IntegrationOptions(strategy=STRATEGY, window=window)  # type: ignore[arg-type]


async def test_the_window_of_the_last_known_model_stays() -> None:
    """A request without a model's name leaves the window of the one before; an explicit window counts from the start."""
    for window, names, expected in (("auto", ("gpt-5", None), 272_000), (9_000, (None, "gpt-5"), 9_000)):
        options = IntegrationOptions(strategy=presets.token_budget(400), counter="chars/4", window=window)
        conversations = FrameworkConversations(options, openai_chat)
        for name in names:
            turn = await conversations.turn(notes(3), model=name)
            assert turn.index.context.window == expected


class Reporting(type(openai_chat)):  # type: ignore[misc]
    """A format whose messages carry their usage."""

    def reported_usage(self, raw: Any) -> Any:
        return raw.get("usage")


def reply(tokens: int | None) -> list[dict[str, Any]]:
    """Return a question and its answer, for which a provider reported so many tokens."""
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens}}
    return [*notes(1), {"role": "assistant", "content": "Yes.", **usage}]


@pytest.mark.parametrize(("kept", "usages", "tokens"), [(500, None, 500), (None, [None, {"prompt_tokens": 900}], 900)])
async def test_usage_in_the_history_corrects_the_counts(kept: Any, usages: Any, tokens: int) -> None:
    """A new process counts with the usage that the host kept; later, with that of the reply which came with the next call."""
    options = IntegrationOptions(strategy=presets.token_budget(100_000), counter="chars/4")
    conversations, history = FrameworkConversations(options, Reporting()), reply(kept)
    turn = await conversations.turn(history, usages=usages)
    assert turn.index is not None
    assert tokens < turn.index.tokens < tokens + 40
    for size, about in ((None, tokens), (4_000, 4_000), (None, 4_000)):
        history += reply(size)
        await conversations.turn(history)
        assert about < turn.index.tokens < about + 100


async def test_zeros_hide_no_report() -> None:
    """Zeros, which frameworks show where a provider reports nothing, are passed over, so that the newest real report counts."""
    options = IntegrationOptions(strategy=presets.token_budget(100_000), counter="chars/4")
    turn = await FrameworkConversations(options, Reporting()).turn([*reply(500), *reply(0), *reply(900)])
    assert turn.index is not None
    assert 900 < turn.index.tokens < 940


def test_a_copy_has_the_configuration() -> None:
    """A copy, or a pickled one, starts without conversations, with the same options, format and store."""
    options = IntegrationOptions(strategy=presets.token_budget(400), counter="chars/4")
    conversations = FrameworkConversations(options, openai_chat)
    unawaited(conversations.turn(notes(30), sync=True))
    for copied in (copy.deepcopy(conversations), pickle.loads(pickle.dumps(conversations))):
        assert (copied.options, copied.last) == (options, None)
        assert len(unawaited(copied.turn(notes(30), sync=True)).view) < 30


def test_tools_are_counted_again_only_if_they_change() -> None:
    """The schemas of the same tools are made once; other tools, also with equal schemas, are described again."""
    conversations = FrameworkConversations(
        IntegrationOptions(strategy=presets.token_budget(400), counter="chars/4"), openai_chat
    )
    tools, asked = [object(), object()], list[object]()
    assert conversations.count_tools([], str) == 0

    def schema(tool: object) -> dict[str, str]:
        asked.append(tool)
        return {"name": "look_up_price"}

    others = [tools[0], object()]
    counted = [conversations.count_tools(each, schema) for each in (tools, list(tools), others, others[:1], [])]
    assert counted[0] == counted[1] == counted[2] > counted[3] > counted[4] == 0
    assert len(asked) == 5
    assert conversations.count_messages([{"role": "user", "content": "word " * 80}]) == 104
    assert conversations.count("two words", [{"name": "x"}], None, "") == conversations.count('two words\n[{"name": "x"}]')


async def test_a_summarizer_that_failed_is_left_alone_for_a_while() -> None:
    """A summarizer that failed is not called until its pause is over, by the real clock unless another is given."""
    for clock, asked in ((time.time, 1), (iter(range(0, 10_000, 400)).__next__, 3), (None, 3)):
        scripted = Scripted(OSError("the server is down"))
        strategy = Summarization(scripted, trigger=tokens_exceed(400), keep=last(groups=1))
        given = {} if clock is time.time else {"clock": clock}
        conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, counter="chars/4", **given), openai_chat)
        for turn in range(3):
            assert (await conversations.turn(notes(20 + turn))).view == notes(20 + turn)
        assert len(scripted.requests) == asked
