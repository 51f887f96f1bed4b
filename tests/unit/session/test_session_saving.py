"""A store that fails: it is reported, the view is not affected, and the next call saves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction.errors import StateError
from compaction.formats import MessageFormat, OpenAIChat
from compaction.index import MessageIndex
from compaction.session import CompactionSession, SessionPool
from compaction.stores import SessionStore
from tests.support.conversion import convert
from tests.support.scripted import Scripted
from tests.support.session_runs import FailingStore
from tests.unit.session.test_session import chat, cut, session, summarizing

WARNING = "FailingStore failed (StateError('the disk is full')): the session is not saved; the next call tries again"
FAILURE = "FailingStore: StateError('the disk is full'); the session is not saved; the next call tries again"


async def test_a_save_that_fails_is_said_and_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    """The view is sent; the next call saves although it compacts nothing; a restart requests no second summary."""
    store, scripted, calm = FailingStore(0), Scripted("Round."), session(summarizing(Scripted("Round.")))
    watched = session(summarizing(scripted), store=store)
    with caplog.at_level(logging.WARNING, "compaction"):
        assert await watched.view(chat(9)) == await calm.view(chat(9))
    status = watched.status()
    assert (status.failures, status.outcome, status.compactions) == ((FAILURE,), "degraded", 1)
    assert [record.message for record in caplog.records] == [WARNING]
    assert store.load("default") is None
    more = [*chat(9), {"role": "user", "content": "and now?"}]
    expected = await calm.view(more)
    assert await watched.view(more) == expected
    assert (watched.status().failures, watched.status().outcome) == ((), "unchanged")
    again = session(summarizing(scripted), store=store)
    assert await again.view(more) == expected
    assert (len(scripted.requests), again.status().compactions) == (1, 1)


def test_nothing_is_saved_that_is_saved() -> None:
    store = FailingStore(0)
    watched = session(store=store)
    watched.view_sync(chat(2))
    watched.record_usage({"prompt_tokens": 1_000_000, "completion_tokens": 1})  # which nobody believes
    assert store.calls == []
    for _ in range(4):
        watched.view_sync(chat(12))
    assert store.calls == ["save", "save"]


@pytest.mark.parametrize("failing", [[0], [0, 1], [1]], ids=["anchor", "both", "whole"])
def test_reported_usage_that_is_not_saved(failing: list[int]) -> None:
    """`record_usage` does not raise if saving fails; the report counts, and the next call saves it."""
    store = FailingStore(*failing)
    watched = session(store=store)
    assert watched.status().failures == ()
    watched.view_sync(chat(4))
    watched.record_usage({"prompt_tokens": watched.status().tokens + 300, "completion_tokens": 1})
    tokens = watched.status().tokens
    assert watched.status().failures == (FAILURE,)
    while watched.status().failures:
        watched.view_sync(chat(4))
    watched.record_usage({"prompt_tokens": tokens + 50, "completion_tokens": 1})
    assert store.calls == ["anchor", *["save"] * (1 if failing == [0] else 2), "anchor"]
    again = session(store=store)
    again.view_sync(chat(4))
    assert again.status().tokens == tokens + 50


def test_a_report_that_is_not_saved_before_the_first_run() -> None:
    """The status has the failure, although there is no result that could have it."""
    watched = session(store=FailingStore(0, 1))
    watched.record_usage({"prompt_tokens": 300, "completion_tokens": 1})
    assert (watched.last_result, watched.status().failures, watched.status().tokens) == (None, (FAILURE,), 300)


async def test_usage_reported_in_the_middle_of_a_call_saves_no_half_of_it(tmp_path: Path) -> None:
    """The running call saves a report; the edits of a failing call are not saved."""
    store = SessionStore(tmp_path / "sessions.db")

    def breaking(index: MessageIndex) -> Iterator[Any]:
        yield from cut()(index)
        watched.record_usage({"prompt_tokens": 900, "completion_tokens": 1})
        raise RuntimeError("in the middle")

    watched = CompactionSession(breaking, counter="chars/4", clock=None, store=store)
    with pytest.raises(RuntimeError):
        await watched.view(chat(12))
    assert store.load("default") is None
    watched.reconfigure(cut())
    await watched.view(chat(2))
    saved = store.load("default")
    assert saved is not None
    assert (saved["index"]["journal"], saved["anchor"] is None) == ([], False)


def test_a_report_during_a_call_saves_only_the_anchor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the call, which holds the session; the whole session, which grows, only if something else changed."""
    store, saved = SessionStore(tmp_path / "sessions.db"), list[str]()
    for name in ("save", "save_anchor"):
        plain = getattr(SessionStore, name)
        monkeypatch.setattr(SessionStore, name, lambda *args, plain=plain, name=name: saved.append(name) or plain(*args))
    pool = SessionPool(summarizing(Scripted()), store=store, counter="chars/4", clock=None)
    for turns in (1, 2, 3):
        with pool.call_sync(chat(turns)) as talk:
            talk.compact_due_sync()
            talk.record_usage({"prompt_tokens": talk.index.included.tokens + 70 + turns, "completion_tokens": 1})
        assert (store.load(talk.id) or {})["anchor"] == 70 + turns
    assert saved[-2:] == ["save_anchor", "save_anchor"]
    assert saved.count("save") <= 1


def test_loading_that_fails_raises(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.db")
    store.save("default", {"version": 1, "index": {}})
    with pytest.raises(StateError):
        session(store=store)
    (tmp_path / "sessions.db").write_bytes(b"no database " * 500)
    with pytest.raises(StateError):
        session(store=store)


@pytest.mark.parametrize(
    "changes",
    [
        *({"version": None}, {"version": 99}, {"index": []}, {"index": None}, {"pauses": [1]}),
        *({"anchor": "x"}, {"anchor": True}, {"anchor": 1.0}, {"compactions": True}, {"compactions": -1}),
        *({"pauses": {"failures": {"x": value}}} for value in ([True, 0], [1, float("nan")], [1, 10**400])),
    ],
    ids=str,
)
def test_values_of_another_type(changes: dict[str, Any]) -> None:
    """Saved data of another version or shape raises a typed error; numbers must be finite and not booleans."""
    with pytest.raises(StateError):
        CompactionSession.from_dict({**session().to_dict(), **changes}, cut(), counter="chars/4")


def test_a_restored_session_keeps_its_id() -> None:
    """Its summaries are signed and its records stored under that name; another ``id`` may be given."""
    state, store = session(id="chat-7").to_dict(), FailingStore()
    resumed = CompactionSession.from_dict(state, cut(), counter="chars/4", clock=None, store=store)
    resumed.view_sync(chat(9))
    assert (resumed.id, store.load("default"), store.load("chat-7")) == ("chat-7", None, resumed.to_dict())
    assert CompactionSession.from_dict(state, cut(), id="chat-8").id == "chat-8"


def test_what_a_saved_state_need_not_have() -> None:
    """A saved state is a mapping, of which only the version and the index are required."""
    state = session().to_dict()
    resumed = CompactionSession.from_dict({key: state[key] for key in ("version", "index")}, cut(), counter="chars/4", id="a")
    assert (resumed.revision, resumed.status().compactions, resumed.provider_reports) == ("a:0", 0, session().provider_reports)
    with pytest.raises(StateError, match="version=None"):
        CompactionSession.from_dict([state], cut())  # type: ignore[arg-type]


class Own(OpenAIChat):
    """A format that is not built in."""

    name = "own"


@pytest.mark.parametrize("format", [None, Own()])
def test_a_saved_session_is_read_in_its_format(format: MessageFormat | None) -> None:
    """It is the one that the session was given, or else the one that it detected."""
    messages = convert(chat(9), to="anthropic") if format is None else chat(9)
    watched = session(format=format)
    view = watched.view_sync(messages)
    resumed = CompactionSession.from_dict(watched.to_dict(), cut(), counter="chars/4", format=format)
    assert resumed.view_sync(messages) == view != messages
    assert resumed.index.format.name == ("anthropic" if format is None else "own")


async def test_a_failure_is_saved_though_nothing_changed() -> None:
    """A pause after a failure also holds in another process."""
    failing = Scripted(RuntimeError("down"))
    store = FailingStore()
    await session(summarizing(failing), store=store).view(chat(9))
    await session(summarizing(failing), store=store).view(chat(9))
    assert (store.calls, len(failing.requests)) == (["save"], 1)


def test_usage_reported_in_a_call_saves_what_the_call_could_not() -> None:
    """The process may end before the next call."""
    store = FailingStore(0)
    talk = session(store=store)
    with talk.lock.thread:
        talk.follow(chat(9))
        assert talk.compact_due_sync().edits
        talk.save_late_report()  # without a report, the next call tries again
        assert (store.calls, store.load("default")) == (["save"], None)
        talk.record_usage({"prompt_tokens": 300, "completion_tokens": 1})
        talk.save_late_report()
    saved = store.load("default")
    assert saved is not None
    assert saved["compactions"] == 1


def test_a_report_is_saved_though_this_session_saved_the_same_one_before(tmp_path: Path) -> None:
    """Another process may have saved another one since, or deleted the session."""
    store = SessionStore(tmp_path / "sessions.db")

    def report(talk: CompactionSession, tokens: int) -> dict[str, Any] | None:
        talk.view_sync(chat(2))
        talk.record_usage({"prompt_tokens": talk.index.included.tokens + tokens, "completion_tokens": 1})
        return store.load("default")

    one, other = session(store=store), session(store=store)
    anchors = [report(talk, tokens) for talk, tokens in ((one, 70), (other, 90), (one, 70))]
    assert [saved and saved["anchor"] for saved in anchors] == [70, 90, 70]
    store.delete("default")
    assert report(one, 70) is not None


@pytest.mark.parametrize("name", ["id", "index"])
def test_a_session_keeps_its_name_and_its_index(name: str) -> None:
    """The name is also in signatures and in the store; the index in the state that a call returns to."""
    with pytest.raises(AttributeError):
        setattr(session(), name, None)
