"""Several processes that serve one address: workers hand requests to the one that serves the conversation.

All workers accept connections at the same address. A request that arrives at another worker than its conversation's is handed
over through a Unix socket in a folder that only its owner can read; the answer comes back the same way, chunk by chunk. It
closes the client's connection, so that the client's next connection may reach the right worker.

A conversation is recognized by the session id that the agent sends, or by its first messages, which every later request
repeats. A new conversation gets the worker that has the fewest. The decision is one statement in a SQLite file that all
workers share, so it is made once, however many requests of a new conversation arrive at once, and holds for a worker that
starts later.

This is asyncio, not anyio as elsewhere: uvicorn and aiohttp, the gateway's server and HTTP client, run only there, and a stream
of anyio logs an error if a request is cancelled as its answer arrives.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import struct
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import msgspec

from .upstream import AnswerStopped, NoAnswer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope, Send

_logger: Final = logging.getLogger("uvicorn.error")  # of the errors of requests, which `is_worth_a_log` filters
_BACKLOG: Final = 65_536  # asyncio's 100 resets connections in a burst, and their worker would seem not to run
_MOST_CONVERSATIONS: Final = 10_000  # the newest ones; the oldest is decided again
_LOCK_SECONDS: Final = 5.0
_TABLE: Final = """
PRAGMA synchronous = OFF; BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owners (place INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, number INTEGER NOT NULL);
COMMIT;
"""
_DECIDE: Final = """
INSERT OR IGNORE INTO owners (name, number)
    SELECT ?, worker.value FROM json_each(?) AS worker
        LEFT JOIN (SELECT number, count(*) AS held FROM owners GROUP BY number) AS counted ON counted.number = worker.value
    ORDER BY coalesce(held, 0), worker.value != ?, worker.value LIMIT 1
"""
_DROP_OLDEST: Final = "DELETE FROM owners WHERE place <= (SELECT max(place) FROM owners) - ?"
_T = TypeVar("_T")
_SIZE: Final = struct.Struct(">I")
_CLOSE: Final = (b"connection", b"close")
_PARTS: Final = ("method", "path", "raw_path", "query_string", "headers")

HANDED_OVER: Final = "compaction.handed_over"
"""The key of a scope whose request another worker handed over."""


@attrs.define(eq=False, slots=False)
class Workers:
    """The workers of a gateway, as one of them sees them. Holds state: a connection to the file of owners."""

    folder: Path  # of the owners' file and of the workers' sockets; only its owner may read it
    count: int
    number: int  # of this one, from 0
    answer_seconds: float = 5.0  # for which `ask` waits for each of the others, > 0

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """The file of owners, opened by the process that uses it; it need not survive a crash of the machine."""
        database = sqlite3.connect(self.folder / "owners.db", timeout=_LOCK_SECONDS, isolation_level=None)
        database.executescript(_TABLE)
        return database

    def owner(self, key: bytes) -> int:
        """Return the number of the worker that serves a conversation, which is decided here if the conversation is new.

        If the key is empty or the file cannot be used, this worker serves the request.
        """
        decided = None
        with suppress(sqlite3.Error):
            if key and (decided := self._decided(key)) is None:
                running = [number for number in range(self.count) if number == self.number or self.socket(number).exists()]
                self._database.execute(_DECIDE, (_name_of(key), json.dumps(running), self.number))
                self._database.execute(_DROP_OLDEST, (_MOST_CONVERSATIONS,))
                decided = self._decided(key)
        return self.number if decided is None else decided

    def take_over(self, key: bytes) -> None:
        """Serve a conversation from now on, because its worker does not run."""
        with suppress(sqlite3.Error):
            self._database.execute("UPDATE owners SET number = ? WHERE name = ?", (self.number, _name_of(key)))

    def _decided(self, key: bytes) -> int | None:
        row = self._database.execute("SELECT number FROM owners WHERE name = ?", (_name_of(key),)).fetchone()
        return None if row is None else int(row[0])

    def socket(self, number: int) -> Path:
        """Return the address of a worker."""
        return self.folder / f"{number}.sock"

    async def hand_over(self, number: int, scope: Scope, body: bytes, send: Send) -> int | None:
        """Let another worker serve a request, send its answer as it arrives, and return the status that was sent.

        It is ``None`` if that worker does not run, or ended before it took the request.

        Raises:
            NoAnswer: If it ends after it took the request, which may have been sent, and before its answer.
            AnswerStopped: If it ends in the middle of the answer.
        """
        status = None
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket(number))
        except OSError:
            return None
        with closing(writer):
            try:
                await _write(writer, ("request", ({name: scope.get(name) for name in _PARTS}, body)))
                await _read(reader)  # that it takes the request, see `_serve`
            except (asyncio.IncompleteReadError, OSError):
                return None
            while True:
                try:
                    message = await _read(reader)
                except (asyncio.IncompleteReadError, OSError) as error:
                    if status is None:
                        raise NoAnswer(502, "WorkerStopped", "another process of the gateway ended") from error
                    raise AnswerStopped("another worker stopped in the middle of an answer") from error
                if message["type"] == "http.response.start":
                    status = message["status"]
                    message["headers"] = [*map(tuple, message["headers"]), _CLOSE]
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    return status

    async def ask(self, kind: str, value: Any = None, *, answer: type[_T], silent: _T | None = None) -> list[_T]:
        """Ask all other workers something, and return their answers, of this type.

        One that does not run gives none. For one that runs but gives none, or none in time, ``silent`` counts, if it is given.
        """

        async def answer_of(number: int) -> _T | None:
            try:
                reader, writer = await asyncio.open_unix_connection(self.socket(number))
            except OSError:
                return None
            with closing(writer), suppress(OSError, asyncio.IncompleteReadError):  # TimeoutError is an OSError
                async with asyncio.timeout(self.answer_seconds):
                    await _write(writer, (kind, value))
                    found: _T = await _read(reader, answer)
                return found
            return silent

        others = (number for number in range(self.count) if number != self.number)
        return [each for each in await asyncio.gather(*map(answer_of, others)) if each is not None]

    @asynccontextmanager
    async def listening(self, app: ASGIApp, answers: Mapping[str, Callable[[Any], Any]]) -> AsyncGenerator[None]:
        """Serve the requests that other workers hand over, with ``app``, and answer other kinds of messages.

        For each kind there is a function of the message's value; its result is sent back unless it is ``None``.
        """

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer):
                try:
                    kind, value = await _read(reader)
                    if kind == "request":
                        await _serve(app, value, reader, writer)
                    elif (found := answers[kind](value)) is not None:
                        await _write(writer, found)
                except (asyncio.IncompleteReadError, ConnectionError):
                    return
                except Exception as error:  # of one request: the others go on, and the other worker sees an answer without end
                    _logger.error("Exception in a request of another worker", exc_info=error)

        path = self.socket(self.number)
        path.unlink(missing_ok=True)
        running = set[asyncio.Task[None]]()

        def start(*connection: Any) -> None:
            running.add(task := asyncio.create_task(serve(*connection)))
            task.add_done_callback(running.discard)

        server = await asyncio.start_unix_server(start, path, backlog=_BACKLOG)
        path.chmod(0o600)
        try:
            yield
        finally:
            server.close()
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _serve(app: ASGIApp, request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a request of another worker, after telling it so; it is cancelled when that closes the connection."""
    scope, body = request
    given = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        if given:
            return given.pop()
        with suppress(ConnectionError):
            await reader.read(1)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        with suppress(ConnectionError):  # the client has left, as `receive` says
            await _write(writer, message)

    headers = [tuple(each) for each in scope["headers"]]
    await _write(writer, "taken")
    await app({**scope, "type": "http", "headers": headers, HANDED_OVER: True}, receive, send)


async def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    """Write a value, after its size."""
    data = msgspec.msgpack.encode(value)
    writer.write(_SIZE.pack(len(data)) + data)
    await writer.drain()


async def _read(reader: asyncio.StreamReader, kind: Any = Any) -> Any:
    (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)


def _name_of(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()
