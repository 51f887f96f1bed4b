"""A trial of a call leaves no trace, and a session can be discarded."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from compaction import SessionPool, last
from compaction.errors import StrategyError
from compaction.index import Drop, Request
from compaction.session import SaveFailed
from compaction.stores import SessionStore, SQLiteStore
from compaction.strategies import Offload, SlidingWindow, Summarization, Truncation
from compaction.summarizers import DigestSummarizer
from compaction.triggers import every, tokens_below, tokens_exceed
from tests.support.chats import tool_turns, turns
from tests.support.scripted import Scripted

STRATEGY = Truncation(trigger=tokens_exceed(600), target=tokens_below(300), keep=last(groups=1))


def pool_of(**options: Any) -> SessionPool:
    return SessionPool(STRATEGY, counter="chars/4", clock=None, **options)


@pytest.fixture
def chat() -> list[Any]:
    return tool_turns(12)


def test_a_trial_shows_what_a_call_would_send(chat: list[Any], tmp_path: Path) -> None:
    """A trial works for a new, known, continued, forked and saved list; nothing is reported or saved."""
    told: list[object] = []
    store = SessionStore(tmp_path / "s.db")
    pool = pool_of(store=store, on_event=told.append)
    middle = chat[: len(chat) // 2 * 2]
    for given in (middle, middle, chat, [*chat[:-1], {"role": "user", "content": "Another way."}]):
        before, saved = len(told), store.in_scope(pool._space(""))
        tried = pool.trial(given).compact_due_sync().messages
        assert len(told) == before
        assert store.in_scope(pool._space("")) == saved
        assert pool.view_sync(given) == tried
    again = pool_of(store=store)
    assert again.trial(chat).compact_due_sync().messages == pool.trial(chat).compact_due_sync().messages
    assert len(again) == 0


def test_a_trial_reports_no_saved_session_that_cannot_be_read(chat: list[Any], tmp_path: Path) -> None:
    """A call reports it, once."""
    told: list[Any] = []
    store = SessionStore(tmp_path / "s.db")
    pool_of(store=store).view_sync(chat, "kim")
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("UPDATE sessions SET state = ?", (json.dumps({"version": 99}),))
    pool = pool_of(store=store, on_event=told.append)
    pool.trial(chat, "kim").compact_due_sync()
    assert told == []
    pool.view_sync(chat, "kim")
    assert [event.session for event in told if isinstance(event, SaveFailed)] == ["kim"]


def test_a_fork_leaves_the_session_that_shares_most(chat: list[Any]) -> None:
    """Another session that shares only the first messages, or only the newest, is not its parent."""
    pool = pool_of()
    pool.view_sync(chat)
    pool.view_sync([*chat, {"role": "user", "content": "This way."}])
    pool.view_sync([*chat[:1], {"role": "user", "content": "Another start."}])
    assert len(pool) == 2
    assert pool.trial([*chat, {"role": "user", "content": "Another way."}]).index.edit_count > 0
    newest = [{"role": role, "content": "ok"} for role in ("user", "assistant", "user")]
    pool.view_sync([*chat[:1], {"role": "assistant", "content": "Hello."}, *newest])
    assert pool.trial([*chat, *newest]).index.edit_count > 0


async def test_a_call_and_a_trial_count_the_overhead_that_is_named(chat: list[Any]) -> None:
    """Without ``overhead_tokens``, only the messages count."""
    for named in ({}, {"overhead_tokens": 70}):
        overhead = named.get("overhead_tokens", 0)
        assert pool_of().trial(chat, **named).index.context.overhead_tokens == overhead
        with pool_of().call_sync(chat, **named) as session:
            assert session.index.context.overhead_tokens == overhead
        async with pool_of().call(chat, **named) as session:
            assert session.index.context.overhead_tokens == overhead


def test_a_trial_calls_no_model_and_stores_nothing(chat: list[Any], tmp_path: Path) -> None:
    """Summaries of a model have the largest size, digests are written, offloaded messages are not stored, others fail."""
    scripted = Scripted("Done.")
    records = SQLiteStore(tmp_path / "records.db")
    many = {"trigger": tokens_exceed(600), "keep": last(groups=2)}
    for strategy in (Summarization(scripted, **many), Offload(records, **many) >> Summarization(DigestSummarizer(), **many)):
        pool = SessionPool(strategy, counter="chars/4", clock=None)
        tried, asked = pool.trial(chat), len(scripted.requests)
        result = tried.compact_due_sync()
        assert result.edits
        assert not result.failures
        assert (len(scripted.requests), records.describe(tried.id).tallies, len(pool)) == (asked, (), 0)
        sent = pool.view_sync(chat)
        assert [each["role"] for each in sent] == [each["role"] for each in result.messages]
    assert len(scripted.requests) == 1

    def asks(index: Any) -> Any:
        yield Other()

    with pytest.raises(StrategyError, match="Other cannot be rehearsed"):
        SessionPool(asks, counter="chars/4").trial(chat).compact_due_sync()


class Other(Request):
    def call(self) -> Any:
        raise AssertionError


def test_a_session_is_discarded(chat: list[Any]) -> None:
    pool = pool_of()
    with pool.call_sync(chat) as session:
        assert not pool.discard(session.id)
    assert (pool.discard(session.id), pool.discard(session.id), len(pool), pool.bytes) == (True, False, 0, 0)
    assert pool.view_sync(chat)


def test_a_trial_decides_as_the_call_that_passes_an_earlier_view() -> None:
    """Messages that the host no longer passes count for both, and so do the edits that removed them."""
    pool = SessionPool(SlidingWindow(trigger=every(turns=4), keep=last(turns=5)), counter="chars/4", clock=None)
    given = [*pool.view_sync(turns(12, words=40)), {"role": "user", "content": "And now?"}]
    tried = pool.trial(given)
    with pool.call_sync(given) as session:
        assert tried.index.total == session.index.total
        assert tried.index.edit_count == session.index.edit_count > 0
        assert tried.compact_due_sync().outcome == session.compact_due_sync().outcome == "unchanged"


def test_a_trial_pauses_after_useless_runs_as_a_call_does() -> None:
    def nibble(index: Any) -> Any:
        yield Drop(index.removable_ids()[:1], "the oldest")

    pool = SessionPool(nibble, counter="chars/4", clock=None)
    for count in range(40, 46):
        chat = turns(count, words=32)
        tried = pool.trial(chat).compact_due_sync()
        assert pool.view_sync(chat) == tried.messages
    assert tried.outcome == "unchanged"
