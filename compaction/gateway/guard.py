"""Access control: the name under which the gateway is reached, requests of browsers, the token, and the path."""

from __future__ import annotations

import base64
import contextlib
import hmac
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from .headers import TOKEN_HEADER, as_mapping, send_error
from .pages import PAGE_PATHS
from .settings import LOOPBACK_NAMES, GatewaySettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


_ONCE: Final = (b"host", b"origin", b"sec-fetch-site", b"authorization", TOKEN_HEADER.encode())
_ODD: Final = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff\ufffd]")  # also what is not UTF-8
_HOST: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)


class Guard:
    """Refuses requests that may not reach the gateway.

    A web page can make a browser send a request to this machine: under the page's own host name (refused with 421), or from
    another origin (refused with 403). The browser says so in ``Origin`` or ``Sec-Fetch-Site``, which no page can change. Only
    the gateway's own pages and the origins that the settings list are served.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self._app = app
        self._names = LOOPBACK_NAMES | {name.lower() for name in settings.names}
        self._token = settings.token
        self._origins = frozenset(origin.lower().rstrip("/") for origin in settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request to the application, or refuse it."""
        if scope["type"] not in ("lifespan", "http"):
            return
        is_lifespan = scope["type"] == "lifespan"
        refusal = None if is_lifespan else _ambiguity(scope) or self._refusal(as_mapping(scope["headers"]), scope["path"])
        if refusal is None:
            await self._app(scope, receive, send)
            return
        asks = [(b"www-authenticate", b'Basic realm="compaction gateway"')] if scope["path"] in PAGE_PATHS else []
        await send_error(send, *refusal, headers=asks if refusal[0] == 401 else [])

    def _refusal(self, headers: dict[str, str], path: str) -> tuple[int, str] | None:
        named = _HOST.fullmatch(headers.get("host", ""))
        if named is None or (named[1] or named[2]).lower() not in self._names:
            return 421, "this host name is not allowed; start the gateway with --name to allow it"
        if not self._is_welcome(headers):
            return 403, "web pages of another origin may not use this gateway; start it with --origin to allow one"
        if self._token is not None and not self._has_token(headers, path, self._token):
            return 401, f"this gateway requires its token in the header {TOKEN_HEADER}"
        if "upgrade" in headers:
            return 426, "this gateway does not change the protocol of a connection; connect to the provider directly"
        return None

    def _is_welcome(self, headers: dict[str, str]) -> bool:
        """Whether a request is from no browser, from the gateway's own pages, or from an origin that the settings list."""
        origin = headers.get("origin", "").lower()
        if not origin:
            return headers.get("sec-fetch-site", "none").lower() in ("none", "same-origin")
        host = headers.get("host", "").lower()
        return origin in self._origins or origin in (f"http://{host}", f"https://{host}")

    @staticmethod
    def _has_token(headers: dict[str, str], path: str, token: str) -> bool:
        """Whether a request has the token. Requests for the gateway's own pages may send it as a password, as browsers do."""
        given = headers.get(TOKEN_HEADER, "")
        kind, _, value = headers.get("authorization", "").partition(" ")
        if not given and path in PAGE_PATHS and kind.lower() == "basic":
            with contextlib.suppress(ValueError):
                given = base64.b64decode(value).decode().partition(":")[2]
        return hmac.compare_digest(given.encode(), token.encode())


def _ambiguity(scope: Scope) -> tuple[int, str] | None:
    """Return the refusal of a request whose path, token or end the upstream could read differently from this gateway."""
    names = [name for name, _ in scope["headers"]]
    if any(names.count(name) > 1 for name in _ONCE) or {b"content-length", b"transfer-encoding"} <= set(names):
        return 400, "a header of the request is ambiguous"
    path: str = scope["path"]
    if not path.startswith("/") or _leaves(path) or _leaves(unquote(path)):
        return 400, "the target of a request must be a path without '.', '..' and control characters"
    return None


def _leaves(path: str) -> bool:
    """Whether a path has a segment that names its own folder or the one above, or characters that servers read differently."""
    segments = [segment.partition(";")[0].strip() for segment in re.split(r"[/\\]", path)]
    return not {".", ".."}.isdisjoint(segments) or _ODD.search(path) is not None
