"""Saved sessions: one SQLite file for any number of them, found by their names or by keys of their newest messages.

Every save is one transaction, so a process may be killed at any moment. What is read is JSON; nothing is evaluated.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ..json_data import data_of, json_of
from .database import DatabaseFile

_SCHEMA: Final = 3  # version of the tables
_OLDEST: Final = 1  # had the first table alone
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL, anchor INTEGER)",
    "CREATE TABLE IF NOT EXISTS session_keys (scope TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS sessions_by_key ON session_keys (scope, key)",
    "CREATE INDEX IF NOT EXISTS keys_of_session ON session_keys (id)",
    "CREATE TABLE IF NOT EXISTS session_uses (id TEXT PRIMARY KEY, at REAL NOT NULL)",
)
_KEYS_AT_ONCE: Final = 500
_MOST_FOUND: Final = 8


class SessionStore:
    """Saved sessions in a SQLite file. Holds state: the file; each call opens and closes the file, so processes may share it.

    Args:
        path: The file; created if it does not exist, readable by its owner alone. A file of an earlier release is upgraded.
        timeout_seconds: How long to wait for another process that writes.

    Attributes:
        has_saved: Whether the last save succeeded; ``False`` before the first.

    Raises:
        StateError: If the file is not a session store, or of a newer release.
    """

    def __init__(self, path: str | PathLike[str], *, timeout_seconds: float = 5.0) -> None:
        self._file = DatabaseFile(
            path=Path(path), tables=_TABLES, schema=_SCHEMA, oldest=_OLDEST, timeout_seconds=timeout_seconds
        )
        self._keys: Callable[[], tuple[str, Iterable[str]]] | None = None
        self.has_saved = False
        self._file.make()

    def load(self, id: str) -> dict[str, Any] | None:
        """Return the state saved under this id, or ``None``.

        Raises:
            StateError: If it cannot be read.
        """
        with self._file.open() as database:
            row = database.execute("SELECT state, anchor FROM sessions WHERE id = ?", (id,)).fetchone()
        if row is None:
            return None
        return {**data_of(row[0], f"{self._file.path}: session {id!r}", dict), "anchor": row[1]}

    def find(self, scope: str, keys: Sequence[str]) -> list[str]:
        """Return the ids of up to eight sessions with one of these keys: the earlier key first, then the newest session.

        Args:
            scope: The scope; other scopes are not searched.
            keys: The keys.

        Raises:
            StateError: If the file cannot be read.
        """
        found: dict[str, None] = {}
        with self._file.open() as database:
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ", ".join("?" * len(some))
                rows = database.execute(
                    f"SELECT key, id FROM session_keys WHERE scope = ? AND key IN ({marks}) ORDER BY rowid DESC", (scope, *some)
                ).fetchall()
                place = {key: at for at, key in enumerate(some)}
                found.update(dict.fromkeys([id for _, id in sorted(rows, key=lambda row: place[row[0]])]))
                if len(found) >= _MOST_FOUND:
                    break
        return list(found)[:_MOST_FOUND]

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        """Save a session's state, and the keys by which it is found if the store is `keyed`.

        Raises:
            StateError: If the file cannot be written, or the state is not JSON data.
        """
        self.has_saved = False
        row = (id, json_of(state, f"session {id!r}"), state.get("anchor"))
        scope, keys = ("", ()) if self._keys is None else self._keys()
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO sessions (id, state, anchor) VALUES (?, ?, ?)", row)
            database.execute("DELETE FROM session_keys WHERE id = ?", (id,))
            rows = [(scope, key, id) for key in keys]
            database.executemany("INSERT INTO session_keys (scope, key, id) VALUES (?, ?, ?)", rows)
        self.has_saved = True

    def save_anchor(self, id: str, anchor: int) -> bool:
        """Save the usage anchor of a saved session, and return whether there is such a session.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            return database.execute("UPDATE sessions SET anchor = ? WHERE id = ?", (anchor, id)).rowcount > 0

    def delete(self, id: str) -> None:
        """Delete a saved session and its keys.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            database.execute("DELETE FROM sessions WHERE id = ?", (id,))
            database.execute("DELETE FROM session_keys WHERE id = ?", (id,))
            database.execute("DELETE FROM session_uses WHERE id = ?", (id,))

    def note_use(self, id: str, at: float) -> None:
        """Save when a session was used, for `delete_unused`.

        Args:
            id: The session.
            at: Seconds of any one clock.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO session_uses (id, at) VALUES (?, ?)", (id, at))

    def delete_unused(self, before: float, now: float) -> list[str]:
        """Delete the sessions that were last used before a time, and return their ids; the file then holds none of them.

        Args:
            before: The time, by the clock of `note_use`.
            now: The time now; a session of which no use was ever noted counts as used now.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            database.execute("INSERT OR IGNORE INTO session_uses (id, at) SELECT id, ? FROM sessions", (now,))
            ids = [id for (id,) in database.execute("SELECT id FROM session_uses WHERE at < ? ORDER BY id", (before,))]
        for id in ids:
            self.delete(id)
        if ids:
            self.scrub()
        return ids

    def in_scope(self, scope: str) -> dict[str, list[str]]:
        """Return the ids of the sessions of a scope, each with the keys by which it is found.

        Raises:
            StateError: If the file cannot be read.
        """
        found: dict[str, list[str]] = {}
        with self._file.open() as database:
            for id, key in database.execute("SELECT id, key FROM session_keys WHERE scope = ? ORDER BY rowid", (scope,)):
                found.setdefault(id, []).append(key)
        return found

    def scrub(self) -> None:
        """Write the file again, so that no deleted or replaced state is left in it; O(file).

        Raises:
            StateError: If the file cannot be written, or another process uses it.
        """
        self._file.scrub()

    def keyed(self, keys: Callable[[], tuple[str, Iterable[str]]]) -> SessionStore:
        """Return the same store for one session, whose saves also save its scope and the keys by which `find` finds it.

        Args:
            keys: Returns the scope and the keys as they are when the session is saved.
        """
        keyed = copy.copy(self)
        keyed._keys, keyed.has_saved = keys, False
        return keyed
