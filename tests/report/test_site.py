"""The built documentation in Chromium: accessibility, the keyboard, narrow screens. ``make docs`` builds it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: run make test-report")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed: run make test-report")

from playwright.sync_api import Browser, Page  # noqa: E402  # after the skip

from .conftest import new_page  # noqa: E402

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
KINDS = (
    "index",
    "install",
    "tutorial",
    "sessions",
    "gateway",
    "data",
    "benchmarks",
    "retention",
    "rules/anthropic",
    "frameworks/strands",
    "reference/compaction.session",
    "CONTRIBUTING",
)
"""A page of each kind: prose, tables, pictures, charts, generated rules, reference."""

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="the site is not built: run make docs")


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the site on loopback; opened as files, its pages could not load each other's parts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def reader(browser: Browser) -> Iterator[Page]:
    """Open a page of a reader; errors of scripts fail the test."""
    errors: list[str] = []
    opened = new_page(browser, errors)
    yield opened
    opened.close()
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_axe_finds_nothing(reader: Page, address: str, name: str, scheme: Literal["light", "dark"]) -> None:
    """Names, roles, alternative texts, order of headings and contrast are right, in light and in dark."""
    reader.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    reader.goto(f"{address}/{name}.html")
    found: list[dict[str, Any]] = axe.Axe().run(reader).response["violations"]
    assert [f"{each['id']}: {each['nodes'][0]['html'][:200]} ({len(each['nodes'])})" for each in found] == []


@pytest.mark.parametrize("name", ["index", "gateway", "reference/compaction.session"])
def test_a_phone_needs_no_scrolling_sideways(reader: Page, address: str, name: str) -> None:
    """At 360 pixels only tables and code scroll sideways, not the page."""
    reader.set_viewport_size({"width": 360, "height": 740})
    reader.goto(f"{address}/{name}.html")
    assert reader.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_keyboard_reaches_search_and_content(reader: Page, address: str) -> None:
    """The first Tab reaches a link to the content, and the key / opens the search."""
    reader.goto(f"{address}/sessions.html")
    reader.keyboard.press("Tab")
    assert reader.evaluate("document.activeElement.getAttribute('href')") == "#__skip"
    reader.keyboard.press("/")
    reader.get_by_role("combobox", name="Search").wait_for()
    reader.keyboard.type("forget")
    assert reader.get_by_role("combobox", name="Search").input_value() == "forget"
