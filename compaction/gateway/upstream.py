"""The upstreams: their addresses, and the HTTP client that sends requests to them."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from .bodies import Unreadable, decoded
from .headers import RawHeaders
from .routes import Provider, without_version
from .settings import GatewaySettings, without_login

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

_MOST_ERROR_BYTES: Final = 1_048_576  # of an error that is read completely before it is passed on; a larger one is streamed
_ENDS_IN_VERSION: Final = re.compile(r"/v\d+(?:alpha|beta)?\d*/?$")
_CONNECT_SECONDS: Final = 30.0
_KEPT_OPEN: Final = 15.0  # seconds
_LONGEST_HEADER: Final = 65_536
_PIECE: Final = 262_144
_OWN_HEADERS: Final = ("accept", "accept-encoding", "content-type", "user-agent")  # which the HTTP client would add


class NoAnswer(Exception):
    """An upstream gave no answer."""

    def __init__(self, status: int, why: str, says: str = "") -> None:
        self.status = status  # for the client: 502, or 504 after a timeout
        self.why = why  # the kind of failure, such as ``ClientConnectorError``
        # for the client: the address and the cause, without the query and headers, which may hold a key
        self.says = f"the upstream gave no answer ({why}{says and ': '}{says})"


class AnswerStopped(Exception):
    """An upstream, or another worker, stopped in the middle of its answer; the client's connection is then closed too."""


def is_worth_a_log(record: logging.LogRecord) -> bool:
    """Whether a server's log record is worth writing: not if it only reports a stopped answer, which the gateway has logged.

    >>> is_worth_a_log(logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "cannot listen", None, None))
    True
    """
    return record.exc_info is None or not isinstance(record.exc_info[1], AnswerStopped)


class UnsentBody(Exception):
    """The body of a request could not be read to its end while it was sent."""


REFUSALS: Final = (400, 413, 422, 500)
"""The statuses with which an upstream may refuse a request for its length; Ollama answers 500."""


class UpstreamRefusal(Exception):
    """An upstream's refusal of a request, in the shape that `LengthRefusal` reads: its status, and the text of its answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.body = body


class UpstreamAnswer:
    """An upstream's answer; whatever reads its body raises `NoAnswer` if that stops before its end.

    Holds state: the bytes of its body that were read before it is sent to the client.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: RawHeaders = list(response.raw_headers)
        self.body = bytearray()  # still encoded

    def header(self, name: str) -> str:
        """Return the value of a header; empty if the answer does not have it."""
        return self._response.headers.get(name, "")

    async def read(self, most: int = _MOST_ERROR_BYTES) -> bool:
        """Read the body, and return whether it was read completely: not if it is larger than ``most`` bytes."""
        length = self.header("content-length") or "0"
        if not length.isdigit() or int(length) > most:
            return False
        try:
            while len(self.body) <= most and (chunk := await self._next()):
                self.body += chunk
        except BaseException:
            self.close()
            raise
        return len(self.body) <= most

    def decoded(self, most: int = _MOST_ERROR_BYTES) -> bytes:
        """Return what was read, decompressed; raise `Unreadable` if that cannot be done, or it exceeds ``most`` bytes."""
        return decoded(bytes(self.body), self.header("content-encoding"), most)

    def refusal(self) -> UpstreamRefusal:
        """Return what was read as a refusal; its text is empty if it cannot be decompressed."""
        try:
            return UpstreamRefusal(self.status, self.decoded().decode(errors="replace"))
        except Unreadable:
            return UpstreamRefusal(self.status, "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body, still encoded: what was read, and the rest as it arrives."""
        chunk = bytes(self.body) or await self._next()
        while chunk:
            yield chunk
            chunk = await self._next()

    async def _next(self) -> bytes:
        import aiohttp

        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswer(502, type(error).__name__) from error

    def close(self) -> None:
        """Close the connection, unless the answer has ended."""
        self._response.close()


class Upstreams:
    """The configured upstreams and their HTTP client. Holds state: connections.

    Certificates are verified and redirects are not followed. Only the settings decide where a request is sent.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        names: tuple[Provider, ...] = ("openai", "anthropic", "google", "bedrock")
        self._urls = {name: str(getattr(settings, f"{name}_url")).rstrip("/") for name in names}
        self._proxies = {provider: _proxy_of(url) for provider, url in self._urls.items()}
        self._seconds = settings.timeout
        self._session: ClientSession  # made in the event loop that uses it

    async def __aenter__(self) -> Self:
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_OPEN),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=min(_CONNECT_SECONDS, self._seconds), sock_read=self._seconds
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_OWN_HEADERS,
            auto_decompress=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._session.close()

    def address(self, provider: Provider) -> str:
        """Return the address of a provider's upstream, without a password: pages show it, and files contain it."""
        return without_login(self._urls[provider])

    def url(self, provider: Provider, path: bytes, query: bytes) -> str:
        """Return the URL of a request: the upstream's, followed by the request's path.

        If the upstream's path ends in a version, as ``/api/coding/v3``, the version of the request's path is omitted.
        """
        base, rest = self._urls[provider], path.decode("latin-1")
        if _ENDS_IN_VERSION.search(base):
            rest = without_version(rest)
        return f"{base}{rest}{'?' if query else ''}{query.decode('latin-1')}"

    async def send(
        self,
        method: str,
        provider: Provider,
        target: tuple[bytes, bytes],
        headers: RawHeaders,
        body: bytes | AsyncIterator[bytes] | None,
    ) -> UpstreamAnswer:
        """Send a request once, to a path with a query, and return the answer before its body is read; the caller closes it."""
        import aiohttp
        from yarl import URL

        url = self.url(provider, *target)
        named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        if isinstance(body, bytes) and len(body) > _PIECE:
            named.append(("content-length", str(len(body))))

            async def pieces(whole: bytes = body) -> AsyncIterator[bytes]:  # so that other requests go on meanwhile
                for start in range(0, len(whole), _PIECE):
                    yield whole[start : start + _PIECE]

            body = pieces()
        try:
            response = await self._session.request(
                method, URL(url, encoded=True), headers=named, data=body, allow_redirects=False, proxy=self._proxies[provider]
            )
        except TimeoutError as error:
            raise NoAnswer(504, type(error).__name__, _said(url, error)) from error
        except (aiohttp.ClientError, ValueError) as error:
            if isinstance(error.__cause__, UnsentBody):
                raise error.__cause__ from None
            raise NoAnswer(502, type(error).__name__, _said(url, error)) from error
        return UpstreamAnswer(response)


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for an address, if any; ``NO_PROXY`` makes exceptions.

    The HTTP client's ``trust_env`` would also send passwords from ``~/.netrc``, and does not know ``ALL_PROXY``.
    """
    parts, proxies = urlsplit(url), getproxies()
    return None if proxy_bypass(parts.hostname or "") else proxies.get(parts.scheme, proxies.get("all"))


def _said(url: str, error: Exception) -> str:
    """Return the address that was tried, without its query, which may hold a key, and the cause."""
    cause = " ".join(str(error).split())[:200]
    return f"{without_login(url.partition('?')[0])}, {cause}"
