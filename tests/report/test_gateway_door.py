"""Who can reach the gateway from a browser: each line of docs/gateway.md, with requests that Chromium itself makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from compaction.gateway import create_app
from tests.support.gateways import ScriptedUpstream, answer, serving_app, settings_of

ATTACKS = {
    "an image": "new Image().src = url + '/v1/models'",
    "a script": "document.body.append(Object.assign(document.createElement('script'), {src: url + '/v1/models'}))",
    "a fetch": "fetch(url + '/v1/models').catch(() => 0)",
    "a fetch without CORS": "fetch(url + '/v1/chat/completions', {method: 'POST', mode: 'no-cors', body: '{}'}).catch(() => 0)",
    "a fetch of the page": "fetch(url + '/status.json', {mode: 'no-cors'}).catch(() => 0)",
    "a preflight": "fetch(url + '/v1/messages', {method: 'POST', headers: {'x-api-key': 'k'}, body: '{}'}).catch(() => 0)",
    "a beacon": "navigator.sendBeacon(url + '/v1/chat/completions', '{}')",
    "events": "new EventSource(url + '/v1/models')",
    "a WebSocket": "new WebSocket(url.replace('http', 'ws') + '/v1/responses')",
    "a form": """
        const form = Object.assign(document.createElement('form'), {method: 'post', action: url + '/v1/messages'});
        document.body.append(form); form.submit()""",
    "a sandboxed frame": """
        const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts';
        frame.srcdoc = `<script>fetch('${url}/v1/messages', {method: 'POST', mode: 'no-cors', body: '{}'})</script>`;
        document.body.append(frame)""",
}
PAGE = answer(200, b"<!doctype html><title>x</title><link rel=icon href=data:,><body></body>", content_type="text/html")


class Watched:
    """A gateway whose answers are noted. Holds state: the origin and status of each request.

    Args:
        upstream: The address of its upstream.
        options: Its settings.
    """

    def __init__(self, upstream: str, **options: Any) -> None:
        self._app: Any = create_app(settings_of(upstream, **options))
        self.answers: list[tuple[str, int]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                origin = dict(scope["headers"]).get(b"origin", b"none").decode()
                self.answers.append((origin, message["status"]))
            await send(message)

        await self._app(scope, receive, noted)

    def first(self, page: Page) -> tuple[str, int]:
        """Wait for a request, and return its origin and the status of its answer."""
        while not self.answers:
            page.wait_for_timeout(10)
        return self.answers[0]


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    """A page that may log errors: the refusals are some."""
    opened = browser.new_page()
    opened.set_default_timeout(20_000)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_page_of_another_port_is_refused(visitor: Page, name: str) -> None:
    """Nothing that a web page can make a browser send reaches the provider; the gateway answers 403."""
    with ScriptedUpstream(answer(200, {})) as upstream, ScriptedUpstream(PAGE) as site:
        gateway = Watched(upstream.url)
        with serving_app(gateway) as url:
            visitor.goto(site.url)
            visitor.evaluate(f"(url) => {{ {ATTACKS[name]} }}", url)
            origin, status = gateway.first(visitor)
    assert status == 403
    assert origin == {"a sandboxed frame": "null", "an image": "none", "a script": "none"}.get(name, origin)
    assert origin in ("none", "null", site.url)
    assert upstream.got == []


@pytest.mark.parametrize(("name", "status"), [("a fetch", 200), ("a WebSocket", 426)])
def test_an_origin_that_is_allowed_by_name_is_served(visitor: Page, name: str, status: int) -> None:
    """A listed page reaches the provider, but it cannot change the protocol."""
    with ScriptedUpstream(answer(200, {})) as upstream, ScriptedUpstream(PAGE) as site:
        gateway = Watched(upstream.url, origins=frozenset({site.url}))
        with serving_app(gateway) as url:
            visitor.goto(site.url)
            visitor.evaluate(f"(url) => {{ {ATTACKS[name]} }}", url)
            assert gateway.first(visitor) == (site.url, status)
    assert len(upstream.got) == (status == 200)


def test_its_own_page_is_served_and_asks_no_provider_for_an_icon(visitor: Page) -> None:
    with ScriptedUpstream(answer(200, {})) as upstream:
        gateway = Watched(upstream.url)
        with serving_app(gateway) as url:
            visitor.goto(f"{url}/")
            assert visitor.evaluate("async () => (await fetch('/status.json')).status") == 200
            assert visitor.evaluate("async () => (await fetch('/favicon.ico')).status") == 404
    assert upstream.got == []


def test_a_name_that_was_rebound_to_this_machine_is_refused(visitor: Page) -> None:
    """A page whose host name suddenly means 127.0.0.1 is of the gateway's own origin, and gets 421."""
    with ScriptedUpstream(answer(200, {})) as upstream:
        gateway = Watched(upstream.url)
        with serving_app(gateway) as url:
            port = url.rpartition(":")[2]
            visitor.goto(f"http://rebound.example:{port}/")
            visitor.evaluate("fetch('/v1/models')")
            while len(gateway.answers) < 2:
                visitor.wait_for_timeout(10)
    assert {status for _, status in gateway.answers} == {421}
    assert upstream.got == []
