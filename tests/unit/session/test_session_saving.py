"""A store that fails: it is reported, the view is not affected, and the next turn saves."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compaction.errors import StateError
from compaction.index import MessageIndex
from compaction.session import CompactionSession
from compaction.stores import SessionStore
from tests.support.scripted import Awaited, Scripted
from tests.unit.session.test_session import chat, cut, session, summarizing


class FailingStore(SessionStore):
    """A store that fails at given calls. Holds state: the number of saves."""

    def __init__(self, path: Path, *failing: int) -> None:
        super().__init__(path / "sessions.db")
        self.failing = set(failing)
        self.calls: list[str] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) - 1 in self.failing:
            raise StateError("the disk is full")

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        self._called("save")
        super().save(id, state)

    def save_anchor(self, id: str, anchor: int) -> bool:
        self._called("anchor")
        return super().save_anchor(id, anchor)


WARNING = "FailingStore failed (StateError('the disk is full')): the session is not saved; the next call tries again"
FAILURE = "FailingStore: StateError('the disk is full'); the session is not saved; the next call tries again"


async def test_a_save_that_fails_is_said_and_made_up_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The view is sent; the next turn saves although it compacts nothing; a restart requests no second summary."""
    store, scripted, calm = FailingStore(tmp_path, 0), Scripted("Round."), session(summarizing(Scripted("Round.")))
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
    again = session(summarizing(scripted), store=SessionStore(tmp_path / "sessions.db"))
    assert await again.view(more) == expected
    assert (len(scripted.requests), again.status().compactions) == (1, 1)


def test_the_result_says_so(tmp_path: Path) -> None:
    """The result names the failure and is degraded, or over_target, which is worse."""
    watched = session(store=FailingStore(tmp_path, 0, 1))
    result = watched.compact_sync(chat(12))
    assert [str(each.error) for each in result.failures] == ["the disk is full"]
    assert (result.outcome, bool(result.edits)) == ("degraded", True)
    watched.view_sync([{"role": "user", "content": "word " * 9_000}])
    assert watched.status().outcome == "over_target"
    assert watched.status().failures == (FAILURE,)


def test_nothing_is_saved_that_is_saved(tmp_path: Path) -> None:
    """A turn that compacts nothing writes nothing once everything is saved."""
    store = FailingStore(tmp_path, 0)
    watched = session(store=store)
    watched.view_sync(chat(2))
    assert store.calls == []
    for _ in range(4):
        watched.view_sync(chat(12))
    assert store.calls == ["save", "save"]


def test_it_is_tried_again_until_it_works(tmp_path: Path) -> None:
    """A failed save is tried again, once on each turn."""
    store = FailingStore(tmp_path, 0, 1, 2)
    watched = session(store=store)
    failures = [watched.view_sync(chat(12)) and len(watched.status().failures) for _ in range(5)]
    assert (failures, len(store.calls)) == ([1, 1, 1, 0, 0], 4)


@pytest.mark.parametrize("failing", [[0], [0, 1], [1]], ids=["anchor", "both", "whole"])
def test_reported_usage_that_is_not_saved(tmp_path: Path, failing: list[int]) -> None:
    """`record_usage` does not raise if saving fails; the report counts, and the next turn saves it."""
    store = FailingStore(tmp_path, *failing)
    watched = session(store=store)
    assert watched.status().failures == ()
    watched.view_sync(chat(4))
    watched.record_usage({"prompt_tokens": watched.status().tokens + 300, "completion_tokens": 1})
    tokens = watched.status().tokens
    assert watched.status().failures == (FAILURE,)
    while watched.status().failures:
        watched.view_sync(chat(4))
    again = session(store=SessionStore(tmp_path / "sessions.db"))
    again.view_sync(chat(4))
    assert again.status().tokens == tokens


def test_usage_before_the_first_view_that_is_not_saved(tmp_path: Path) -> None:
    """The status reports a failure to save before the first run."""
    watched = session(store=FailingStore(tmp_path, 0))
    watched.record_usage({"prompt_tokens": 30, "completion_tokens": 1})
    assert (watched.status().failures, watched.status().outcome) == ((FAILURE,), None)


def test_a_report_after_a_failed_save_saves_all(tmp_path: Path) -> None:
    """After a failure the whole session is saved, not only the anchor."""
    store = FailingStore(tmp_path, 1)
    watched = session(store=store)
    watched.view_sync(chat(9))
    watched.view_sync(chat(30))
    watched.record_usage({"prompt_tokens": watched.status().tokens, "completion_tokens": 1})
    assert (store.calls, watched.status().failures) == (["save"] * 3, ())
    assert session(store=store).status().compactions == 2


async def test_usage_reported_in_the_middle_of_a_turn_saves_no_half_of_it(tmp_path: Path) -> None:
    """The running turn saves a report; the edits of a failing turn are not saved."""
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


def test_loading_that_fails_raises(tmp_path: Path) -> None:
    """A store that cannot be read raises, because the session would otherwise decide again."""
    store = SessionStore(tmp_path / "sessions.db")
    store.save("default", {"version": 1, "index": {}})
    with pytest.raises(StateError):
        session(store=store)
    (tmp_path / "sessions.db").write_bytes(b"no database " * 500)
    with pytest.raises(StateError):
        session(store=store)


async def test_a_cancelled_turn_saves_nothing(tmp_path: Path) -> None:
    """A cancelled turn does not save; the next one also saves what an earlier one could not."""
    import anyio

    store = FailingStore(tmp_path, 0)
    awaited = Awaited("Round.", seconds=0)
    watched = session(summarizing(awaited), store=store)
    await watched.view(chat(9))
    awaited.seconds = 5
    with anyio.move_on_after(0.02):
        await watched.view(chat(30))
    assert (store.calls, len(watched.status().failures)) == (["save"], 1)
    awaited.seconds = 0
    await watched.view(chat(9))
    assert (store.calls, watched.status().failures) == (["save", "save"], ())


@pytest.mark.parametrize(
    "changes",
    [
        *({"anchor": True}, {"anchor": 1.0}, {"compactions": True}, {"compactions": -1}, {"index": None}),
        *({"pauses": {"x": value}} for value in ([True, 0], [1, float("nan")], [1, 10**400])),
    ],
    ids=str,
)
def test_values_of_another_type(changes: dict[str, Any]) -> None:
    """Saved numbers must be finite and not booleans."""
    with pytest.raises(StateError):
        CompactionSession.from_dict({**session().to_dict(), **changes}, cut(), counter="chars/4")


async def test_a_failure_is_saved_though_nothing_changed(tmp_path: Path) -> None:
    """A pause after a failure also holds in another process."""
    failing = Scripted(RuntimeError("down"))
    store = FailingStore(tmp_path)
    await session(summarizing(failing), store=store).view(chat(9))
    await session(summarizing(failing), store=store).view(chat(9))
    assert (store.calls, len(failing.requests)) == (["save"], 1)
