"""The store of sessions: invalid states and damaged files raise a `StateError`."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compaction.errors import StateError
from compaction.stores import SessionStore
from tests.support.limits import WAIT_SECONDS

STATE: dict[str, Any] = {"version": 1, "anchor": 5}


ROWS = ["[]", "null", "NaN", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', "[" * 100_000, '{"a":' * 300 + "1" + "}" * 300]
ROWS += ["", "{", "7", '"x"', b"\xff\xfe", 7, 1.5, "1" * 5_000]


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_a_row_that_is_not_a_state(tmp_path: Path, row: object) -> None:
    """Another program wrote it; the error names the file, also when the row is read again."""
    store = SessionStore(tmp_path / "sessions.db")
    store.save("one", STATE)
    with contextlib.closing(sqlite3.connect(tmp_path / "sessions.db")) as database, database:
        database.execute("UPDATE sessions SET state = ?", (row,))
    for _ in range(2):
        with pytest.raises(StateError, match=r"sessions\.db.*"):
            store.load("one")


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """A session has its newest anchor, and an unsaved or deleted one has none; the file is for its owner alone."""
    store = SessionStore(tmp_path / "sessions.db")
    for id in ("one", "two", "gone"):
        store.save(id, STATE)
    assert (store.save_anchor("one", 7), store.save_anchor("three", 7)) == (True, False)
    store.delete("gone")
    assert [store.load(id) for id in ("one", "two", "three", "gone")] == [{**STATE, "anchor": 7}, STATE, None, None]
    assert (tmp_path / "sessions.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "state", [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}, {("a",): 1}], ids=["NaN", "object", "set", "key"]
)
def test_a_state_that_is_not_json(tmp_path: Path, state: dict[str, Any]) -> None:
    """A state that is not JSON raises a `StateError` before anything is written, and the earlier state stays."""
    store = SessionStore(tmp_path / "sessions.db")
    store.save("one", STATE)
    with pytest.raises(StateError, match="session 'one' cannot be stored as JSON"):
        store.save("one", state)
    assert store.load("one") == STATE


@pytest.mark.parametrize(("id", "anchor"), [("\ud800", 1), ("one", 10**30)], ids=["surrogate", "too large"])
def test_what_sqlite_cannot_hold(tmp_path: Path, id: str, anchor: int) -> None:
    store = SessionStore(tmp_path / "sessions.db")
    store.save("one", STATE)
    remedy = "a number must be below 2\\*\\*63" if id == "one" else "name the session without it"
    with pytest.raises(StateError, match=f"{remedy}; nothing was changed"):
        store.save_anchor(id, anchor)
    with pytest.raises(StateError, match=f"{remedy}; nothing was changed"):
        store.save(id, {"anchor": anchor})
    assert store.load("one") == STATE


def test_sessions_are_found_by_their_keys(tmp_path: Path) -> None:
    """Sessions are found by their keys within a scope, ordered by the given keys; only the keys of the last save count.

    The keys are deleted with their session.
    """
    store = SessionStore(tmp_path / "sessions.db")
    keys = {"a": ["1", "2"], "b": ["2", "3"]}
    for id, some in keys.items():
        keyed = store.keyed(functools.partial(lambda each: ("scope", each), some))
        assert not keyed.has_saved
        keyed.save(id, {"version": 1})
        assert keyed.has_saved
    assert store.find("scope", ["3", "1"]) == ["b", "a"]
    assert store.find("scope", ["2"]) == ["b", "a"]
    assert store.find("other", ["1", "2", "3"]) == []
    store.delete("b")
    assert store.find("scope", ["2", "3"]) == ["a"]
    store.save("a", {"version": 1})
    assert store.find("scope", ["1"]) == []


def test_what_was_not_used_is_deleted(tmp_path: Path) -> None:
    """``delete_unused`` deletes sessions and their keys from the file; a session without a recorded use counts as used now."""
    path = tmp_path / "sessions.db"
    store = SessionStore(path)
    for name in ("old", "new", "unnoted"):
        store.keyed(lambda name=name: ("scope", [f"key of {name}"])).save(name, {"text": f"text of {name}"})
    store.note_use("old", 10.0)
    store.note_use("new", 10.0)
    store.note_use("new", 90.0)
    assert store.delete_unused(before=50.0, now=100.0) == ["old"]
    assert store.delete_unused(before=50.0, now=100.0) == []
    assert [store.load(name) is not None for name in ("old", "new", "unnoted")] == [False, True, True]
    assert store.in_scope("scope") == {"new": ["key of new"], "unnoted": ["key of unnoted"]}
    assert b"text of old" not in path.read_bytes()
    assert store.delete_unused(before=101.0, now=102.0) == ["new", "unnoted"]


def test_what_was_not_used_is_deleted_again_after_a_failure(tmp_path: Path) -> None:
    """A failure, in the file or in what is deleted with the sessions, raises. The next call repeats all of it."""
    path, told = tmp_path / "sessions.db", list[list[str]]()
    store = SessionStore(path)
    for name in ("old", "used again"):
        store.save(name, {"text": f"text of {name}"})
        store.note_use(name, 10.0)

    def also(ids: list[str]) -> None:
        told.append(ids)
        if len(told) == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.delete_unused(before=50.0, now=100.0, also=also)
    assert (store.load("old"), told) == (None, [["old", "used again"]])
    store.note_use("used again", 90.0)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sessions").fetchall()
    with pytest.raises(StateError):
        SessionStore(path, timeout_seconds=0.01).delete_unused(before=50.0, now=100.0, also=also)
    reader.close()
    assert store.delete_unused(before=50.0, now=100.0, also=also) == ["old"]
    assert told[1:] == [["old"]] * 2
    assert b"text of old" not in path.read_bytes()
    assert store.delete_unused(before=50.0, now=100.0, also=also) == []


def test_only_what_may_be_deleted_is(tmp_path: Path) -> None:
    """A session that ``only`` does not return stays, and so does one that is used again while ``only`` decides."""
    store, told = SessionStore(tmp_path / "sessions.db"), list[list[str]]()
    for name in ("gone", "kept", "used again"):
        store.save(name, STATE)
        store.note_use(name, 10.0)

    def only(ids: list[str]) -> list[str]:
        told.append(ids)
        store.note_use("used again", 90.0)
        return [name for name in ids if name != "kept"]

    assert store.delete_unused(before=50.0, now=100.0, only=only, also=told.append) == ["gone"]
    assert told == [["gone", "kept", "used again"], ["gone"]]
    assert [store.load(name) is None for name in told[0]] == [True, False, False]
    assert store.delete_unused(before=50.0, now=100.0) == ["kept"]


def test_a_session_that_is_used_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    """Another process saves it and notes its use before the deletion, or after: never in between."""
    path = tmp_path / "sessions.db"
    store, other = SessionStore(path), SessionStore(path, timeout_seconds=0.01)
    store.save("one", STATE)
    store.note_use("one", 10.0)

    def also(ids: list[str]) -> None:
        other.save("one", {**STATE, "again": True})
        other.note_use("one", 90.0)

    assert store.delete_unused(before=50.0, now=100.0, also=also) == ["one"]
    assert store.load("one") == {**STATE, "again": True}
    assert store.delete_unused(before=50.0, now=100.0) == []
    assert store.load("one") is not None


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    """None fails because others write, however short the time is for which the store waits for other processes."""
    store = SessionStore(tmp_path / "sessions.db", timeout_seconds=0.001)
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(lambda number: store.save(f"{number}", {**STATE, "text": "x" * 20_000}), range(80)):
            pass
    assert all(store.load(f"{number}") is not None for number in range(80))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_is_not_locked_by_a_thread_of_its_parent(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.db")
    holds, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with store._file.open():
            holds.set()
            may_end.wait(WAIT_SECONDS)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(hold)
        assert holds.wait(WAIT_SECONDS)
        child = multiprocessing.get_context("fork").Process(target=store.load, args=("one",))
        child.start()
        child.join(WAIT_SECONDS)
        may_end.set()
    assert child.exitcode == 0
