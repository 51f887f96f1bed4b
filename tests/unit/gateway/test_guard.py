"""Access control of the gateway."""

from __future__ import annotations

import base64
import http.client

import pytest

from compaction import presets
from compaction.errors import ConfigurationError
from compaction.gateway import GatewaySettings
from tests.support.gateways import ScriptedUpstream, answer, in_process, serving

PAGES = ("/", "/status.json", "/healthz", "/metrics")
ROUTES = (*PAGES, "/v1/models")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8484", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1"]
)
async def test_another_host_name_is_refused(host: str) -> None:
    """A request with a foreign host name, as in DNS rebinding, is refused with 421 and not sent upstream."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            for route in ROUTES:
                reply = await client.get(route, headers={"host": host})
                assert reply.status_code == 421
    assert upstream.got == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8484", "LOCALHOST", "[::1]:8484", "gateway.example"])
async def test_its_own_names_are_served(host: str) -> None:
    """Loopback names and configured names are served, also to their own pages; no header lets others read the answer."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, names=frozenset({"gateway.example"})) as client:
            for route in ROUTES:
                reply = await client.get(route, headers={"host": host, "origin": f"http://{host}"})
                assert reply.status_code == 200
                assert not any(name.startswith("access-control") for name in reply.headers)


async def test_a_web_page_of_another_origin_is_refused() -> None:
    """A request with an origin that is neither the gateway's own nor listed is refused, whatever the origin looks like."""
    origins = (
        "https://evil.example",
        "http://evil.example:8484",
        "null",
        "app://agent",
        "http://127.0.0.1:5173",
        "http://[::1",
        "?",
    )
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            for route in ROUTES:
                found = [(await client.get(route, headers={"origin": origin})).status_code for origin in origins]
                assert found == [403] * len(origins)
    assert upstream.got == []


async def test_origins_are_allowed_by_name() -> None:
    """A listed origin is served, also an app's; one that begins like it is not."""
    allowed = frozenset({"http://localhost:3000", "app://agent"})
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, origins=allowed) as client:
            origins = (*sorted(allowed), "http://localhost:30001", "http://localhost")
            found = [(await client.get("/v1/models", headers={"origin": origin})).status_code for origin in origins]
            image = await client.get("/v1/models", headers={"sec-fetch-site": "same-site"})
    assert found == [200, 200, 403, 403]
    assert image.status_code == 403


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("something", 403), ("same-origin", 200), ("none", 200)]
)
async def test_an_image_of_another_page_is_refused(site: str, status: int) -> None:
    """A browser's request without an origin says whether another page caused it."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            for route in ROUTES:
                assert (await client.get(route, headers={"sec-fetch-site": site})).status_code == status
    assert len(upstream.got) == (status == 200)


@pytest.mark.parametrize(
    "path", ["/v1/../../admin", "/v1/%2e%2e/admin", "/..", "/v1/./models", "/v1/..%5cadmin", "/%2e%2e%2fadmin"]
)
def test_a_path_does_not_leave_the_upstream(path: str) -> None:
    """A path with a segment that names the folder above, however it is written, is refused."""
    with ScriptedUpstream(answer(200, {})) as upstream, serving(upstream) as url:
        client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        client.request("GET", path)
        assert client.getresponse().status == 400
        client.close()
    assert upstream.got == []


@pytest.mark.parametrize("path", ["/favicon.ico", "/apple-touch-icon.png", "/robots.txt"])
async def test_what_browsers_ask_for_is_not_sent_on(path: str) -> None:
    """The files that a browser requests by itself are answered here."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            assert (await client.get(path)).status_code == 404
    assert upstream.got == []


async def test_the_protocol_of_a_connection_stays() -> None:
    """A WebSocket's handshake is refused instead of being sent on as a plain request."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            reply = await client.get("/v1/realtime", headers={"connection": "upgrade", "upgrade": "websocket"})
    assert reply.status_code == 426
    assert upstream.got == []


@pytest.mark.parametrize("token", ["", " "])
def test_an_empty_token_is_an_error(token: str) -> None:
    """A token that everybody can guess is refused, as from a variable that is not set."""
    with pytest.raises(ConfigurationError, match="empty 'token'"):
        GatewaySettings(strategy=presets.adaptive, token=token)


async def test_the_token_is_asked_for_everywhere_and_sent_nowhere() -> None:
    """With a token, every route needs the gateway's own header, and the token is not sent upstream."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, token="sesame") as client:
            for headers in (
                {},
                {"x-compaction-token": "wrong"},
                {"authorization": "Bearer sesame"},
                {"x-compaction-token": "sésame"},
            ):
                for route in ROUTES:
                    assert (await client.get(route, headers=[(k, v.encode()) for k, v in headers.items()])).status_code == 401
            assert upstream.got == []
            headers = {"x-compaction-token": "sesame", "authorization": "Bearer key"}
            assert [(await client.get(route, headers=headers)).status_code for route in ROUTES] == [200] * 5
    (got,) = upstream.got
    assert "x-compaction-token" not in got.headers
    assert got.headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("credentials", "status"),
    [("me:sesame", 200), (":sesame", 200), ("sesame:", 401), ("me:wrong", 401), ("me:s\u00e9same", 401), (None, 401)],
)
async def test_browsers_send_the_token_of_a_page_as_a_password(credentials: str | None, status: int) -> None:
    """The gateway's own pages accept the token as a password; requests to the upstream need the header."""
    value = "Basic ???" if credentials is None else f"Basic {base64.b64encode(credentials.encode()).decode()}"
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, token="sesame") as client:
            for page in PAGES:
                reply = await client.get(page, headers={"authorization": value})
                assert reply.status_code == status
                assert ("www-authenticate" in reply.headers) == (status == 401)
            assert (await client.get("/v1/models", headers={"authorization": value})).status_code == 401
    assert upstream.got == []


async def test_no_request_names_an_upstream() -> None:
    """Whatever address a request names, it is sent to the configured upstream."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            for path in (
                "//evil.example/v1/models",
                "/v1/models?url=http://evil.example",
                "/@evil.example",
            ):
                assert (await client.get(f"http://127.0.0.1:8484{path}")).status_code == 200
    assert len(upstream.got) == 3
    assert {got.headers["host"] for got in upstream.got} == {upstream.url.removeprefix("http://")}


def test_an_address_must_be_one() -> None:
    """A ``ConfigurationError`` is raised for an upstream address that is not a web address."""
    with pytest.raises(ConfigurationError, match="openai_url"):
        GatewaySettings(strategy=presets.adaptive, openai_url="file:///etc/passwd")
