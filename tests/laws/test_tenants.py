"""No text of one conversation stands in a summary of another, whatever was raised while summaries were written."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import compaction
from compaction import CompactionSession, MessageIndex, presets
from compaction.session import SessionPool
from compaction.summarizers import DigestSummarizer, FactSummarizer, Summarizer, SummaryRequest
from compaction.summarizers.extractive.memory import Memories
from tests.support.chats import assistant, user
from tests.support.limits import seeds

PACKAGE = str(Path(compaction.__file__).parent)


class Interrupted(BaseException):
    """The exception of a time limit by signal: raised at any line, in any function."""


def raises_after(lines: int) -> Any:
    """Return a trace function that raises after so many lines of the package."""
    left = lines

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        left -= event == "line"
        if left == 0:
            raise Interrupted
        return trace

    return trace


def said_by(tenant: str, messages: int) -> list[dict[str, Any]]:
    """Return a conversation in which each message has the name of the tenant."""
    text = "The port of {0} is {1}000. Never touch {0}-{1}.db, and keep shelf {1} free."
    texts = [text.format(tenant, n) for n in range(messages)]
    return [user(text) if n % 2 == 0 else assistant(text) for n, text in enumerate(texts)]


def interrupt(rng: random.Random, most: int, call: Callable[[], object]) -> None:
    """Call a function and interrupt it after at most so many lines."""
    before = sys.gettrace()
    sys.settrace(raises_after(rng.randrange(1, most)))
    try:
        call()
    except Interrupted:
        pass
    finally:
        sys.settrace(before)


SUMMARIZERS: tuple[Summarizer, ...] = (DigestSummarizer(), DigestSummarizer(redact=str.strip), FactSummarizer())


@pytest.mark.parametrize("summarizer", SUMMARIZERS, ids=repr)
def test_no_text_crosses_between_requests(summarizer: Summarizer) -> None:
    """Interrupted at random lines, with the identities of earlier messages used again, a request reads its own messages."""
    check_requests(summarizer, random.Random(0), seeds(40, 120))


def check_requests(summarizer: Summarizer, rng: random.Random, tenants: Iterable[int]) -> None:
    """Summarize a conversation of each tenant, after an interrupted try; only its own words may stand in the summary."""
    for number in tenants:
        tenant = f"tenant{number:03}"
        index = MessageIndex(said_by(tenant, 3), counter="chars/4")
        about: Any = {"groups": index.included_groups, "counter": index.counter, "notes": index.notes}
        request = SummaryRequest(summarizer=summarizer, budget=300, **about)
        interrupt(rng, 1_500, partial(summarizer.summarize, request))
        text = str(summarizer.summarize(request))
        assert text.count("tenant") == text.count(tenant) > 0


def take_turns(rng: random.Random, sessions: dict[str, tuple[CompactionSession, list[dict[str, Any]]]]) -> None:
    """Have three turns of each session, some interrupted before; each view names only its own tenant."""
    for tenant, (session, messages) in sessions.items():
        for end in (10, 20, 30):
            if rng.random() < 0.5:
                interrupt(rng, 20_000, partial(session.view_sync, messages[:end]))
            text = str(session.view_sync(messages[:end]))
            assert text.count("tenant") == text.count(tenant) > 0


def test_no_text_crosses_between_sessions() -> None:
    """Two sessions take turns; one is dropped for a new one, interrupted while it goes; the other keeps its own words."""
    check_sessions(random.Random(1), seeds(15, 40))


def check_sessions(rng: random.Random, tenants: Iterable[int]) -> None:
    """Have a session of each tenant take turns with the one before it."""
    sessions: dict[str, tuple[CompactionSession, list[dict[str, Any]]]] = {}
    for number in tenants:
        tenant = f"tenant{number:03}"
        sessions[tenant] = CompactionSession(presets.token_budget(300), counter="chars/4"), said_by(tenant, 30)
        take_turns(rng, sessions)
        if len(sessions) > 1:
            interrupt(rng, 30, partial(sessions.pop, rng.choice(list(sessions))))


def test_what_is_forgotten_is_not_remembered() -> None:
    """After an index has forgotten a message, summarizers remember nothing of it."""
    messages = said_by("tenant", 6)
    index = MessageIndex(messages, counter="chars/4")
    memories = index.notes.of(Memories)
    index.forget(messages[:1])
    assert index.notes.of(Memories) is not memories


def indexes_alive() -> int:
    """Return how many conversations the process holds."""
    gc.collect()
    return sum(isinstance(each, MessageIndex) for each in gc.get_objects())


def test_a_long_lived_process_keeps_no_conversation() -> None:
    """Sessions that are gone, and those that a pool removed, leave nothing behind: what grows is a bounded cache of counts."""
    before = indexes_alive()
    pool = SessionPool(presets.token_budget(300), counter="chars/4", limit=2)
    for number in range(12):
        said = said_by(f"tenant{number:03}", 12)
        CompactionSession(presets.token_budget(300), counter="chars/4").view_sync(said)
        pool.view_sync(said)
    assert indexes_alive() <= before + 2
