"""Fixtures for the browser tests: a headless Chromium, and a page that must not log errors or request anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: run make test-report")

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402  # after the skip

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1",
]


Show: TypeAlias = Callable[[str], None]


def orders(count: int, hostile: str = "") -> list[dict[str, Any]]:
    """Return a conversation about orders in which each answer names a much older order; one message has a hostile text."""
    messages = [{"role": "system", "content": "You keep the orders. Never ship a parcel on a Sunday."}]
    for number in range(count):
        text = f"Order BX-{1000 + number} came for shelf {number}; see stock/{number}.csv {hostile if number == 2 else ''}"
        answer = f"Noted BX-{1000 + number}; before it came BX-{1000 + number // 3}."
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
    return messages


@pytest.fixture
def anyio_backend() -> str:
    """Set the backend that the async plugin requires, although no test here is async."""
    return "asyncio"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed: run make test-report as root on Debian, or set CHROMIUM to the program")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


def new_page(browser: Browser, complaints: list[str]) -> Page:
    """Open a page as wide as a desktop; errors of its scripts are added to ``complaints``."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(20_000)
    opened.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    return opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a page; any console message or network request fails the test."""
    complaints: list[str] = []
    opened = new_page(browser, complaints)
    opened.on("console", lambda message: complaints.append(f"console: {message.text}"))
    opened.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    yield opened
    opened.close()
    assert complaints == []


@pytest.fixture
def show(page: Page, tmp_path: Path) -> Show:
    """Return a function that opens a report and waits for its transcript."""

    def shown(html: str) -> None:
        path = tmp_path / "report.html"
        path.write_text(html, encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_selector(".row")

    return shown
