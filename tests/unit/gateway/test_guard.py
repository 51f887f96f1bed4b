"""Access control of the gateway: attacks are refused before anything reaches the upstream, and what is allowed is served."""

from __future__ import annotations

import base64
import inspect
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from compaction import presets
from compaction.cli.serve import serve_command, settings_of
from compaction.errors import ConfigurationError
from compaction.gateway import GatewaySettings
from compaction.gateway.guard import Guard
from tests.support.gateways import ScriptedUpstream, answer, gateway, never, serving
from tests.support.limits import WAIT_SECONDS

PAGES = ("/", "/status.json", "/healthz", "/metrics")
ROUTES = (*PAGES, "/v1/models")
REFUSED = {400, 403, 404, 413, 421, 426, 431, 501}


def get(path: str = "/v1/models", *headers: str, host: str | None = "127.0.0.1") -> bytes:
    """A request as it is written to the connection."""
    lines = [f"GET {path} HTTP/1.1", *([] if host is None else [f"host: {host}"]), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def post(*headers: str, body: str = "") -> bytes:
    """A request with a body to a route without a conversation."""
    return "\r\n".join(["POST /v1/embeddings HTTP/1.1", "host: 127.0.0.1", *headers, "", body]).encode("latin-1")


BIG = "a" * 300_000
TOKEN = "x-compaction-token"
HOSTS = """
    evil.example evil.example:8484 127.0.0.1.evil.example localhost.evil.example evil.example@127.0.0.1 127.0.0.1@evil.example
    127.0.0.1/evil.example 127.0.0.1#evil.example 127.0.0.1?evil 127.0.0.1. [::1 127.0.0.2 0x7f.1 2130706433 127.1 0.0.0.0
    [::ffff:127.0.0.1] 127.0.0.1,evil.example 127.0.0.1:x
"""
ORIGINS = """
    https://evil.example http://evil.example:8484 null NULL app://agent http://127.0.0.1:5173 http://[::1 ? http://localhost
    https://127.0.0.1.evil.example file:// http://127.0.0.1@evil.example * chrome-extension://abc //127.0.0.1
"""
FOREIGN = ("origin: https://evil.example", "sec-fetch-site: cross-site")
PATHS = """
    /v1/../../admin /v1/%2e%2e/admin /v1/.%2e/admin /.. /v1/./models /v1/..%5cadmin /%2e%2e%2fadmin /v1/%252e%252e/admin
    /v1/..%252fadmin /v1/..;/admin /v1/..;x=y/admin /v1/..%09/admin /v1/..%20/admin /v1/%c0%ae%c0%ae/admin /v1/models%00
    /v1/models%0d%0ax:y /v1/models%250d%250a v1/models http://evil.example/v1/models * /v1/%ff
"""
HEADERS = {
    "two origins": ("origin: http://127.0.0.1", "origin: https://evil.example"),
    "two sites": ("sec-fetch-site: none", "sec-fetch-site: cross-site"),
    "two hosts": ("host: evil.example",),
    "two keys": ("authorization: Bearer a", "authorization: Bearer b"),
    "two tokens": (f"{TOKEN}: a", f"{TOKEN}: b"),
    "a preflight": ("origin: https://evil.example", "access-control-request-method: POST"),
    "a WebSocket": ("connection: upgrade", "upgrade: websocket", "sec-websocket-key: AAAA", "sec-websocket-version: 13"),
    "HTTP/2 in clear": ("connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AA"),
    "a blank before the colon": ("origin : https://evil.example",),
    "a zero in a value": ("x: a\0b",),
    "a large header": (f"x: {BIG}",),
    "many headers": tuple(f"x{number}: a" for number in range(20_000)),
    **{f"site {each}": (f"sec-fetch-site: {each}",) for each in ("cross-site", "same-site", "something", "CROSS-SITE")},
}
BODIES = {
    "two lengths": post("content-length: 1", "content-length: 5", body="abcde"),
    "a length and chunks": post(
        "content-length: 4", "transfer-encoding: chunked", body="0\r\n\r\nGET /v1/admin HTTP/1.1\r\n\r\n"
    ),
    "two encodings": post("transfer-encoding: chunked, identity", body="0\r\n\r\n"),
    "an unknown encoding": post("transfer-encoding: xchunked", body="0\r\n\r\n"),
    "chunked twice": post("transfer-encoding: chunked", "transfer-encoding: chunked", body="0\r\n\r\n"),
    "a negative length": post("content-length: -1"),
    "a length with a sign": post("content-length: +5", body="abcde"),
    "a hexadecimal length": post("content-length: 0x5", body="abcde"),
    "a list of lengths": post("content-length: 5, 6", body="abcde"),
    "no chunk": post("transfer-encoding: chunked", body="zz\r\nabc\r\n0\r\n\r\n"),
}
LINES = {
    "a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /v1/models\r\n\r\n",
    "a zero in the path": b"GET /v1/mod\0els HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "an odd method": b"G=T /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    "bare line ends": b"GET /v1/models HTTP/1.1\nhost: 127.0.0.1\norigin: https://evil.example\n\n",
    "encryption": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "two spaces": b"GET  /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
}
ATTACKS = {
    **{f"host: {host}": get(host=host) for host in (None, "", "127.0.0.1 evil.example", *HOSTS.split())},
    **{
        f"origin: {each}": get("/v1/models", f"origin: {each}")
        for each in ("http://127.0.0.1, https://evil.example", *ORIGINS.split())
    },
    **{f"path: {path[:40]}": get(path) for path in (f"/{BIG}", *PATHS.split())},
    **{f"headers: {name}": get("/v1/models", *headers) for name, headers in HEADERS.items()},
    **{f"body: {name}": raw for name, raw in BODIES.items()},
    **{f"line: {name}": raw for name, raw in LINES.items()},
    "deletion: a page of another origin": b"DELETE /conversations/a HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: https://evil.example\r\n\r\n",
    "deletion: a name that is not known": b"DELETE /conversations/a HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    **{f"its own page: {path} {each}": get(path, each) for path in PAGES for each in FOREIGN},
    **{f"its own page: {path} of another host": get(path, host="evil.example") for path in PAGES},
    **{f"file: {name}": get(name) for name in ("/favicon.ico", "/apple-touch-icon.png", "/robots.txt")},
}


@pytest.fixture(scope="module")
def door() -> Iterator[tuple[ScriptedUpstream, tuple[str, int]]]:
    with ScriptedUpstream(answer(200, {})) as upstream, serving(upstream) as url:
        yield upstream, ("127.0.0.1", int(url.rpartition(":")[2]))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused(name: str, door: tuple[ScriptedUpstream, tuple[str, int]]) -> None:
    """The status says so, nothing reaches the upstream, and the gateway goes on."""
    upstream, address = door
    with socket.create_connection(address, timeout=WAIT_SECONDS) as client:
        client.sendall(ATTACKS[name])
        said = client.recv(1_000)
    assert int(said.split()[1]) in REFUSED
    assert b"www-authenticate" not in said
    assert upstream.got == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8484", "LOCALHOST", "[::1]:8484", "gateway.example"])
async def test_its_own_names_are_served(host: str) -> None:
    """Loopback names and configured names are served, also to their own pages; no header lets others read the answer."""
    async with gateway(answer(200, {}), names=frozenset({"gateway.example"})) as (_, client):
        for route in ROUTES:
            headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
            reply = await client.get(route, headers=headers)
            assert reply.status_code == 200
            assert not any(name.startswith("access-control") for name in reply.headers)


async def test_origins_are_allowed_by_name() -> None:
    """A listed origin is served, also an app's; one that begins like it is not."""
    allowed = frozenset({"http://localhost:3000", "app://agent"})
    async with gateway(answer(200, {}), origins=allowed) as (_, client):
        origins = (*sorted(allowed), "http://localhost:30001", "http://localhost")
        found = [(await client.get("/v1/models", headers={"origin": origin})).status_code for origin in origins]
    assert found == [200, 200, 403, 403]


async def test_the_token_is_asked_for_everywhere_and_sent_nowhere() -> None:
    """With a token, every route needs the gateway's own header, and the token is not sent upstream."""
    wrong = ({}, {TOKEN: "wrong"}, {TOKEN: ""}, {TOKEN: "sesame2"}, {"authorization": "Bearer sesame"}, {TOKEN: "sésame"})
    async with gateway(answer(200, {}), token="sesame") as (upstream, client):
        for headers in wrong:
            for route in (*ROUTES, "/v1/models?x-compaction-token=sesame"):
                reply = await client.get(route, headers=[(k, v.encode()) for k, v in headers.items()])
                assert (reply.status_code, "www-authenticate" in reply.headers) == (401, route in PAGES)
        assert upstream.got == []
        headers = {TOKEN: "sesame", "authorization": "Bearer key"}
        assert [(await client.get(route, headers=headers)).status_code for route in ROUTES] == [200] * 5
    (got,) = upstream.got
    assert TOKEN not in got.headers
    assert got.headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("credentials", "status"),
    [("me:sesame", 200), (":sesame", 200), ("sesame:", 401), ("me:wrong", 401), ("me:s\u00e9same", 401), (None, 401)],
)
async def test_browsers_send_the_token_of_a_page_as_a_password(credentials: str | None, status: int) -> None:
    """The gateway's own pages accept the token as a password; requests to the upstream need the header."""
    value = "Basic ???" if credentials is None else f"Basic {base64.b64encode(credentials.encode()).decode()}"
    async with gateway(answer(200, {}), token="sesame") as (upstream, client):
        for page in PAGES:
            reply = await client.get(page, headers={"authorization": value})
            assert reply.status_code == status
            assert ("www-authenticate" in reply.headers) == (status == 401)
        for page, given in (("/v1/models", value), ("/", value.replace("Basic", "Bearer"))):
            assert (await client.get(page, headers={"authorization": given})).status_code == 401
    assert upstream.got == []


async def test_what_a_server_would_not_pass_on_is_refused_too() -> None:
    """Connections that are not HTTP get no answer, and an ambiguous length is refused whatever else is missing."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    guard: Any = Guard(never, GatewaySettings(strategy=presets.adaptive))
    headers = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    for kind in ("websocket", "http"):
        await guard({"type": kind, "path": "/", "headers": headers}, None, send)
    assert [message.get("status") for message in sent] == [400, None]


async def test_no_request_names_an_upstream() -> None:
    paths = ("//evil.example/v1/models", "/v1/models?url=http://evil.example", "/@evil.example")
    async with gateway(answer(200, {})) as (upstream, client):
        for path in paths:
            headers = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
            assert (await client.get(f"http://127.0.0.1:8484{path}", headers=headers)).status_code == 200
    assert {got.headers["host"] for got in upstream.got} == {upstream.url.removeprefix("http://")}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"token": ""}, "empty 'token'"),
        ({"token": " "}, "empty"),
        ({"token": "sesame "}, "'token' must be printable ASCII without blanks at its ends$"),
        ({"token": "sésame"}, "'token' must be printable ASCII"),
        ({"openai_url": "file:///x"}, "openai_url"),
        ({"openai_url": "https://"}, "'openai_url' must be an address with https:// or http:// and a host"),
        ({"openai_url": "https://[x/v1"}, "'openai_url' must be an address with https:// or http:// and a host"),
        ({"openai_url": "https://llm.example/v1?api-version=1"}, "'openai_url' must be .* without '\\?' and '#'"),
        ({"names": {"gw.local:8484"}}, "'names' must be host names without scheme and port .*gw.local:8484"),
        ({"names": {"10.0.0.1:8484"}}, "'names' must be host names"),
        ({"names": {"http://gw.local"}}, "'names' must be host names"),
        ({"names": "gw.local"}, "'names' must be a set of host names"),
    ],
)
def test_settings_that_protect_nothing_are_errors(options: dict[str, Any], says: str) -> None:
    """A token that everybody can guess, or that no client can send; an address or a host name that is not one."""
    with pytest.raises(ConfigurationError, match=says):
        GatewaySettings(strategy=presets.adaptive, **options)


def test_host_names_are_accepted() -> None:
    """A host name is a name, or an address of either kind."""
    names = frozenset({"gw.local", "10.0.0.1", "::1", "0.0.0.0", "fe80::1%eth0", "GW_1"})
    assert GatewaySettings(strategy=presets.adaptive, names=names).names == names


def test_settings_have_limits() -> None:
    """The smallest values are accepted, those below are errors; a token is in no text. The command has the same defaults."""
    smallest: dict[str, Any] = {"max_body": 1, "most_conversations": 1, "conversation_bytes": 1, "window": 1}
    shortest: dict[str, Any] = {"forget_after": 0.5, "body_seconds": 0.5, "timeout": 0.5}
    settings = GatewaySettings(strategy=presets.adaptive, token="sesame", **smallest, **shortest)
    assert "sesame" not in repr(settings)
    for name in (*smallest, *shortest):
        with pytest.raises(ConfigurationError, match=name):
            GatewaySettings(strategy=presets.adaptive, **{name: 0})
    settings, command = GatewaySettings(strategy=presets.adaptive), inspect.signature(serve_command).parameters
    names = ("max_body", "window", "counter", "store", "forget_after", "token", "shadow", "recall", "record")
    found = {name: getattr(settings, name) for name in names}
    assert found == {name: command[name].default for name in found}
    assert settings.most_conversations == command["conversations"].default
    assert settings.conversation_bytes == command["max_memory"].default
    assert settings.awaits is False
    urls = ("openai_url", "anthropic_url", "google_url", "bedrock_url")
    made = settings_of(None, None, window="auto", store=None, **{name: command[name].default for name in urls})
    assert [getattr(made, name) for name in urls] == [getattr(settings, name) for name in urls]
