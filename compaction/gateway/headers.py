"""Headers: those that are forwarded, those of one connection, and those that name a conversation; and the shape of errors."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl

from ..formats import fields_of

if TYPE_CHECKING:
    from starlette.types import Send

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""Headers as bytes, in order, with names in lower case."""

TOKEN_HEADER: Final = "x-compaction-token"
"""The header of the gateway's own token; ``Authorization`` belongs to the upstream."""

_OF_ONE_CONNECTION: Final = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
    *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
}
_OF_THE_GATEWAY: Final = {b"host", b"content-length", b"expect", TOKEN_HEADER.encode()}
_SESSIONS: Final = (  # the first one that is there counts
    *("x-session-id", "session-id", "session_id", "x-claude-code-session-id", "x-session-affinity", "x-opencode-session"),
    *("conversation_id", "x-conversation-id", "thread-id"),
)
_LONGEST_SESSION: Final = 200
_KEYS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


def request_headers(given: Iterable[tuple[bytes, bytes]], *, readable: str, rewritten: bool) -> RawHeaders:
    """Return the headers that are sent to the upstream, given the client's.

    Content encodings that are not ``readable`` are removed from ``accept-encoding``, and so is the body's if it is rewritten.
    """
    headers = list(given)
    left_out = _OF_ONE_CONNECTION | _OF_THE_GATEWAY | _named_by_connection(headers)
    left_out |= {b"content-encoding"} if rewritten else set()
    known = set(readable.encode().split(b", "))
    sent: RawHeaders = []
    for name, value in headers:
        kept = [each.strip() for each in value.split(b",") if each.split(b";")[0].strip().lower() in known]
        if name not in left_out:
            is_offer = name == b"accept-encoding" and readable
            sent.append((name, b", ".join(kept) or b"identity" if is_offer else value))
    return sent


def answer_headers(given: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Return the headers of an answer that are sent to the client."""
    headers = [(name.lower(), value) for name, value in given]
    left_out = _OF_ONE_CONNECTION | _named_by_connection(headers)
    return [(name, value) for name, value in headers if name not in left_out]


def as_mapping(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; the first value of a repeated one."""
    found: dict[str, str] = {}
    for name, value in given:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def session_of(headers: Mapping[str, str]) -> str | None:
    """Return the session id that an agent sends; ``None`` if it sends none."""
    found = (headers.get(name, "").strip() for name in _SESSIONS)
    return next((value[:_LONGEST_SESSION] for value in found if value), None)


def tenant_of(headers: Mapping[str, str], query: bytes) -> str:
    """Return a digest of the keys of a request, so that conversations of different keys share nothing.

    A JSON web token counts by its issuer and subject, because it is renewed from time to time; the provider verifies it.
    """
    keys = [_lasting(headers[name]) for name in _KEYS if name in headers]
    keys += [value for name, value in parse_qsl(query.decode("latin-1")) if name == "key"]
    return hashlib.blake2b(json.dumps(keys).encode(), digest_size=16).hexdigest() if keys else ""


def _lasting(key: str) -> str:
    parts = key.split(".")
    if len(parts) == 3:
        with contextlib.suppress(ValueError, RecursionError):  # not a token, or deeply nested JSON
            claims = fields_of(json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))) or {}
            if claims.get("sub"):
                return json.dumps([claims.get("iss"), claims["sub"]])
    return key


def _named_by_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    values = (value for name, value in headers if name == b"connection")
    return {each.strip().lower() for value in values for each in value.split(b",")}


async def send_error(send: Send, status: int, why: str, *, headers: RawHeaders | None = None) -> None:
    """Send an error in the shape that the providers' clients read."""
    error: dict[str, Any] = {"type": "gateway_error", "code": status, "message": f"compaction gateway: {why}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    about = [(b"content-type", b"application/json"), *(headers or ()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
