"""Sessions that have not been used for some time are deleted from their store."""

from __future__ import annotations

from pathlib import Path

from compaction.stores import SessionStore


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
