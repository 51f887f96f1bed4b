"""Responses that the gateway itself sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .headers import RawHeaders

if TYPE_CHECKING:
    from starlette.types import Send


async def send_error(send: Send, status: int, why: str, *, headers: RawHeaders | None = None) -> None:
    """Send an error in the shape that the providers' clients read."""
    error: dict[str, Any] = {"type": "gateway_error", "code": status, "message": f"compaction gateway: {why}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    await send_whole(send, status, [(b"content-type", b"application/json"), *(headers or ())], body)


async def send_whole(send: Send, status: int, headers: RawHeaders, body: bytes) -> None:
    """Send a response with a complete body."""
    length = [] if any(name == b"content-length" for name, _ in headers) else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})
