"""Who may reach the gateway: only requests under its own name, of no foreign web page, and with its token if it has one."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .answers import send_error
from .headers import TOKEN_HEADER, as_mapping
from .settings import LOOPBACK_NAMES, GatewaySettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WEB: Final = ("http", "https")


class Guard:
    """Refuses what may not reach the gateway, before anything else sees it.

    A page in a browser can send a request to this machine under a name of its own (421), or from an origin of its own (403).

    Args:
        app: The application.
        settings: The gateway's settings.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self._app = app
        self._names = LOOPBACK_NAMES | {name.lower() for name in settings.names}
        self._token = settings.token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(as_mapping(scope["headers"]), scope["path"])
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await send_error(send, *refusal)

    def _refusal(self, headers: dict[str, str], path: str) -> tuple[int, str] | None:
        if host_name(headers.get("host", "")) not in self._names:
            return 421, "this gateway is not reached under that name; start it with --name to allow another one"
        origin = urlsplit(headers.get("origin", ""))
        if origin.scheme in _WEB and (origin.hostname or "") not in self._names:
            return 403, "web pages of another origin may not use this gateway"
        given = headers.get(TOKEN_HEADER, "")
        if self._token is not None and not hmac.compare_digest(given.encode(), self._token.encode()):
            return 401, f"this gateway asks for its token in the header {TOKEN_HEADER}"
        if not path.startswith("/"):
            return 400, "the address of a request is a path"
        return None


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without the port.

    >>> host_name("LOCALHOST:8484"), host_name("[::1]:8484"), host_name("evil.example:80")
    ('localhost', '::1', 'evil.example')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
