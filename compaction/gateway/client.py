"""A client's connection: reads its request and streams the answer to it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

import anyio

from .headers import RawHeaders, answer_headers, as_mapping
from .routes import normalized
from .upstream import NoAnswer, UnsentBody, UpstreamAnswer
from .workers import Workers

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send


_IDLE_SECONDS: Final = 60.0


class ClientGone(UnsentBody):
    """The client closed its connection."""


class SlowBody(UnsentBody):
    """The client sent its body too slowly."""


class AnswerStopped(Exception):
    """An upstream stopped in the middle of its answer; the client's connection is then closed too."""


def is_worth_a_log(record: logging.LogRecord) -> bool:
    """Whether a server's log record is worth writing: not if it only reports a stopped answer, which the gateway has logged.

    >>> is_worth_a_log(logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "cannot listen", None, None))
    True
    """
    return record.exc_info is None or not isinstance(record.exc_info[1], AnswerStopped)


class ClientConnection:
    """One request of a client, with its path normalized: decoded and raw. Holds state: the status that was sent, 0 before."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = normalized(scope["path"])
        self.raw_path = normalized((scope.get("raw_path") or self.path.encode()).decode("latin-1")).encode("latin-1")
        self.query: bytes = scope.get("query_string", b"")
        self.raw_headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.headers = as_mapping(self.raw_headers)
        self.status = 0
        self._was_read = anyio.Event()

    async def read_body(self, limit: int, seconds: float) -> bytes | None:
        """Read the body and return it; ``None`` if it is larger than the limit.

        Raises:
            ClientGone: If the client disconnects before the end of the body.
            SlowBody: If the end has not come after these seconds.
        """
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return None
        pieces: list[bytes] = []
        size, more = 0, True
        with anyio.move_on_after(seconds):
            while more:
                piece, more = await self._piece()
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    return None
            return b"".join(pieces)
        raise SlowBody

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces as they arrive.

        Raises:
            ClientGone: If the client disconnects before the end of the body.
            SlowBody: If nothing comes for a minute.
        """
        more = True
        while more:
            try:
                with anyio.fail_after(_IDLE_SECONDS):
                    piece, more = await self._piece()
            except TimeoutError as error:
                raise SlowBody from error
            if piece:
                yield piece

    async def _piece(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether more follows."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more: bool = message.get("more_body", False)
        if not more:
            self._was_read.set()
        return message.get("body", b""), more

    async def gone(self) -> None:
        """Wait until the client disconnects, after its body was read."""
        await self._was_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def send_error(self, status: int, why: str) -> None:
        """Send an error."""
        self.status = status
        await send_error(self._send, status, why)

    async def stream(self, answer: UpstreamAnswer, on_chunk: Callable[[bytes], object] | None = None) -> None:
        """Send an upstream's answer chunk by chunk, then close it; call ``on_chunk`` with each chunk that was sent.

        Raises:
            AnswerStopped: If the upstream stops before the end.
        """
        self.status = answer.status
        headers = answer_headers(answer.headers)
        try:
            await self._send({"type": "http.response.start", "status": self.status, "headers": headers})
            async for chunk in answer.chunks():
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
                if on_chunk is not None:
                    on_chunk(chunk)
        except NoAnswer as stopped:
            raise AnswerStopped(stopped.why) from stopped
        finally:
            answer.close()

    async def hand_over(self, workers: Workers, number: int, body: bytes) -> bool:
        """Let another worker answer; return whether it did.

        Raises:
            NoAnswer: If that worker stops before its answer.
            AnswerStopped: If that worker stops in the middle of the answer.
        """

        async def send(message: Message) -> None:
            self.status = message.get("status", self.status)
            await self._send(message)

        try:
            return await workers.hand_over(number, self._scope, body, send) is not None
        except ConnectionError as error:
            raise AnswerStopped(str(error)) from error

    async def end(self) -> None:
        """End an answer that was sent with `stream`."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_error(send: Send, status: int, why: str, *, headers: RawHeaders | None = None) -> None:
    """Send an error in the shape that the providers' clients read."""
    error: dict[str, Any] = {"type": "gateway_error", "code": status, "message": f"compaction gateway: {why}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    about = [(b"content-type", b"application/json"), *(headers or ()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
