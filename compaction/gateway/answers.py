"""Answers of the gateway itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .headers import RawHeaders

if TYPE_CHECKING:
    from starlette.types import Send


async def send_error(send: Send, status: int, why: str) -> None:
    """Send an error of the gateway, in the shape in which the providers' clients read one."""
    error: dict[str, Any] = {"type": "gateway_error", "code": status, "message": f"compaction gateway: {why}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    await send_whole(send, status, [(b"content-type", b"application/json")], body)


async def send_whole(send: Send, status: int, headers: RawHeaders, body: bytes) -> None:
    """Send an answer whose body is known."""
    length = [] if any(name == b"content-length" for name, _ in headers) else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})
