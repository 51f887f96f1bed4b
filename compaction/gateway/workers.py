"""Several processes that serve one address: each conversation belongs to one of them, which other workers hand its requests.

All workers accept connections at the same address. A conversation is recognized by the session id that the agent sends, or by
its first messages, which every later request repeats. The worker that gets its first request keeps it, unless that worker has
more conversations than another, and tells the others. So an agent that keeps its connection mostly stays with one worker. A
request that arrives elsewhere is handed over through a Unix socket in a folder that only its owner can read; the answer comes
back the same way, chunk by chunk.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from ..formats import fields_of
from .bodies import decoded
from .breakpoints import for_comparison
from .headers import session_of
from .routes import ModelRoute

if TYPE_CHECKING:
    from anyio.abc import ByteStream
    from starlette.types import ASGIApp, Scope, Send

_INSTRUCTIONS: Final = frozenset(("system", "developer"))
_ANSWERS: Final = frozenset(("assistant", "model", "reasoning", "function_call"))
_MOST_FIRST: Final = 4
_MOST_CONVERSATIONS: Final = 10_000
_MOST_MORE: Final = 1  # conversations, than another worker
_SIZES: Final = struct.Struct(">II")
_PARTS: Final = ("method", "path", "raw_path", "query_string", "headers")

HANDED_OVER: Final = "compaction.handed_over"
"""The key of a scope whose request another worker handed over."""


def binding(route: ModelRoute, body: bytes, headers: Mapping[str, str], limit: int) -> bytes:
    """Return the bytes that are the same in all requests of a conversation: the agent's session id, or its first messages.

    Instructions do not count, because some agents write the time into them, and neither does what follows the first answer.

    Args:
        route: The route of the request.
        body: Its body.
        headers: Its headers.
        limit: The largest decompressed body, in bytes.

    Returns:
        Nothing if the body cannot be read; any worker then serves the request.
    """
    if (id := session_of(headers)) is not None:
        return id.encode()
    try:
        first: list[Any] = []
        for raw in _decoder(route.key).decode(decoded(body, headers.get("content-encoding", ""), limit)).messages:
            message = msgspec.json.decode(raw)
            about = fields_of(message) or {}
            if _ANSWERS & {about.get("role"), about.get("type")} or len(first) == _MOST_FIRST:
                break
            if about.get("role") not in _INSTRUCTIONS:
                first.append(message)
        return json.dumps(for_comparison(first, route.format), sort_keys=True).encode()
    except Exception:  # each library raises an error type of its own; the request is served here, and passed on as it came
        return b""


@cache
def _decoder(key: str) -> msgspec.json.Decoder[Any]:
    """Return a decoder of a request that leaves its messages, in the field ``key``, as JSON."""
    field = ("messages", list[msgspec.Raw], msgspec.field(name=key))
    return msgspec.json.Decoder(msgspec.defstruct("Request", [field]))


@attrs.frozen(eq=False)
class Workers:
    """The workers of a gateway, as one of them sees them. Holds state: the worker of each conversation.

    Args:
        folder: The folder of their sockets; only its owner may read it.
        count: The number of workers.
        number: The number of this one, from 0.
    """

    folder: Path
    count: int
    number: int
    _owners: OrderedDict[str, int] = attrs.field(factory=OrderedDict[str, int], init=False, repr=False)

    async def owner(self, binding: bytes) -> int:
        """Return the number of the worker that serves a conversation, which is decided here if the conversation is new."""
        if not binding:
            return self.number
        name = hashlib.blake2b(binding, digest_size=16).hexdigest()
        if (found := self._owners.get(name)) is not None:
            self._owners.move_to_end(name)
            return found
        counts = Counter(dict.fromkeys(range(self.count), 0))
        counts.update(self._owners.values())
        least = min(counts, key=lambda number: (counts[number], number != self.number))
        chosen = least if counts[self.number] - counts[least] > _MOST_MORE else self.number
        self._note({name: chosen})
        await self.tell("owners", {name: chosen})
        return self._owners[name]

    def _note(self, owners: Mapping[str, int]) -> None:
        """Note the workers of conversations. If two began the same one at once, the one with the lower number keeps it."""
        for name, number in owners.items():
            self._owners[name] = min(number, self._owners.get(name, number))
            if len(self._owners) > _MOST_CONVERSATIONS:
                self._owners.popitem(last=False)

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
            stream = await anyio.connect_unix(self.socket(number))
        except OSError:
            return None
        status = None
        async with stream:
            await _write(stream, "request", {name: scope.get(name) for name in _PARTS}, body)
            reader = BufferedByteReceiveStream(stream)
            try:
                while True:
                    message, data = await _read(reader)
                    if message["type"] == "http.response.start":
                        status = message["status"]
                        message = {**message, "headers": [tuple(each) for each in message["headers"]]}
                    else:
                        message = {**message, "body": data}
                    await send(message)
                    if message["type"] == "http.response.body" and not message.get("more_body"):
                        return status
            except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError) as error:
                if status is None:
                    return None
                raise ConnectionError("another worker stopped in the middle of an answer") from error

    async def tell(self, kind: str, value: Any) -> None:
        """Tell all other workers something; those that do not run miss it."""
        for number in self._others():
            try:
                async with await anyio.connect_unix(self.socket(number)) as stream:
                    await _write(stream, kind, value)
            except (OSError, anyio.BrokenResourceError):
                continue

    async def ask(self, kind: str) -> list[Any]:
        """Return the answers of all other workers that run."""
        found: list[Any] = []
        for number in self._others():
            try:
                async with await anyio.connect_unix(self.socket(number)) as stream:
                    await _write(stream, kind, None)
                    _, data = await _read(BufferedByteReceiveStream(stream))
                    found.append(pickle.loads(data))  # from a process of this user, in a folder of this user
            except (OSError, anyio.BrokenResourceError, anyio.IncompleteRead):
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

        async def serve(stream: ByteStream) -> None:
            async with stream:
                reader = BufferedByteReceiveStream(stream)
                try:
                    (kind, value), data = await _read(reader)
                    if kind == "request":
                        await _serve(app, value, data, reader, stream)
                    elif (found := answers[kind](value)) is not None:
                        await _write(stream, "answer", None, pickle.dumps(found))
                except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return

        answers = {"owners": self._note, "all owners": lambda _: dict(self._owners), **answers}
        path = self.socket(self.number)
        path.unlink(missing_ok=True)
        for owners in await self.ask("all owners"):  # of the time before this worker was started again
            self._note(owners)
        async with await anyio.create_unix_listener(path, mode=0o600) as listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            yield
            group.cancel_scope.cancel()


async def _serve(app: ASGIApp, scope: Mapping[str, Any], body: bytes, reader: Any, stream: ByteStream) -> None:
    """Serve a request of another worker; it is cancelled when that closes the connection."""
    given = [{"type": "http.request", "body": body}]

    async def receive() -> Any:
        if given:
            return given.pop()
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await reader.receive()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await _write(stream, None, {**message, "body": None}, message.get("body", b""))

    headers = [tuple(each) for each in scope["headers"]]
    await app({**scope, "type": "http", "headers": headers, HANDED_OVER: True}, receive, send)


async def _write(stream: ByteStream, kind: str | None, value: Any, data: bytes = b"") -> None:
    """Write a message: the sizes of its two parts, a value, and data."""
    head = msgspec.msgpack.encode(value if kind is None else (kind, value))
    await stream.send(_SIZES.pack(len(head), len(data)) + head + data)


async def _read(reader: BufferedByteReceiveStream) -> tuple[Any, bytes]:
    head, size = _SIZES.unpack(await reader.receive_exactly(_SIZES.size))
    value = msgspec.msgpack.decode(await reader.receive_exactly(head))
    return value, await reader.receive_exactly(size) if size else b""
