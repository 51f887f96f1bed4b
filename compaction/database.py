"""A SQLite file that threads and processes share: made, told from other files, opened and closed alike for all that is kept.

Each use opens and closes the file, as one transaction in write-ahead mode that is written through to the disk: it is safe to
kill at any moment. Whatever SQLite says becomes a `StateError` with what to do about it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator, Sequence
from pathlib import Path

import attrs

from .errors import StateError

__all__ = ["DatabaseFile"]


@attrs.frozen
class DatabaseFile:
    """Where something is kept.

    Args:
        path: The file.
        timeout_seconds: How long to wait for another process that writes, above 0.
    """

    path: Path
    timeout_seconds: float

    def make(self, tables: Sequence[str], *, schema: int, application: int | None = None) -> None:
        """Make the file, for its owner alone, and what is missing in it.

        Args:
            tables: Statements that make the tables, each of which may be there.
            schema: The version of the tables.
            application: Tells our file from other databases; ``None``: whatever is there gains our tables.

        Raises:
            StateError: If it cannot be made, is no database or another one, or is of a newer release.
        """
        try:
            self.path.touch(mode=0o600)
        except OSError as error:
            raise StateError(
                f"{self.path}: {error.strerror}; name a file in a folder that exists and may be written to"
            ) from error
        with self.open() as database:
            if application is not None and _version(database) == (application, schema):
                return
            database.execute("BEGIN IMMEDIATE")
            self._check(database, schema, application)
            for table in tables:
                database.execute(table)
            if application is not None:
                database.execute(f"PRAGMA application_id={application}")
            database.execute(f"PRAGMA user_version={schema}")
        with self.open() as database, contextlib.suppress(sqlite3.OperationalError):
            # SQLite does not wait for this switch as it does for a write; where another process is at work, it does not happen.
            database.execute("PRAGMA journal_mode=WAL")

    def _check(self, database: sqlite3.Connection, schema: int, application: int | None) -> None:
        found, version = _version(database)
        if application is not None and found != application:
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if found or version or tables:
                raise StateError(f"{self.path}: it is a database, but no store of this package; name another file")
        if version > schema:
            raise StateError(f"{self.path}: schema {version} is newer than {schema}, which this release knows; upgrade")

    @contextlib.contextmanager
    def open(self) -> Generator[sqlite3.Connection]:
        """A connection; what was done in a transaction is kept if nothing is raised.

        Raises:
            StateError: For any error of SQLite.
        """
        try:
            database = sqlite3.connect(self.path, timeout=self.timeout_seconds)
            try:
                with database:
                    database.execute("PRAGMA synchronous=FULL")
                    yield database
            finally:
                database.close()
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: {error}; {_remedy(str(error))}") from error


def _version(database: sqlite3.Connection) -> tuple[int, int]:
    """Whose file it is, and its schema."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(application), int(version)


def _remedy(error: str) -> str:
    """What to do about an error of SQLite, by its words."""
    if "locked" in error or "busy" in error:
        return "another process holds it; nothing was changed, try again"
    if "full" in error or "I/O" in error:
        return "free some space; nothing was changed, what was stored before stays"
    if "readonly" in error:
        return "make it writable or name another file; nothing was changed"
    return "it is no store or damaged; move it away or name another file, the conversation itself is not affected"
