"""The engine in a host's loop: it compacts while that has an effect, and removes more after a refusal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from compaction import last, validate
from compaction.errors import SummaryFailed
from compaction.integrations.hermes import CompactionEngine, EngineSettings
from compaction.integrations.hermes.engine import Progress
from compaction.strategies import Truncation
from compaction.testing import agent_session
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.hosts import Chat, requests, tokens_of
from tests.support.scripted import Scripted

SMALL = EngineSettings(threshold=0.5, protect_last_n=4)
CHAT = agent_session(200, lines=20)


class Clock:
    """A clock that stands still until its time is set. Holds state: the time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def engine(settings: EngineSettings | None = None, **options: Any) -> CompactionEngine:
    return CompactionEngine(settings, **{"context_length": 32_000, "counter": "chars/4", **options})


def calls(number: int, lines: int) -> Chat:
    """Return a generated session that ends with this many calls of the model."""
    chat = agent_session(3 * number, lines=lines)
    answers = [place for place, message in enumerate(chat) if message["role"] == "assistant"]
    return chat[: answers[number - 1] + 1]


class TestLongRun:
    """120 calls at default settings, where the twenty protected messages alone exceed a small window's threshold."""

    @pytest.mark.parametrize(("window", "lines"), [(16_000, 150), (64_000, 40)])
    def test_stays_inside(self, window: int, lines: int) -> None:
        """Every request is valid and uses at most 75 % of the window, with tool results of 700 to 2,600 tokens."""
        made = engine(context_length=window)
        sizes: list[int] = []
        for request in requests(made, calls(120, lines)):
            assert validate(request) == []
            sizes.append(tokens_of(request))
        assert len(sizes) == 120
        assert max(sizes) <= 0.75 * window
        assert made.last_error is None or "would save nothing" in made.last_error

    @pytest.mark.parametrize(
        "answer", ["## Goal\nFind the time-outs.", SummaryFailed("the server is away")], ids=["model", "broken"]
    )
    def test_with_a_summarizer(self, answer: Any) -> None:
        """With a summarizer, working or failing, every request fits; a failing one is not called again during its pause."""
        clock = Clock()
        summarizer = Scripted(answer)
        made = engine(context_length=16_000, summarizer=summarizer, clock=clock)
        assert max(tokens_of(request) for request in requests(made, calls(160, 2))) <= 16_000  # no result to clear
        assert summarizer.requests
        if isinstance(answer, Exception):
            assert len(summarizer.requests) == 1

    @pytest.mark.parametrize("ratio", [2.1, 0.5])
    def test_another_count(self, ratio: float) -> None:
        """If the provider counts twice or half as many tokens, every request still fits its window."""
        made = engine()
        sizes = [
            int(tokens_of(request) * ratio)
            for request in requests(made, calls(120, 60), lambda view: int(tokens_of(view) * ratio))
        ]
        assert max(sizes) <= 32_000


class TestProgress:
    """When the engine starts to wait after compactions without effect, and how long it waits."""

    def stuck(self) -> CompactionEngine:
        """Return an engine after two compactions that left the reported tokens above the threshold of 4,000."""
        made = engine(SMALL, context_length=8_000)
        view: Chat = []
        for start in (0, 100):
            view = made.compress([*view, *CHAT[start : start + 100]])
            made.update_from_response({"prompt_tokens": 5_000})
        return made

    def test_waits_for_something_new(self) -> None:
        """The engine waits until new tokens exceed a tenth of the threshold, or the window is full."""
        made = self.stuck()
        assert (made.should_compress(), made.get_status()["waiting"]) == (False, True)
        due: list[bool] = []
        for tokens in (5_399, 5_400, 8_000):
            made.update_from_response({"prompt_tokens": tokens})
            due.append(made.should_compress())
        assert due == [False, True, True]

    def test_estimates(self) -> None:
        """A host's estimates are compared with its first estimate since the wait began, not with the provider's count."""
        made = self.stuck()
        assert [made.should_compress(tokens) for tokens in (6_500, 6_800, 6_900, 5_000)] == [False, False, True, False]
        made = self.stuck()
        assert [made.should_compress(tokens) for tokens in (7_900, 7_999, 8_000)] == [False, False, True]

    def test_next_strike(self) -> None:
        """A compaction after the wait that has no effect starts another wait, from the new size."""
        progress = Progress()
        for tokens in (5_000, 5_000, 5_600):
            progress.ran(changed=True)
            progress.reported(tokens, 4_000)
        waits: list[bool] = []
        for tokens in (5_900, 6_000):
            progress.reported(tokens, 4_000)
            waits.append(progress.waits(tokens, 4_000, window=8_000))
        assert waits == [True, False]
        estimated = [progress.waits(tokens, 4_000, window=8_000) for tokens in (6_100, 6_499, 6_500)]
        progress.ran(changed=True)
        progress.reported(6_200, 4_000)
        assert [*estimated, progress.waits(6_600, 4_000, window=8_000)] == [True, True, False, True]

    def test_no_op_and_no_report_are_no_strike(self) -> None:
        """A run that changed nothing does not count as useless; a response without usage changes no count."""
        made = engine(SMALL, context_length=8_000)
        short = CHAT[:3]
        for _ in range(5):
            assert made.compress(short, current_tokens=5_000) is short
            made.update_from_response({"prompt_tokens": 5_000})
        assert made.should_compress(5_000) is True
        made = self.stuck()
        made.update_from_response({})
        assert made.should_compress(5_000) is False


class TestRefused:
    """A call of ``compress`` that was not due: the provider refused the request as too long."""

    def sent(self, **options: Any) -> tuple[CompactionEngine, Chat]:
        """Return an engine, and a request that it considers short enough."""
        made = engine(**options)
        view = calls(30, 20)
        made.update_from_response({"prompt_tokens": tokens_of(view[:-2])})
        assert made.should_compress(tokens_of(view)) is False
        return made, view

    def test_half(self) -> None:
        """After each refusal at most half of the messages' tokens are kept, and the list is valid."""
        made, view = self.sent()
        for _ in range(3):
            before = tokens_of(view)
            view = made.compress(view)
            assert tokens_of(view) <= before / 2
            assert validate(view) == []
            made.last_prompt_tokens = -1  # Hermes' mark for usage that was not reported yet

    def test_first_call(self) -> None:
        """If usage was never reported, ``compress`` follows its settings and does not halve the conversation."""
        made = engine(EngineSettings(protect_last_n=40), context_length=64_000)
        view = calls(30, 20)
        assert tokens_of(made.compress(view)) > tokens_of(view) / 2

    def test_pipeline(self) -> None:
        """After a refusal, a custom pipeline that changes nothing is followed by the last resort; otherwise it is not."""
        pipeline = Truncation(trigger=tokens_exceed(50_000), target=tokens_below(45_000), keep=last(groups=2))
        made, view = self.sent(strategy=pipeline)
        out = made.compress(view)
        assert tokens_of(out) <= tokens_of(view) / 2
        assert made.should_compress(20_000) is True
        longer = [*out, *view[1:]]
        assert made.compress(longer) is longer  # the last resort was for once
        assert engine(strategy=pipeline).compress(view) is view

    def test_much_beside_the_messages(self) -> None:
        """If tools alone take more than the threshold, a quarter of the messages' tokens may stay, and nothing is lost."""
        made, view = engine(context_length=8_000), calls(20, 20)
        made.update_from_response({"prompt_tokens": 10_000})
        out = made.compress(view)
        assert made.session.index.context.overhead_tokens > made.threshold_tokens
        assert (len(out) > 5, made.last_error) == (True, None)
        made = engine(context_length=16_000)
        made.update_from_response({"prompt_tokens": 6_000})
        assert tokens_of(made.compress(view)) > tokens_of(view) / 4  # half of them may stay

    def test_nothing_left(self) -> None:
        """If nothing more can be removed, the list is unchanged and ``last_error`` says what uses the space."""
        made = engine()
        short: Chat = [{"role": "user", "content": "hello"}]
        made.update_from_response({"prompt_tokens": 40_000})
        for compress in (made.compress, partial(anyio.run, made.compress_async)):
            made.last_error = None
            assert compress(short) is short
            assert "nothing more can be removed" in str(made.last_error)
            assert "user" in str(made.last_error)

    def test_source_again(self) -> None:
        """If the engine gets the original messages again after refusals, it returns a shortened list."""
        made, view = self.sent()
        out = made.compress(view)
        for _ in range(9):
            made.last_prompt_tokens = -1
            out = made.compress(view)
        assert len(out) < len(view) / 2

    def test_store(self, tmp_path: Path) -> None:
        """With a store, messages are stored before the last resort removes them."""
        made, view = self.sent(settings=EngineSettings(store=tmp_path / "store.db"))
        made.on_session_start("kim")
        made.update_from_response({"prompt_tokens": 9_000})
        out = made.compress(view)
        assert tokens_of(out) <= tokens_of(view) / 2
        assert made.store is not None
        kept = {id(message) for message in out}
        stored = made.store.describe("kim")
        assert sum(tally.messages for tally in stored.tallies) >= sum(id(message) not in kept for message in view)


class TestUsage:
    """The session counts tokens with the provider's reports."""

    def test_another_model(self) -> None:
        """After a switch the old model's report no longer counts, but an estimate; a refusal of the new model is one again."""
        made, view = engine(), calls(30, 20)
        made.update_from_response({"prompt_tokens": tokens_of(view[:-1]) + 9_000})
        made.should_compress(40_000)
        made.update_model("m", 32_000)
        made.compress(view, current_tokens=tokens_of(view) + 3_000)
        assert made.session.index.context.overhead_tokens == 3_000
        made.update_from_response({"prompt_tokens": 9_000})
        before = tokens_of(view)
        made.should_compress(40_000)
        made.update_model("m", 32_000)
        made.update_from_response({"prompt_tokens": 9_000})
        assert tokens_of(made.compress(view)) <= before / 2
