"""Where sessions are saved: one SQLite file for any number of them, safe to kill at any moment.

Every save is one transaction in write-ahead mode. What is read is JSON with a version; nothing is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from .database import DatabaseFile
from .errors import StateError

__all__ = ["SCHEMA", "SessionStore"]

SCHEMA: Final = 1
"""The version of the tables."""

_TABLE: Final = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, state TEXT NOT NULL, anchor INTEGER)"


class SessionStore:
    """Saved sessions in a SQLite file. Holds state: the file; each call opens and closes the file, so processes may share it.

    Args:
        path: The file; made if it is not there, readable by its owner alone.
        timeout_seconds: How long to wait for another process that writes.

    Raises:
        StateError: If the file is no session store, or one of a newer release.
    """

    def __init__(self, path: str | PathLike[str], *, timeout_seconds: float = 5.0) -> None:
        self._file = DatabaseFile(path=Path(path), tables=(_TABLE,), schema=SCHEMA, timeout_seconds=timeout_seconds)
        self._file.make()

    def load(self, id: str) -> dict[str, Any] | None:
        """What was saved under this name, or ``None``.

        Raises:
            StateError: If it cannot be read.
        """
        with self._file.open() as database:
            row = database.execute("SELECT state, anchor FROM sessions WHERE id = ?", (id,)).fetchone()
        if row is None:
            return None
        try:
            state: dict[str, Any] = json.loads(row[0])
        except ValueError as error:
            raise StateError(f"{self._file.path}: session {id!r} is not JSON ({error}); delete it and start anew") from error
        return {**state, "anchor": row[1]}

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        """Save a session whole.

        Raises:
            StateError: If the file cannot be written.
        """
        row = (id, json.dumps(state), state.get("anchor"))
        with self._file.open() as database:
            database.execute("INSERT OR REPLACE INTO sessions (id, state, anchor) VALUES (?, ?, ?)", row)

    def save_anchor(self, id: str, anchor: int) -> bool:
        """Save what a provider's report changed; returns whether the session was saved before, without which nothing is."""
        with self._file.open() as database:
            return database.execute("UPDATE sessions SET anchor = ? WHERE id = ?", (anchor, id)).rowcount > 0

    def delete(self, id: str) -> None:
        """Forget a session."""
        with self._file.open() as database:
            database.execute("DELETE FROM sessions WHERE id = ?", (id,))
