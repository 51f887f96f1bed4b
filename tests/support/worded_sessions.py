"""Random sessions of an agent, to see whether what the user says ever leaves a request without a summary.

A session is drawn from a seed: sizes and shapes of results, the window, the preset, and a summarizer that may fail, say
nothing, say too much or be slow. ``problems(seed)`` runs one and returns what went wrong.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final

import anyio

from compaction import CompactionSession, presets
from compaction.errors import SummaryFailed
from compaction.strategies import Strategy
from compaction.summarizers import SummaryRequest
from compaction.testing.laws import lost_words

from .chats import assistant, call, result, system, user

WINDOWS: Final = (600, 1_000, 2_000, 4_000, 8_000, 20_000)
_WORDS: Final = (
    *("deploy", "the", "parser", "before", "noon", "check", "shelf", "nine", "amber", "copper"),
    *("velvet", "harbor", "willow", "ledger", "quartz", "signal", "orbit"),
)


class FaultySummarizer:
    """Answers each request in a way that is drawn at random: well, late, with nothing, with too much, or not at all."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def summarize(self, request: SummaryRequest) -> str:
        way = self._rng.randrange(6)
        if way == 0:
            raise RuntimeError("the server is gone")
        if way == 1:
            raise SummaryFailed("nothing usable")
        if way == 2:
            return " "
        if way == 3:
            return "and so on " * (request.budget + 500)
        return "They worked on the parser." if way == 4 else "The work went on. " * max(1, request.budget // 6)


class SlowSummarizer(FaultySummarizer):
    """The same, awaited; some answers come too late."""

    timeout_seconds = 0.001

    async def summarize(self, request: SummaryRequest) -> str:  # type: ignore[override]
        if self._rng.random() < 0.3:
            await anyio.sleep(5)
        return super().summarize(request)


def _preset(rng: random.Random, window: int) -> Strategy:
    name = rng.choice([*["adaptive", "hermes", "context_window"] * 3, "token_budget"])
    if name == "token_budget":
        return presets.token_budget(window // 2)
    if name == "context_window":
        return presets.context_window(window)
    summarizer = rng.choice([None, None, FaultySummarizer(rng), SlowSummarizer(rng)])
    if name == "adaptive":
        return presets.adaptive(window, summarizer)
    return presets.hermes(window, summarizer, on_failure=rng.choice(["keep", "digest"]))


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))


def _result(rng: random.Random, shape: str, window: int, number: int) -> str:
    if shape == "small":
        return f"ok {number} " + _text(rng, rng.randrange(0, 30))
    if shape == "same":
        return "the same result " * 40
    lines = rng.randrange(5, max(6, window // 30))
    return "\n".join(f"    value_{number}_{line} = compute({line}, {rng.randrange(99)})" for line in range(lines))


def messages_of(rng: random.Random, window: int) -> Iterator[dict[str, Any]]:
    """Yield a session: user messages of all sizes, and between them calls with results of one or several shapes."""
    yield system("You are an agent. " * rng.randrange(1, 6))
    shapes = rng.sample(["small", "file", "same"], rng.randrange(1, 4))
    number = 0
    for turn in range(rng.randrange(1, 9)):
        said = _text(rng, rng.choice([2, 8, 30, 120, max(2, window // 12)]))
        if rng.random() < 0.4:
            said += "\n\nRules:\n" + "\n".join(f"- {_text(rng, 6)}" for _ in range(rng.randrange(1, 8)))
        yield user(f"Task {turn}: {said}")
        for _ in range(rng.randrange(0, 18)):
            number += 1
            text, arguments = rng.choice([None, _text(rng, 12)]), json.dumps({"n": number})
            yield call(f"c{number}", name="read", arguments=arguments, text=text)
            yield result(f"c{number}", _result(rng, rng.choice(shapes), window, number))
        if rng.random() < 0.8:
            yield assistant(_text(rng, rng.randrange(3, 60)))


def problems(seed: int) -> list[str]:
    """Run the session of a seed; return each call after which words of the user were lost and ``failures`` did not say so."""
    rng = random.Random(seed)
    window = rng.choice(WINDOWS)
    messages = list(messages_of(rng, window))
    strategy = _preset(rng, window)
    session = CompactionSession(strategy, counter="chars/4", window=window, clock=lambda: 0.0)
    return anyio.run(_found, session, messages, seed)


async def _found(session: CompactionSession, messages: list[dict[str, Any]], seed: int) -> list[str]:
    found: list[str] = []
    reported: set[int] = set()
    for count in range(2, len(messages) + 1):
        if messages[count - 1]["role"] == "assistant":
            continue
        await session.view(messages[:count])
        result = session.last_result
        lost = set(lost_words(session.index)) - reported
        if lost and (result is None or not result.failures):
            found.append(f"seed {seed}, {count} messages: lost {sorted(lost)}")
        reported |= lost
    return found
