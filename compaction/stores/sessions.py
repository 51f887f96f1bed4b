"""Saved sessions: one SQLite file for any number of them.

Every save is one transaction, so a process may be killed at any moment. What is read is JSON; nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ..json_data import data_of, json_of
from .database import DatabaseFile

__all__ = ["SessionStore"]

_SCHEMA: Final = 1  # version of the table
_TABLE: Final = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL, anchor INTEGER)"


class SessionStore:
    """Saved sessions in a SQLite file. Holds state: the file; each call opens and closes the file, so processes may share it.

    Args:
        path: The file; created if it does not exist, readable by its owner alone.
        timeout_seconds: How long to wait for another process that writes.

    Raises:
        StateError: If the file is not a session store, or of a newer release.
    """

    def __init__(self, path: str | PathLike[str], *, timeout_seconds: float = 5.0) -> None:
        self._file = DatabaseFile(path=Path(path), tables=(_TABLE,), schema=_SCHEMA, timeout_seconds=timeout_seconds)
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

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        """Save a session's state.

        Raises:
            StateError: If the file cannot be written, or the state is not JSON data.
        """
        row = (id, json_of(state, f"session {id!r}"), state.get("anchor"))
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO sessions (id, state, anchor) VALUES (?, ?, ?)", row)

    def save_anchor(self, id: str, anchor: int) -> bool:
        """Save the usage anchor of a saved session, and return whether there is such a session.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            return database.execute("UPDATE sessions SET anchor = ? WHERE id = ?", (anchor, id)).rowcount > 0

    def delete(self, id: str) -> None:
        """Delete a saved session.

        Raises:
            StateError: If the file cannot be written.
        """
        with self._file.open() as database:
            database.execute("DELETE FROM sessions WHERE id = ?", (id,))
