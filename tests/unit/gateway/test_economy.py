"""The gateway compacts where it must, or where compaction costs less than the prompt cache that it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction import CompactionSession, Drop, MessageIndex, RunContext, last
from compaction.gateway.economy import never_dearer
from compaction.stores import StoreRequest
from compaction.strategies import Clip, Summarization, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import always, tokens_below, tokens_exceed
from tests.support.gateways import tool_chat
from tests.support.scripted import Scripted

WINDOW = 10_000
EARLY = Truncation(trigger=tokens_exceed(1_000), target=tokens_below(800), keep=last(groups=1))


def test_what_does_not_fit_is_cut_whatever_the_strategy_does() -> None:

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


@pytest.mark.parametrize("seconds", [300, 301])
def test_after_a_pause_there_is_no_cache_to_break(seconds: float) -> None:
    """After a pause of more than five minutes, in which the cache expires, a request is cut even if it fits."""
    now = [0.0]
    messages = tool_chat(8, words=90)
    session = CompactionSession(never_dearer(EARLY, WINDOW), counter="chars/4", clock=lambda: now[0], window=WINDOW)
    assert session.view_sync(messages) == messages
    now[0] += seconds
    messages.append({"role": "user", "content": "go on"})
    assert (len(session.view_sync(messages)) < len(messages)) is (seconds > 300)


@pytest.mark.parametrize("is_necessary", [False, True])
def test_a_model_is_asked_only_when_its_summary_is_used(is_necessary: bool) -> None:
    summarizer = Scripted("A summary.")
    strategy = Summarization(summarizer, trigger=tokens_exceed(1_000), keep=last(groups=2))
    session = CompactionSession(never_dearer(strategy, WINDOW), counter="chars/4", clock=None, window=WINDOW)
    messages = tool_chat(100 if is_necessary else 6, words=90)
    session.view_sync(messages)
    assert bool(summarizer.requests) == is_necessary


def chat(*tokens: int) -> MessageIndex:
    """A conversation that begins with the user, with so many tokens in each message."""
    roles = ("user", "assistant") * len(tokens)
    messages = [{"role": role, "content": "word" * (count - 4)} for role, count in zip(roles, tokens, strict=False)]
    return MessageIndex(messages, counter="chars/4")


def drop_the_second(index: MessageIndex) -> list[Drop]:
    return [Drop([1, 2], reason="old")]


@pytest.mark.parametrize(
    ("tokens", "pays"),
    [
        # 1,000 tokens behind the cut are read again, and 1.5 calls are expected: it must save 3,600
        ((100, 3_400, 208, 500, 500, 50, 300), True),
        ((100, 3_400, 192, 500, 500, 50, 300), False),
        # 500 tokens are read again, and there is room for 0.38 calls: it must save 3,266
        ((3_800, 3_200, 200, 250, 250, 50, 1_250), True),
        ((4_100, 2_900, 200, 250, 250, 50, 1_250), False),
        # the same, but the newest messages are in the step of the last trial
        ((100, 3_400, 208, 500, 500, 50, 100), False),
        ((3_600,), False),
    ],
)
def test_a_cut_pays_if_the_calls_that_are_left_earn_it_back(tokens: tuple[int, ...], pays: bool) -> None:
    """It depends on the tokens to read again, the tokens that each call saves, and the calls until the window is full."""
    strategy = drop_the_second if len(tokens) > 2 else EARLY
    assert never_dearer(strategy, WINDOW).trigger(chat(*tokens)) is pays


def test_a_smaller_window_of_the_conversation_leaves_less_room() -> None:
    """A window that was learned since counts, not only the one that the strategy was made for."""
    messages = chat(3_800, 3_200, 200, 250, 250, 50, 1_250).messages()
    trigger = never_dearer(drop_the_second, WINDOW).trigger
    found = [trigger(MessageIndex(messages, counter="chars/4", context=RunContext(window=size))) for size in (9_010, 50_000)]
    assert found == [False, True]


def test_trials_are_few() -> None:
    """One for every twentieth of the window that the conversation grows, whatever the number of calls."""
    tried: list[int] = []

    def strategy(index: MessageIndex) -> list[Drop]:
        tried.append(index.tokens)
        return []

    trigger = never_dearer(strategy, WINDOW).trigger
    assert not any(trigger(chat(*[100] * count)) for count in range(1, 31, 2))
    assert tried == [500, 1_100, 1_500, 2_100, 2_500]
    for first, is_tried in ((492, False), (491, True)):  # what was cached is in the first step, or before it
        tried.clear()
        trigger(chat(first, 100, 50))
        trigger(chat(first + 1))
        assert bool(tried) is is_tried


def test_the_trial_of_a_summary_takes_its_budget_into_account() -> None:
    """A strategy that first stores something is not tried; an empty conversation has nothing to try."""
    index = chat(100, 3_400, 208, 500, 500, 50, 300)

    def strategy(request: Any) -> Any:
        def steps(index: MessageIndex) -> Any:
            yield request

        return never_dearer(steps, WINDOW).trigger(index)

    first, second, third, *rest = index.included_groups
    summary: dict[str, Any] = {"summarizer": None, "groups": (second, third), "counter": index.counter, "kept": (first, *rest)}
    assert strategy(SummaryRequest(**summary, budget=1)) is True
    assert strategy(SummaryRequest(**summary, budget=100)) is False
    nowhere: Any = None
    assert strategy(StoreRequest(store=nowhere, session="s", records=())) is False
    now = [0.0]
    session = CompactionSession(never_dearer(EARLY, WINDOW), counter="chars/4", clock=lambda: now[0])
    for now[0] in (0.0, 1_000.0):
        assert session.view_sync([]) == []


def test_a_strategy_of_the_economy_is_described() -> None:
    assert never_dearer(EARLY, 1).trigger.token_limit(None) == 1
    assert repr(never_dearer(EARLY, WINDOW, cached=0.25).trigger).endswith(f"pays({EARLY!r}, 9850, 0.25)")
    assert "it saves more than the prompt cache" in never_dearer(EARLY, WINDOW).trigger.explain(chat(100))
