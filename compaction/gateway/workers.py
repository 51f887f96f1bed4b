"""Several processes that serve one address: each conversation belongs to one of them, which other workers hand its requests.

All workers accept connections at the same address. A conversation is recognized by the session id that the agent sends, or by
its first messages, which every later request repeats. A new conversation gets the worker that has the fewest. The decision is
one transaction in a SQLite file that all workers share, so it is made once, however many requests of a new conversation arrive
at once, and holds for a worker that starts later. A request that arrives elsewhere is handed over through a Unix socket in a
folder that only its owner can read; the answer comes back the same way, chunk by chunk. It closes the client's connection, so
that the client's next connection may reach the right worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import struct
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import msgspec

from ..formats import fields_of
from .breakpoints import for_comparison

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope, Send

    from .conversations import ConversationRequest

_logger: Final = logging.getLogger("uvicorn.error")  # of the errors of requests, which `is_worth_a_log` filters
_INSTRUCTIONS: Final = ("system", "developer")
_ANSWERS: Final = ("assistant", "model", "reasoning", "function_call")
_MOST_FIRST: Final = 4
_MOST_CONVERSATIONS: Final = 10_000  # the newest ones; the oldest is decided again
_LOCK_SECONDS: Final = 5.0
_BACKLOG: Final = 65_536  # asyncio's 100 resets connections in a burst, and their worker would seem not to run
_TABLE: Final = """
PRAGMA synchronous = OFF; BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS owners (place INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, number INTEGER NOT NULL);
COMMIT;
"""
_T = TypeVar("_T")
_SIZES: Final = struct.Struct(">II")
_CLOSE: Final = (b"connection", b"close")
_PARTS: Final = ("method", "path", "raw_path", "query_string", "headers")

HANDED_OVER: Final = "compaction.handed_over"
"""The key of a scope whose request another worker handed over."""


def binding(request: ConversationRequest) -> bytes:
    """Return the bytes that are the same in all requests of a conversation: the agent's session id, or its first messages.

    Instructions do not count, because some agents write the time into them, and neither does what follows the first answer.
    Nothing is returned for messages that cannot be compared; any worker then serves the request.
    """
    if request.id is not None:
        return request.id.encode()
    first: list[Any] = []
    for message in request.messages:
        about = fields_of(message) or {}
        role = about.get("role")
        if role in _ANSWERS or about.get("type") in _ANSWERS or len(first) == _MOST_FIRST:
            break
        if role not in _INSTRUCTIONS:
            first.append(message)
    try:
        return json.dumps(for_comparison(first, request.route.format), sort_keys=True).encode()
    except Exception:  # of a message that is nested too deep, for example; it is passed on as it came
        return b""


def _name_of(binding: bytes) -> bytes:
    return hashlib.blake2b(binding, digest_size=16).digest()


@attrs.define(eq=False, slots=False)
class Workers:
    """The workers of a gateway, as one of them sees them. Holds state: a connection to the file of their decisions.

    Args:
        folder: The folder of that file and of their sockets; only its owner may read it.
        count: The number of workers.
        number: The number of this one, from 0.
    """

    folder: Path
    count: int
    number: int

    @cached_property
    def _decisions(self) -> sqlite3.Connection:
        """The file, opened by the process that uses it; it need not survive a crash of the machine."""
        database = sqlite3.connect(self.folder / "owners.db", timeout=_LOCK_SECONDS, isolation_level=None)
        database.executescript(_TABLE)
        return database

    def owner(self, binding: bytes) -> int:
        """Return the number of the worker that serves a conversation, which is decided here if the conversation is new.

        A worker that does not listen yet gets none. If the file cannot be used, this worker serves the request.
        """
        try:
            return self._owner(_name_of(binding)) if binding else self.number
        except sqlite3.Error:
            return self.number

    def _owner(self, name: bytes) -> int:
        if (found := self._decided(name)) is not None:
            return found
        with self._deciding() as database:
            if (found := self._decided(name)) is not None:
                return found
            counts = {number: 0 for number in range(self.count) if number == self.number or self.socket(number).exists()}
            rows: Iterable[tuple[int, int]] = database.execute("SELECT number, COUNT(*) FROM owners GROUP BY number")
            counts |= {number: count for number, count in rows if number in counts}
            chosen = min(counts, key=lambda number: (counts[number], number != self.number))
            place = database.execute("INSERT INTO owners (name, number) VALUES (?, ?)", (name, chosen)).lastrowid or 0
            database.execute("DELETE FROM owners WHERE place <= ?", (place - _MOST_CONVERSATIONS,))
        return chosen

    def take_over(self, binding: bytes) -> None:
        """Serve a conversation from now on, because its worker does not run."""
        with suppress(sqlite3.Error), self._deciding() as database:
            database.execute("UPDATE owners SET number = ? WHERE name = ?", (self.number, _name_of(binding)))

    def _decided(self, name: bytes) -> int | None:
        row = self._decisions.execute("SELECT number FROM owners WHERE name = ?", (name,)).fetchone()
        return None if row is None else int(row[0])

    @contextmanager
    def _deciding(self) -> Generator[sqlite3.Connection]:
        """Run the block as one transaction, while no other worker decides."""
        self._decisions.execute("BEGIN IMMEDIATE")
        with self._decisions as database:
            yield database

    def socket(self, number: int) -> Path:
        """Return the address of a worker."""
        return self.folder / f"{number}.sock"

    async def hand_over(self, number: int, scope: Scope, body: bytes, send: Send) -> int | None:
        """Let another worker serve a request, and send its answer as it arrives.

        Returns:
            The status that was sent; ``None`` if that worker does not run, and nothing was sent.

        Raises:
            ConnectionError: If it stops in the middle of the answer.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket(number))
        except OSError:
            return None
        status = None
        with closing(writer):
            try:
                await _write(writer, "request", {name: scope.get(name) for name in _PARTS}, body)
            except OSError:
                return None
            while True:
                try:
                    message, data = await _read(reader)
                except (asyncio.IncompleteReadError, OSError) as error:
                    if status is None:
                        return None
                    raise ConnectionError("another worker stopped in the middle of an answer") from error
                if message["type"] == "http.response.start":
                    status = message["status"]
                    message = {**message, "headers": [*map(tuple, message["headers"]), _CLOSE]}
                else:
                    message = {**message, "body": data}
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    return status

    async def ask(self, kind: str, value: Any = None, *, answer: type[_T]) -> list[_T]:
        """Ask or tell all other workers something, and return the answers, of this type, of those that run and answer."""
        found: list[_T] = []
        for number in self._others():
            try:
                reader, writer = await asyncio.open_unix_connection(self.socket(number))
                with closing(writer):
                    await _write(writer, kind, value)
                    _, data = await _read(reader)
                found.append(msgspec.msgpack.decode(data, type=answer))
            except (OSError, asyncio.IncompleteReadError):
                continue
        return found

    def _others(self) -> list[int]:
        return [number for number in range(self.count) if number != self.number]

    @asynccontextmanager
    async def listening(self, app: ASGIApp, answers: Mapping[str, Callable[[Any], Any]]) -> AsyncGenerator[None]:
        """Serve the requests that other workers hand over.

        Args:
            app: Serves a request.
            answers: For each other kind of message, a function of its value; its result is sent back unless it is ``None``.
        """

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer):
                try:
                    (kind, value), data = await _read(reader)
                    if kind == "request":
                        await _serve(app, value, data, reader, writer)
                    elif (found := answers[kind](value)) is not None:
                        await _write(writer, "answer", None, msgspec.msgpack.encode(found))
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


async def _serve(
    app: ASGIApp, scope: Mapping[str, Any], body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve a request of another worker; it is cancelled when that closes the connection."""
    given = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        if given:
            return given.pop()
        with suppress(ConnectionError):
            await reader.read(1)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        with suppress(ConnectionError):  # the client has left, as `receive` says
            await _write(writer, None, {**message, "body": None}, message.get("body", b""))

    headers = [tuple(each) for each in scope["headers"]]
    await app({**scope, "type": "http", "headers": headers, HANDED_OVER: True}, receive, send)


async def _write(writer: asyncio.StreamWriter, kind: str | None, value: Any, data: bytes = b"") -> None:
    """Write a message: the sizes of its two parts, a value, and data."""
    head = msgspec.msgpack.encode(value if kind is None else (kind, value))
    writer.write(_SIZES.pack(len(head), len(data)) + head + data)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> tuple[Any, bytes]:
    head, size = _SIZES.unpack(await reader.readexactly(_SIZES.size))
    value = msgspec.msgpack.decode(await reader.readexactly(head))
    return value, await reader.readexactly(size) if size else b""
