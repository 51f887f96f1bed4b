"""`DatabaseFile`, a SQLite file that threads and processes may share; every store of this package uses it.

Each use opens and closes the file, and is one transaction in write-ahead mode that is written through to the disk, so a process
may be killed at any moment. Every SQLite error becomes a `StateError` with a remedy.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

import attrs

from ..errors import StateError

_QUEUE_SECONDS: Final = 10.0  # for which a thread waits for those before it, each of which takes milliseconds
_locks: Final[dict[Path, threading.RLock]] = {}  # of this process, by file
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)  # another thread of the parent may hold one


@attrs.frozen(kw_only=True)
class DatabaseFile:
    """A SQLite file with its tables."""

    path: Path
    tables: tuple[str, ...]  # statements that create the tables if they do not exist
    schema: int  # the version of the tables, >= 1
    application: int  # the application id that distinguishes the file from other databases
    timeout_seconds: float = 5.0  # the most seconds to wait for another process that writes, above 0

    def make(self) -> None:
        """Create the file, readable only by its owner, and the missing tables; raise a `StateError` if that cannot be done."""
        try:
            self.path.touch(mode=0o600)
        except OSError as error:
            raise StateError(f"{self.path}: {error.strerror}; name a file in a folder that exists and is writable") from error
        with self.open() as database, contextlib.suppress(sqlite3.OperationalError):
            # SQLite does not wait with this statement; if another process holds the file, a later call succeeds.
            database.execute("PRAGMA journal_mode=WAL")

    @contextlib.contextmanager
    def open(self, left: str = "nothing was changed") -> Generator[sqlite3.Connection]:
        """Open a connection and a transaction, which is committed unless an exception is raised.

        The errors say what is ``left`` if this fails.
        """
        try:
            with self._alone(), contextlib.closing(sqlite3.connect(self.path, timeout=self.timeout_seconds)) as database:
                database.execute("PRAGMA synchronous=FULL")
                if _version(database) != (self.application, self.schema):
                    self._fill(database)
                with database:
                    yield database
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            remedy = next(remedy for pattern, remedy in _REMEDIES if re.search(pattern, str(error)))
            raise StateError(f"{self.path}: {error}; {remedy.format(left=left)}") from error

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """Let no other thread of this process use the file.

        SQLite lets those that wait try again at intervals that grow, so under load some would never get their turn.
        """
        lock = _locks.setdefault(self.path.absolute(), threading.RLock())
        if not lock.acquire(timeout=_QUEUE_SECONDS + self.timeout_seconds):
            raise sqlite3.OperationalError("locked by other threads")
        try:
            yield
        finally:
            lock.release()

    def scrub(self) -> None:
        """Rewrite the file, so that no deleted or replaced data is left in it or in its log; O(file)."""
        with self.open(_DELETED) as database:
            # sqlite3 begins a transaction only before a statement that changes rows, so this runs outside of one, as it must
            database.execute("VACUUM")
        if not self.empty_log(waits=True):
            raise StateError(f"{self.path}: another process reads the file, and its log still has what was deleted; try again")

    def empty_log(self, *, waits: bool) -> bool:
        """Move what is in the log into the file, so that neither has what was deleted; return whether that was done. O(log).

        It cannot be done while another process reads the file; with ``waits``, that is waited for.
        """
        log = Path(f"{self.path}-wal")  # SQLite deletes it when the last connection is closed
        if not log.exists():
            return True
        with self.open(_DELETED) as database:
            if not waits:
                database.execute("PRAGMA busy_timeout=0")
            (busy, *_) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def _fill(self, database: sqlite3.Connection) -> None:
        """Create the tables in one transaction, unless the file is another program's."""
        with database:
            database.execute("BEGIN IMMEDIATE")
            application, version = _version(database)
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != self.application and (application or version or tables):
                raise StateError(f"{self.path}: the database is not a store of this package; name another file")
            if version > self.schema:
                known = f"schema {version} is newer than {self.schema}, the newest that this release reads"
                raise StateError(f"{self.path}: {known}; upgrade, or name another file")
            if 0 < version < self.schema:
                known = f"schema {version} is older than {self.schema}, and this release does not read it"
                raise StateError(f"{self.path}: {known}; name another file")
            for table in self.tables:
                database.execute(table)
            database.execute(f"PRAGMA application_id={self.application}")
            database.execute(f"PRAGMA user_version={self.schema}")


def _version(database: sqlite3.Connection) -> tuple[int, int]:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(application), int(version)


_DELETED: Final = "what was deleted cannot be found any more, but its bytes are still in the file"
_REMEDIES: Final = (  # for the errors of SQLite, by their messages
    (r"surrogates", "name the session without it; {left}"),
    (r"too large to convert", "a number must be below 2**63; {left}"),
    (r"locked|busy", "another process or thread holds the file; {left}; try again"),
    (r"full|I/O", "free some space; {left}"),
    (r"readonly", "make it writable or name another file; {left}"),
    (r"", "it is not a store, or is damaged; move it away or name another file, the conversation itself is not affected"),
)
