"""The upstreams: their addresses, and the HTTP client that sends requests to them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Self

import anyio
import attrs

from .headers import RawHeaders
from .routes import Provider, without_version
from .settings import GatewaySettings

if TYPE_CHECKING:
    import httpx

MOST_ERROR_BYTES: Final = 1_048_576
"""The largest error, in bytes, that is read completely before it is passed on; a larger one is streamed."""

_ENDS_IN_VERSION: Final = re.compile(r"/v\d+(?:alpha|beta)?\d*/?$")
_CONNECT_SECONDS: Final = 30.0


class NoAnswer(Exception):
    """An upstream gave no answer.

    Args:
        status: The status for the client: 502, or 504 after a timeout.
        why: The kind of failure, such as ``ConnectError``.
        says: What failed and where, for the client; it has neither the query of the URL nor a header.
    """

    def __init__(self, status: int, why: str, says: str = "") -> None:
        super().__init__(f"{status} {why}")
        self.status = status
        self.why = why
        self.says = f"the upstream gave no answer ({why}{says and ': '}{says})"


@attrs.frozen(eq=False)
class WholeAnswer:
    """An upstream's answer that was read completely.

    Args:
        status: Its status.
        headers: Its headers.
        body: Its body, still encoded.
    """

    status: int
    headers: RawHeaders
    body: bytes = attrs.field(repr=False)


class Upstreams:
    """The configured upstreams and their HTTP client. Holds state: connections.

    Certificates are verified and redirects are not followed. Only the settings decide where a request is sent.

    Args:
        settings: The gateway's settings.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        import ssl

        import httpx

        self._urls: dict[Provider, str] = {
            "openai": settings.openai_url.rstrip("/"),
            "anthropic": settings.anthropic_url.rstrip("/"),
            "google": settings.google_url.rstrip("/"),
            "bedrock": settings.bedrock_url.rstrip("/"),
        }
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(settings.timeout, connect=min(_CONNECT_SECONDS, settings.timeout)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
            verify=ssl.create_default_context(),
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._client.aclose()

    def name(self, provider: Provider) -> str:
        """Return the address of a provider's upstream."""
        return self._urls[provider]

    def url(self, provider: Provider, path: bytes, query: bytes) -> httpx.URL:
        """Return the URL of a request: the upstream's, followed by the request's path.

        If the upstream's path ends in a version, the version of the request's path is omitted: neither ``/v1/v1`` nor
        ``/api/coding/v3/v1`` is requested.
        """
        import httpx

        base = self._urls[provider]
        rest = path.decode("latin-1")
        if _ENDS_IN_VERSION.search(base):
            rest = without_version(rest)
        upstream = httpx.URL(base)
        raw = upstream.raw_path.rstrip(b"/") + rest.encode("latin-1") + (b"?" + query if query else b"")
        return upstream.copy_with(raw_path=raw)

    async def send(
        self, method: str, url: httpx.URL, headers: RawHeaders, body: bytes | AsyncIterator[bytes] | None
    ) -> httpx.Response:
        """Send a request once, and return the answer before its body is read; the caller closes it.

        Raises:
            NoAnswer: If the upstream gives no answer.
        """
        import httpx

        request = httpx.Request(method, url, headers=headers, content=body)
        try:
            return await self._client.send(request, stream=True, follow_redirects=False)
        except httpx.TimeoutException as error:
            raise NoAnswer(504, type(error).__name__, _said(url, error)) from error
        except httpx.HTTPError as error:
            raise NoAnswer(502, type(error).__name__, _said(url, error)) from error


def _said(url: httpx.URL, error: Exception) -> str:
    """Return the address that was tried, without its query, which may hold a key, and the cause."""
    cause = " ".join(str(error).split())[:200]
    return f"{url.copy_with(query=None, username=None, password=None)}{cause and ', '}{cause}"


async def read_whole(response: httpx.Response, most: int = MOST_ERROR_BYTES) -> WholeAnswer | None:
    """Read an answer completely and close it; return ``None``, with the answer still open, if it is too large.

    Raises:
        NoAnswer: If the answer stops before its end.
    """
    import httpx

    size = response.headers.get("content-length", "0")
    if not size.isdigit() or int(size) > most:
        return None
    pieces: list[bytes] = []
    read = 0
    try:
        async for chunk in response.aiter_raw():
            pieces.append(chunk)
            read += len(chunk)
            if read > most:
                raise NoAnswer(502, "an answer without an end")
    except httpx.HTTPError as error:
        raise NoAnswer(502, type(error).__name__) from error
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()
    return WholeAnswer(response.status_code, list(response.headers.raw), b"".join(pieces))
