"""The owners of conversations: which of several workers serves each one.

A conversation is recognized by the session id that the agent sends, or by its first messages, which every later request
repeats. A new conversation gets the worker that has the fewest. The decision is one transaction in a SQLite file that all
workers share, so it is made once, however many requests of a new conversation arrive at once, and holds for a worker that
starts later.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..formats import for_comparison

if TYPE_CHECKING:
    from .conversations import ConversationRequest

_MOST_FIRST: Final = 4
_MOST_CONVERSATIONS: Final = 10_000  # the newest ones; the oldest is decided again
_LOCK_SECONDS: Final = 5.0
_TABLE: Final = """
PRAGMA synchronous = OFF; BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owners (place INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, number INTEGER NOT NULL);
COMMIT;
"""


def conversation_key(request: ConversationRequest) -> bytes:
    """Return the bytes that are the same in all requests of a conversation: the agent's session id, or its first messages.

    Only the messages before the first answer count, without instructions: some agents write the time into these. For messages
    that cannot be read, the key is empty; any worker then serves the request.
    """
    if request.id is not None:
        return request.id.encode()
    format, first = request.route.format, list[Any]()
    try:
        for raw in request.messages:
            message = format.read(raw)
            if message.role == "assistant" or len(first) == _MOST_FIRST:
                break
            if not message.is_system:
                first.append(raw)
        return json.dumps(for_comparison(first, format), sort_keys=True).encode()
    except Exception:  # such a request is passed on as it came
        return b""


@attrs.define(eq=False, slots=False)
class ConversationOwners:
    """The table of owners, as one worker sees it. Holds state: a connection to the file.

    Args:
        path: The file.
        count: The number of workers.
        number: The number of this one, from 0.
        listens: Whether the worker of a number listens; one that does not gets no conversation.
    """

    path: Path
    count: int
    number: int
    listens: Callable[[int], bool]

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """The file, opened by the process that uses it; it need not survive a crash of the machine."""
        database = sqlite3.connect(self.path, timeout=_LOCK_SECONDS, isolation_level=None)
        database.executescript(_TABLE)
        return database

    def owner(self, key: bytes) -> int:
        """Return the number of the worker that serves a conversation, which is decided here if the conversation is new.

        If the key is empty or the file cannot be used, this worker serves the request.
        """
        try:
            return self._owner(_name_of(key)) if key else self.number
        except sqlite3.Error:
            return self.number

    def _owner(self, name: bytes) -> int:
        if (found := self._decided(name)) is not None:
            return found
        with self._transaction() as database:
            if (found := self._decided(name)) is not None:
                return found
            counts = {number: 0 for number in range(self.count) if number == self.number or self.listens(number)}
            rows: Iterable[tuple[int, int]] = database.execute("SELECT number, COUNT(*) FROM owners GROUP BY number")
            counts |= {number: count for number, count in rows if number in counts}
            chosen = min(counts, key=lambda number: (counts[number], number != self.number))
            place = database.execute("INSERT INTO owners (name, number) VALUES (?, ?)", (name, chosen)).lastrowid or 0
            database.execute("DELETE FROM owners WHERE place <= ?", (place - _MOST_CONVERSATIONS,))
        return chosen

    def take_over(self, key: bytes) -> None:
        """Serve a conversation from now on, because its worker does not run."""
        with suppress(sqlite3.Error), self._transaction() as database:
            database.execute("UPDATE owners SET number = ? WHERE name = ?", (self.number, _name_of(key)))

    def _decided(self, name: bytes) -> int | None:
        row = self._database.execute("SELECT number FROM owners WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Run the block as one transaction, while no other worker decides."""
        self._database.execute("BEGIN IMMEDIATE")
        with self._database as database:
            yield database


def _name_of(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()
