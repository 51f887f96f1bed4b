"""`SQLiteStore`, a store in one SQLite file with full-text search.

A record's place is ``session number * 2**32 + position``. So a session is a range of places, and a search in one session does
not read the records of another.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from ..checks import above
from ..errors import StateError
from ..json_data import data_of, json_of
from .base import RANKED, NotStored, SearchHit, SearchResult, StoreCounts, StoreDescription, StoredRecord, query_words
from .database import DatabaseFile

_SCHEMA: Final = 2  # version of the tables
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE IF NOT EXISTS records (
        place INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
        made_by TEXT NOT NULL, reason TEXT NOT NULL, at REAL, tokens INTEGER NOT NULL,
        text TEXT NOT NULL, data TEXT NOT NULL, children TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX IF NOT EXISTS records_by_id ON records (id, session)",
    "CREATE INDEX IF NOT EXISTS summaries ON records (place) WHERE kind = 'summary'",
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='records', content_rowid='place', tokenize='unicode61')",
)
_COLUMNS: Final = "id, kind, role, made_by, reason, at, tokens, text, data, children, place"
_FIELDS: Final = ("id", "kind", "role", "by", "reason", "at", "tokens", "text", "data")  # of a record, in the columns' order
_INSERT: Final = f"INSERT INTO records ({_COLUMNS}, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COUNTS: Final = """
SELECT made_by, reason, count(*), sum(tokens), sum(length(data)), min(at), max(at) FROM records
    WHERE place BETWEEN ? AND ? AND kind = 'message' GROUP BY made_by, reason ORDER BY min(place)
"""
_FORGET_WORDS: Final = """
INSERT INTO words (words, rowid, text) SELECT 'delete', place, text FROM records WHERE place = ? AND kind = 'message'
"""
_FORGET_NAME: Final = "DELETE FROM sessions WHERE number = ? AND NOT EXISTS (SELECT 1 FROM records WHERE place BETWEEN ? AND ?)"
_APPLICATION: Final = 0x636D7073  # the application id, by which a store's file is recognized
_SHIFT: Final = 32
_SUMMARIES: Final = 20
_QUERY_CHARS: Final = 1_000
_QUERY_WORDS: Final = 32


@attrs.frozen
class SQLiteStore:
    """A store in a SQLite file that any number of sessions, threads and processes may share.

    Each call opens and closes the file. `put` is one transaction, which is on the disk when it returns. The messages are JSON;
    reading them runs no code. Only the owner of the file can read it.

    Args:
        path: The file; created if it does not exist.
        timeout_seconds: The most seconds to wait for another process that writes, above 0.
        redact: Removes secrets from what is stored, as `compaction.summarizers.redact` does. What is read back is then not the
            original. By default originals are stored, so that an agent can have them back. Records that are stored already
            stay as they are.

    Raises:
        StateError: If the file cannot be written, is not a store, or is from an older or newer release.
    """

    path: Path = attrs.field(converter=Path)
    timeout_seconds: float = attrs.field(default=5.0, validator=above(0), kw_only=True)
    redact: Callable[[str], str] | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        self._file.make()

    @property
    def _file(self) -> DatabaseFile:
        return DatabaseFile(
            path=self.path, tables=_TABLES, schema=_SCHEMA, application=_APPLICATION, timeout_seconds=self.timeout_seconds
        )

    # ---------------------------------------------------------------- writing

    def put(self, session: str, records: Sequence[StoredRecord]) -> None:
        """Store these records in one transaction; O(records)."""
        records = self._redacted(records)
        with self._file.open() as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT OR IGNORE INTO sessions (name) VALUES (?)", (_name(session),))
            number = _number(database, session)
            start, end = _places(number)
            (last,) = database.execute("SELECT max(place) FROM records WHERE place BETWEEN ? AND ?", (start, end)).fetchone()
            place = last or start
            for record in records:
                known = database.execute(
                    "SELECT place, data, children FROM records WHERE id = ? AND session = ?", (record.id, number)
                ).fetchone()
                if known is None:
                    place += 1
                    _insert(database, number, place, record)
                else:
                    _merge(database, known, record, redacts=self.redact is not None)

    def forget(self, session: str, records: Sequence[StoredRecord]) -> None:
        """Delete every record that contains one of these messages (see `ForgettingStore`); O(records of the session).

        If a record was deleted, the file is rewritten, O(file), so that none of its bytes are left in the file or its log. If
        another process reads it meanwhile, call the method again, which then removes what is left. With its last record, the
        session's name is deleted.
        """
        records = self._redacted(records)
        with self._file.open() as database:
            database.execute("PRAGMA secure_delete=ON")
            number = _number(database, session)
            holding = _holding(database, number, records)
            database.executemany(_FORGET_WORDS, [(place,) for place in holding])
            database.executemany("DELETE FROM records WHERE place = ?", [(place,) for place in holding])
            if holding:
                database.execute("INSERT INTO words (words) VALUES ('optimize')")
                database.execute(_FORGET_NAME, (number, *_places(number)))
            (unused,) = database.execute("PRAGMA freelist_count").fetchone()
        if holding or unused:
            self._file.scrub()
        else:
            self._file.empty_log(waits=False)  # an earlier call may have deleted records and then failed to empty it

    def _redacted(self, records: Sequence[StoredRecord]) -> Sequence[StoredRecord]:
        return records if self.redact is None else [record.redacted(self.redact) for record in records]

    # ---------------------------------------------------------------- reading

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        """Return the records with these ids; O(ids)."""
        with self._file.open() as database:
            wanted = json_of([_storable(id) for id in ids], "ids")
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM records WHERE session = ? AND id IN (SELECT value FROM json_each(?))",
                (_number(database, session), wanted),
            )
            found = {record.id: record for record in map(_record, rows)}
        missing = next((id for id in ids if id not in found), None)
        if missing is not None:
            raise NotStored(f"id {missing!r} is not stored in session {session!r}; take ids from stubs, summaries or a search")
        return [found[id] for id in ids]

    def range(self, session: str, first: int, count: int) -> list[StoredRecord]:
        """Return original messages in the order in which they were stored; O(count)."""
        first = min(max(first, 1), 1 << 31)
        with self._file.open() as database:
            start, end = _places(_number(database, session))
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM records WHERE place BETWEEN ? AND ? AND kind = 'message' ORDER BY place LIMIT ?",
                (start + first, end, max(0, count)),
            )
            return [_record(row) for row in rows]

    def search(self, session: str, query: str, *, limit: int) -> SearchResult:
        """Return the best of the newest 20,000 matching messages."""
        match = _match(query)
        if not match:
            return SearchResult(hits=(), matches=0, capped=False)
        where = "FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?"
        with self._file.open() as database:
            start, end = _places(_number(database, session))
            beyond = database.execute(
                f"SELECT rowid {where} ORDER BY rowid DESC LIMIT 1 OFFSET {RANKED}", (match, start, end)
            ).fetchone()
            start = start if beyond is None else beyond[0] + 1
            matches = RANKED
            if beyond is None:
                (matches,) = database.execute(f"SELECT count(*) {where}", (match, start, end)).fetchone()
            best = database.execute(
                f"SELECT rank, {_COLUMNS} FROM (SELECT rowid AS hit, rank {where} ORDER BY rank, rowid DESC LIMIT ?)"
                " JOIN records ON place = hit ORDER BY rank, place DESC",
                (match, start, end, max(0, limit)),
            )
            hits = [SearchHit(record=_record(row), score=-rank) for rank, *row in best]
        return SearchResult(hits=tuple(hits), matches=matches, capped=beyond is not None)

    def describe(self, session: str) -> StoreDescription:
        """Return counts by strategy and reason, and the newest stubs and summaries; O(characters of the session)."""
        with self._file.open() as database:
            places = _places(_number(database, session))
            tallies = database.execute(_COUNTS, places).fetchall()
            newest = database.execute(
                f"SELECT {_COLUMNS} FROM records WHERE kind = 'summary' AND place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?",
                (*places, _SUMMARIES),
            ).fetchall()
        names = [field.name for field in attrs.fields(StoreCounts)]
        return StoreDescription(
            tallies=tuple([StoreCounts(**dict(zip(names, row, strict=True))) for row in tallies]),
            summaries=tuple([_record(row) for row in newest]),
        )


def _number(database: sqlite3.Connection, session: str) -> int:
    """Return the number of a session; -1, which no session has, if it has no records."""
    row = database.execute("SELECT number FROM sessions WHERE name = ?", (_name(session),)).fetchone()
    return -1 if row is None else int(row[0])


def _name(session: str) -> str | bytes:
    """Return a session's name as SQLite stores it: with a lone surrogate, as bytes. No two sessions have the same."""
    has_surrogate = any("\ud800" <= sign <= "\udfff" for sign in session)
    return session.encode("utf-8", "surrogatepass") if has_surrogate else session


def _places(number: int) -> tuple[int, int]:
    """Return the places before and at the end of a session's range."""
    return number << _SHIFT, ((number + 1) << _SHIFT) - 1


def _storable(text: str) -> str:
    """Return the text without lone surrogates and NUL characters, which SQLite or its search cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _insert(database: sqlite3.Connection, number: int, place: int, record: StoredRecord) -> None:
    id, role, by, reason, text = map(_storable, (record.id, record.role, record.by, record.reason, record.text))
    about = (id, record.kind, role, by, reason, record.at, record.tokens, text, record.data)
    database.execute(_INSERT, (*about, _children_text(record.children), place, number))
    if record.kind == "message":
        database.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (place, text))


def _merge(database: sqlite3.Connection, known: tuple[int, str, str], record: StoredRecord, *, redacts: bool) -> None:
    """Add the new children of a stub or summary to the stored record; a message stays as it was redacted, or not, before."""
    place, data, listed = known
    if data != record.data and not (data and record.data and redacts):
        rule = f"id {record.id!r} belongs to another message, or was stored with redact="
        raise StateError(f"{rule}; this message cannot be stored in the same session")
    before = _children(listed, record.id)
    new = set(record.children).difference(before) if record.kind == "summary" else ()
    if new:
        children = before + [child for child in dict.fromkeys(record.children) if child in new]
        database.execute("UPDATE records SET children = ? WHERE place = ?", (_children_text(children), place))


def _holding(database: sqlite3.Connection, number: int, records: Sequence[StoredRecord]) -> list[int]:
    """Return the places of a session's records that contain one of these messages, or stand for a record that does."""
    ids, messages = {_storable(record.id) for record in records}, {_unordered(record.data) for record in records if record.data}
    parents: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    waiting: list[str] = []
    rows = database.execute("SELECT place, id, data, children FROM records WHERE place BETWEEN ? AND ?", _places(number))
    for place, id, data, children in rows:
        places[id] = place
        for child in _children(children, id):
            parents.setdefault(child, []).append(id)
        if id in ids or (data and _unordered(data) in messages):
            waiting.append(id)
    found: set[str] = set()
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            waiting += parents.get(id, ())
    return sorted(places[id] for id in found)


def _unordered(data: str) -> str:
    """Return a text that is equal for messages that differ only in the order of their keys."""
    try:
        return json.dumps(json.loads(data), sort_keys=True)
    except (ValueError, RecursionError):
        return data


def _record(row: Any) -> StoredRecord:
    *about, children, place = row
    fields: dict[str, Any] = dict(zip(_FIELDS, about, strict=True))
    return StoredRecord(**fields, children=tuple(_children(children, fields["id"])), position=place & ((1 << _SHIFT) - 1))


def _children_text(children: Sequence[str]) -> str:
    return json_of(children, "a summary's ids")


def _children(data: object, id: str) -> list[str]:
    children: list[Any] = data_of(data, f"record {id!r}", list)
    if not all(isinstance(child, str) for child in children):
        raise StateError(f"record {id!r}: its ids are not texts; the store is damaged, use another file")
    return children


def _match(query: str) -> str:
    """Return a query for SQLite's search, each word in quotes so that it is not an operator; empty without words."""
    kept = [word for word in query_words(_storable(query)[:_QUERY_CHARS]) if any(sign.isalnum() for sign in word)]
    return " ".join([f'"{word}"' for word in kept[:_QUERY_WORDS]])
