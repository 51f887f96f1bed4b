"""The gateway's live page in Chromium: it shows new conversations, and shows text from requests only as text."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.gateways import ScriptedUpstream, chat_reply, serving, tool_chat

HOSTILE = "<img src=x onerror='window.broken = 1'></script><script>window.broken = 2</script>"
TOKEN = "sesame"


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a gateway with a token that has cut one conversation and received an unreadable request."""
    with ScriptedUpstream(chat_reply()) as upstream, serving(upstream, token=TOKEN) as url:
        headers = {"x-compaction-token": TOKEN}
        with httpx.Client(base_url=url, headers=headers) as client:
            messages = tool_chat(40)
            for count in range(1, len(messages), 2):
                client.post("/v1/chat/completions", json={"model": "gpt-5.4", "messages": messages[:count]})
            client.post("/v1/chat/completions", json={"model": HOSTILE, "messages": messages[:1]})
            client.post("/v1/chat/completions", content=b"not JSON")
        yield url


@pytest.fixture
def live(browser: Browser, address: str) -> Iterator[Page]:
    """Open the page with the token as a password; errors on its console fail the test."""
    context = browser.new_context(http_credentials={"username": "me", "password": TOKEN})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: None if "503" in message.text else complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#conversations > li")
    yield page
    context.close()
    assert complaints == []


def test_it_shows_windows_cuts_and_what_was_not_compacted(live: Page) -> None:
    """The page shows cuts with their tokens, the window, requests that were not compacted, and names as plain text."""
    rows = live.locator("#conversations > li")
    assert rows.count() == 2
    assert rows.nth(0).locator("strong").inner_text() == HOSTILE
    assert live.evaluate("window.broken") is None
    assert live.locator("main img, main script").count() == 0
    cut = rows.nth(1)
    cut.locator("summary").click()
    assert "tokens" in cut.locator(".cuts li").first.inner_text()
    assert cut.locator("[role=meter]").get_attribute("aria-valuemax") == "2000"
    assert "not JSON" in live.locator("#passed_through").inner_text()


def test_it_follows_new_requests(live: Page, address: str) -> None:
    """A new conversation appears within seconds, and an opened list of cuts stays open."""
    live.locator("#conversations > li").nth(1).locator("summary").click()
    body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "another"}]}
    httpx.post(f"{address}/v1/chat/completions", json=body, headers={"x-compaction-token": TOKEN})
    expect(live.locator("#conversations > li")).to_have_count(3, timeout=20_000)
    assert live.locator("#conversations details[open]").count() == 1


def test_it_says_that_the_gateway_is_gone(live: Page) -> None:
    live.route("**/status.json", lambda route: route.fulfill(status=503, body="{}"))
    expect(live.locator("#state.alert")).to_contain_text("does not answer", timeout=20_000)


def test_without_the_token_there_is_no_page(browser: Browser, address: str) -> None:
    """Without the token, pages and data are refused; the page's answer makes a browser ask for the token."""
    assert httpx.get(address).headers["www-authenticate"].startswith("Basic")
    assert httpx.get(f"{address}/status.json").status_code == 401
    assert "www-authenticate" not in httpx.get(f"{address}/v1/models").headers
