"""Access control of the gateway."""

from __future__ import annotations

import base64

import pytest

from compaction import presets
from compaction.errors import ConfigurationError
from compaction.gateway import GatewaySettings
from tests.support.gateways import ScriptedUpstream, answer, in_process

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
    """Loopback names and configured names are served, without headers that let web pages read the answer."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream, names=frozenset({"gateway.example"})) as client:
            for route in ROUTES:
                reply = await client.get(route, headers={"host": host, "origin": "http://localhost:3000"})
                assert reply.status_code == 200
                assert not any(name.startswith("access-control") for name in reply.headers)


async def test_a_web_page_of_another_origin_is_refused() -> None:
    """Requests from a foreign web page's origin are refused; those from local pages, apps or the origin ``null`` are not."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            origins = ("https://evil.example", "http://evil.example:8484", "null", "app://agent", "http://127.0.0.1:5173")
            found = [(await client.get("/v1/models", headers={"origin": origin})).status_code for origin in origins]
    assert found == [403, 403, 200, 200, 200]


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
                "/v1/../../x",
                "/v1/models?url=http://evil.example",
                "/@evil.example",
                "/%2e%2e/x",
            ):
                assert (await client.get(f"http://127.0.0.1:8484{path}")).status_code == 200
    assert len(upstream.got) == 5
    assert {got.headers["host"] for got in upstream.got} == {upstream.url.removeprefix("http://")}


def test_an_address_must_be_one() -> None:
    """A ``ConfigurationError`` is raised for an upstream address that is not a web address."""
    with pytest.raises(ConfigurationError, match="openai_url"):
        GatewaySettings(strategy=presets.adaptive, openai_url="file:///etc/passwd")
