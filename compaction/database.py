"""A SQLite file that threads and processes share: made, told from other files, opened and closed alike for all that is kept.

Each use opens and closes the file, as one transaction in write-ahead mode that is written through to the disk: it is safe to
kill at any moment. Whatever SQLite says becomes a `StateError` with what to do about it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

import attrs

from .errors import StateError

__all__ = ["DatabaseFile"]


@attrs.frozen(kw_only=True)
class DatabaseFile:
    """Where something is kept.

    Args:
        path: The file.
        tables: Statements that make the tables, each of which may be there.
        schema: The version of the tables, >= 1.
        application: Tells the file from other databases; 0: any database that has no such number gains the tables.
        timeout_seconds: How long to wait for another process that writes, above 0.
    """

    path: Path
    tables: tuple[str, ...]
    schema: int
    application: int = 0
    timeout_seconds: float = 5.0

    def make(self) -> None:
        """Make the file, for its owner alone, and what is missing in it.

        Raises:
            StateError: If it cannot be made, is no database or another one, or is of a newer release.
        """
        try:
            self.path.touch(mode=0o600)
        except OSError as error:
            raise StateError(
                f"{self.path}: {error.strerror}; name a file in a folder that exists and may be written to"
            ) from error
        with self.open() as database, contextlib.suppress(sqlite3.OperationalError):
            # SQLite does not wait for this switch as it does for a write; while another process works, it is left to the next.
            database.execute("PRAGMA journal_mode=WAL")

    @contextlib.contextmanager
    def open(self) -> Generator[sqlite3.Connection]:
        """A connection to a file that is ready; what was done in a transaction is kept if nothing is raised.

        Raises:
            StateError: For any error of SQLite, and as for `make`.
        """
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=self.timeout_seconds)) as database:
                database.execute("PRAGMA synchronous=FULL")
                if _version(database) != (self.application, self.schema):
                    self._fill(database)
                with database:
                    yield database
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: {error}; {_remedy(str(error))}") from error

    def _fill(self, database: sqlite3.Connection) -> None:
        """Make the tables in one transaction, unless the file is not ours to change."""
        with database:
            database.execute("BEGIN IMMEDIATE")
            application, version = _version(database)
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != self.application and (application or version or tables):
                raise StateError(f"{self.path}: it is a database, but no store of this package; name another file")
            if version > self.schema:
                known = f"schema {version} is newer than {self.schema}, which this release knows"
                raise StateError(f"{self.path}: {known}; upgrade, or name another file")
            for table in self.tables:
                database.execute(table)
            database.execute(f"PRAGMA application_id={self.application}")
            database.execute(f"PRAGMA user_version={self.schema}")


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
