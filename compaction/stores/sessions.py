"""`SessionStore`: saved sessions in one SQLite file, found by their ids or by keys of their newest messages.

Every save is one transaction, so a process may be killed at any moment. The states are JSON; reading them runs no code.
"""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ..checks import is_number
from ..errors import ConfigurationError, StateError
from ..json_data import data_of, json_of
from .database import DatabaseFile

_SCHEMA: Final = 3  # version of the tables
_APPLICATION: Final = 0x636D7373  # the application id, by which a session store's file is recognized
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL, anchor INTEGER)",
    "CREATE TABLE IF NOT EXISTS session_keys (scope TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS sessions_by_key ON session_keys (scope, key)",
    "CREATE INDEX IF NOT EXISTS keys_of_session ON session_keys (id)",
    "CREATE TABLE IF NOT EXISTS session_uses (id TEXT PRIMARY KEY, at REAL NOT NULL)",
)
_FIND: Final = """
SELECT session_keys.id FROM json_each(?) AS wanted CROSS JOIN session_keys
    ON session_keys.scope = ? AND session_keys.key = wanted.value ORDER BY wanted.key, session_keys.rowid DESC
"""
_IN_OTHER_SCOPE: Final = "SELECT 1 FROM session_keys WHERE id = ? AND scope <> ? LIMIT 1"
_MOST_FOUND: Final = 8


class SessionStore:
    """Saved sessions in a SQLite file. Holds state: the file, which each call opens and closes, so that processes may share it.

    Args:
        path: The file; created if it does not exist, readable only by its owner.
        timeout_seconds: The most seconds to wait for another process that writes, above 0.

    Attributes:
        has_saved: Whether the last save succeeded; before the first, ``False`` unless `keyed` is told otherwise.

    Raises:
        ConfigurationError: If ``timeout_seconds`` is out of range.
        StateError: If the file is not a session store, or from an older or newer release. Every method raises it if the file
            cannot be read or written.
    """

    def __init__(self, path: str | PathLike[str], *, timeout_seconds: float = 5.0) -> None:
        if not is_number(timeout_seconds) or not timeout_seconds > 0:
            raise ConfigurationError(f"SessionStore: 'timeout_seconds' must be a number above 0 (got {timeout_seconds!r})")
        self._file = DatabaseFile(
            path=Path(path), tables=_TABLES, schema=_SCHEMA, application=_APPLICATION, timeout_seconds=timeout_seconds
        )
        self._keys: Callable[[], tuple[str, Iterable[str]]] | None = None
        self.has_saved = False
        self._file.make()

    def load(self, id: str) -> dict[str, Any] | None:
        """Return the state saved under this id, or ``None``."""
        with self._file.open() as database:
            row = database.execute("SELECT state, anchor FROM sessions WHERE id = ?", (id,)).fetchone()
        if row is None:
            return None
        # the anchor is in the state too, but `save_anchor` may have changed the column since
        return {**data_of(row[0], f"{self._file.path}: session {id!r}", dict), "anchor": row[1]}

    def find(self, scope: str, keys: Sequence[str]) -> list[str]:
        """Return the ids of up to eight sessions of a scope with one of these keys: in their order, then the newest first."""
        with self._file.open() as database:
            rows = database.execute(_FIND, (json_of(list(keys), "keys"), scope)).fetchall()
        return list(dict.fromkeys(id for (id,) in rows))[:_MOST_FOUND]

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        """Save a session's state, which must be JSON data, and, if the store is `keyed`, the keys by which it is found.

        Raises a `StateError` rather than replace a session that is found in another scope.
        """
        self.has_saved = False
        row = (id, json_of(state, f"session {id!r}"), state.get("anchor"))
        scope, keys = ("", ()) if self._keys is None else self._keys()
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO sessions (id, state, anchor) VALUES (?, ?, ?)", row)
            if self._keys is not None and database.execute(_IN_OTHER_SCOPE, (id, scope)).fetchone():
                raise StateError(f"{self._file.path}: session {id!r} belongs to a conversation of another scope or format")
            database.execute("DELETE FROM session_keys WHERE id = ?", (id,))
            rows = [(scope, key, id) for key in keys]
            database.executemany("INSERT INTO session_keys (scope, key, id) VALUES (?, ?, ?)", rows)
        self.has_saved = True

    def save_anchor(self, id: str, anchor: int) -> bool:
        """Save the usage anchor of a saved session, and return whether the session exists."""
        with self._file.open() as database:
            return database.execute("UPDATE sessions SET anchor = ? WHERE id = ?", (anchor, id)).rowcount > 0

    def delete(self, id: str) -> None:
        """Delete a saved session and its keys."""
        with self._file.open() as database:
            for table in ("sessions", "session_keys", "session_uses"):
                database.execute(f"DELETE FROM {table} WHERE id = ?", (id,))

    def note_use(self, id: str, at: float) -> None:
        """Save the time at which a session was used, in seconds of one clock, for `delete_unused`."""
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO session_uses (id, at) VALUES (?, ?)", (id, at))

    def delete_unused(
        self,
        before: float,
        now: float,
        *,
        only: Callable[[list[str]], Iterable[str]] | None = None,
        also: Callable[[list[str]], Iterable[str] | None] | None = None,
    ) -> list[str]:
        """Delete the sessions that were last used before a time, with all their bytes, and return their ids.

        Both times are by the clock of `note_use`. A session without a noted use counts as used ``now``. The times of use are
        deleted last. So after a failure, the next call finds the same ids and completes the work.

        Args:
            before: The time.
            now: The current time.
            only: Called first, with the ids; returns those that may be deleted.
            also: Called with the ids of the deleted sessions, to delete what belongs to them elsewhere. It may return those for
                which it did so. The others are found again, and so are all if it raises.
        """
        with self._file.open() as database:
            database.execute("INSERT OR IGNORE INTO session_uses (id, at) SELECT id, ? FROM sessions", (now,))
            unused = _unused(database, before)
        allowed = set(unused if only is None else only(unused))
        with self._file.open() as database:
            # the transaction begins here, so no other process notes a use between the selection and the deletion
            database.execute("BEGIN IMMEDIATE")
            deleted = [id for id in _unused(database, before) if id in allowed]
            database.executemany("DELETE FROM sessions WHERE id = ?", [(id,) for id in deleted])
            database.executemany("DELETE FROM session_keys WHERE id = ?", [(id,) for id in deleted])
        if not deleted:
            return []
        done = None if also is None else also(deleted)
        complete = deleted if done is None else list(done)
        self.scrub()
        with self._file.open() as database:
            database.executemany("DELETE FROM session_uses WHERE id = ? AND at < ?", [(id, before) for id in complete])
        return complete

    def in_scope(self, scope: str) -> dict[str, list[str]]:
        """Return the ids of the sessions in a scope, each with the keys by which it is found."""
        found: dict[str, list[str]] = {}
        with self._file.open() as database:
            for id, key in database.execute("SELECT id, key FROM session_keys WHERE scope = ? ORDER BY rowid", (scope,)):
                found.setdefault(id, []).append(key)
        return found

    def scrub(self) -> None:
        """Rewrite the file, so that no deleted or replaced state is left in it; O(file). Fails if another process uses it."""
        self._file.scrub()

    def keyed(self, keys: Callable[[], tuple[str, Iterable[str]]], *, has_saved: bool = False) -> SessionStore:
        """Return a copy of the store for one session, which also saves the scope and the keys by which `find` finds it.

        ``keys`` returns the current ones at each save; ``has_saved`` tells whether the session was loaded from here.
        """
        keyed = copy.copy(self)
        keyed._keys, keyed.has_saved = keys, has_saved
        return keyed


def _unused(database: sqlite3.Connection, before: float) -> list[str]:
    return [id for (id,) in database.execute("SELECT id FROM session_uses WHERE at < ? ORDER BY id", (before,))]
