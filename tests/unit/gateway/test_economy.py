"""The gateway compacts where it must, or where compaction costs less than the prompt cache that it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction import CompactionSession, Drop, MessageIndex, last
from compaction.gateway.economy import never_dearer
from compaction.strategies import Clip, Summarization, Truncation
from compaction.triggers import always, tokens_below, tokens_exceed
from tests.support.gateways import tool_chat

WINDOW = 10_000
EARLY = Truncation(trigger=tokens_exceed(1_000), target=tokens_below(800), keep=last(groups=1))


def sent(strategy: Any, messages: list[Any], window: int = WINDOW) -> list[int]:
    """Return the number of messages in each request of a growing conversation."""
    session = CompactionSession(never_dearer(strategy, window), counter="chars/4", clock=None, window=window)
    return [len(session.view_sync(messages[:count])) for count in range(1, len(messages) + 1, 2)]


def test_what_fits_is_not_cut_where_the_strategy_would() -> None:
    """While a request fits, a cut waits until the expected calls make up for its cost."""
    messages = tool_chat(40, words=90)
    plain = CompactionSession(EARLY, counter="chars/4", clock=None)
    eager = [len(plain.view_sync(messages[:count])) for count in range(1, len(messages) + 1, 2)]
    first_cuts = [
        next(place for place, count in enumerate(found) if count != 2 * place + 1) for found in (eager, sent(EARLY, messages))
    ]
    assert first_cuts[1] > first_cuts[0] + 2


def test_what_does_not_fit_is_cut_whatever_the_strategy_does() -> None:
    """Requests stay within the window even if the strategy makes no edits."""

    def idle(index: MessageIndex) -> Iterator[Drop]:
        yield from ()

    session = CompactionSession(never_dearer(idle, WINDOW), counter="chars/4", clock=None, window=WINDOW)
    messages = tool_chat(80, words=90)
    for count in range(1, len(messages) + 1, 2):
        session.view_sync(messages[:count])
        assert session.index.tokens <= WINDOW


def test_what_was_never_cached_is_cut_at_once() -> None:
    """A new result that is too large is shortened at once, as nothing after it is cached."""
    messages = tool_chat(3, words=20)
    messages[-1] = {**messages[-1], "content": "word " * 4_000}
    strategy = never_dearer(Clip(tokens=500, trigger=always), WINDOW)
    session = CompactionSession(strategy, counter="chars/4", clock=None, window=WINDOW)
    view = session.view_sync(messages)
    assert view[:-1] == messages[:-1]
    assert len(view[-1]["content"]) < 3_000


def test_an_old_result_is_not_shortened_for_little() -> None:
    """An old result is not shortened for a small saving, as that would break the cache for everything after it."""
    messages = tool_chat(12, words=80)
    messages[2] = {**messages[2], "content": "word " * 700}
    assert sent(Clip(tokens=500, trigger=tokens_exceed(4_000)), messages) == list(range(1, len(messages) + 1, 2))
    session = CompactionSession(
        never_dearer(Clip(tokens=500, trigger=tokens_exceed(4_000)), WINDOW), counter="chars/4", clock=None
    )
    assert session.view_sync(messages)[2] is messages[2]


def test_a_cut_that_saves_much_for_many_calls_is_made() -> None:
    """A cut with a large saving is made early in a large window, as the remaining calls make up for its cost."""
    messages = tool_chat(90, words=40)
    messages[2] = {**messages[2], "content": "word " * 20_000}
    strategy = Clip(tokens=500, trigger=tokens_exceed(27_000))
    session = CompactionSession(never_dearer(strategy, 100_000), counter="chars/4", clock=None, window=100_000)
    views = [session.view_sync(messages[:count]) for count in range(3, len(messages) + 1, 2)]
    assert len(views[0][2]["content"]) == 100_000
    assert len(views[-1][2]["content"]) < 3_000


def test_after_a_pause_there_is_no_cache_to_break() -> None:
    """After a pause long enough for the cache to expire, a request is cut even if it fits."""
    now = [0.0]
    messages = tool_chat(8, words=90)
    session = CompactionSession(never_dearer(EARLY, WINDOW), counter="chars/4", clock=lambda: now[0], window=WINDOW)
    assert session.view_sync(messages) == messages
    now[0] = 4_000.0
    assert len(session.view_sync([*messages, {"role": "user", "content": "go on"}])) < len(messages)


@pytest.mark.parametrize("is_necessary", [False, True])
def test_a_model_is_asked_only_when_its_summary_is_used(is_necessary: bool) -> None:
    """A summarizing model is called only if its summary is needed, and not for a trial."""
    asked: list[str] = []

    class Model:
        def generate(self, prompt: str) -> str:
            asked.append(prompt)
            return "A summary."

    strategy = Summarization(Model(), trigger=tokens_exceed(1_000), keep=last(groups=2))
    session = CompactionSession(never_dearer(strategy, WINDOW), counter="chars/4", clock=None, window=WINDOW)
    messages = tool_chat(100 if is_necessary else 6, words=90)
    session.view_sync(messages)
    assert bool(asked) == is_necessary
