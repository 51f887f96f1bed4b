"""The replay report in Chromium: charts, strategies, originals, missing facts, and transcripts shown as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from compaction.replay import Candidate, Recording, replay, report_html

from .conftest import Show, orders

HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>&lt;b&gt; \u202e\ud800"


@pytest.fixture(scope="module")
def small() -> str:
    """Return the report of two conversations, one of them within the window."""
    chats = [Recording(id=HOSTILE, messages=orders(120, HOSTILE)), orders(3)]
    return report_html(replay(chats, ["adaptive", "context_window"], window=1_000, counter="chars/4"))


def test_it_opens_and_draws(page: Page, small: str, show: Show) -> None:
    """All charts and tables are shown, and markup in the transcript is not executed."""
    show(small)
    assert page.locator("#figures tbody tr").count() == 5
    assert page.locator("figure > svg").count() == 2
    assert page.locator("#sizes path.edited").count() == 5
    assert page.locator("#causes tbody tr").count() >= 3
    assert page.evaluate("window.broken") is None
    assert page.locator("main script, main img").count() == 0


def test_a_strategy_switches_in_half_a_second(page: Page, small: str, show: Show) -> None:
    show(small)
    before = page.locator("#status").inner_text()
    page.select_option("#strategy", "none")
    page.locator("#status", has_text="none:").wait_for()
    assert page.locator("#status").inner_text() != before
    assert page.locator(".row.kept").count() == page.locator(".row").count()


def test_an_original_is_one_click_away(page: Page, small: str, show: Show) -> None:
    """Clicking a removed message shows its whole original, what happened to it, and the reason."""
    show(small)
    page.select_option("#strategy", "adaptive")
    page.locator("#message-5").click()
    assert HOSTILE[:60] in page.locator("#detail .original").inner_text()
    assert "summarized" in page.locator("#detail h3").first.inner_text()
    assert "GrowingSummary" in page.locator("#detail").inner_text()


def test_missing_facts_are_marked_at_their_call(page: Page, small: str, show: Show) -> None:
    """With the keyboard alone a user reaches the next call with a missing fact, the fact, its message, and returns."""
    show(small)
    page.select_option("#strategy", "hysteresis")
    page.locator("#list").focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    fact = page.locator("#detail .facts li").first
    assert "BX-1" in fact.inner_text()
    fact.locator("button").click()
    assert "dropped" in page.locator("#detail h3").first.inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()


def test_an_earlier_request_can_be_opened(page: Page, small: str, show: Show) -> None:
    """At the first call, earlier messages are shown as kept and all others as later."""
    show(small)
    page.locator("#call").fill("0")
    page.wait_for_selector(".row.later")
    assert page.locator(".row.kept").count() == 2


def test_no_conversation_over_the_window(page: Page, show: Show) -> None:
    """If no conversation exceeds the window there are no charts, but the transcript is shown."""
    show(report_html(replay([orders(3)], window=8_000, counter="chars/4")))
    assert page.locator("#figures tr").count() == 0
    assert page.locator("#comparison").is_hidden()
    assert page.locator("#deploy").is_hidden()
    assert page.locator("#headline").inner_text().startswith("Do not compact.")
    assert page.locator(".row").count() == 7


def test_without_scripts_the_recommendation_is_shown(browser: Browser, tmp_path: Path) -> None:
    result = replay([orders(120, HOSTILE)], [Candidate(HOSTILE, lambda setting: list)], window=1_000, counter="chars/4")
    (tmp_path / "report.html").write_text(report_html(result, minimum_recall=0.0), errors="replace")
    opened = browser.new_page(java_script_enabled=False)
    opened.goto((tmp_path / "report.html").as_uri())
    shown = opened.locator("noscript").inner_text()
    assert "No recommendation: " in shown
    assert "<img src=x" in shown
    opened.close()


def test_twenty_thousand_messages(page: Page, show: Show) -> None:
    """With 20,000 messages the page has at most 3,000 nodes, wherever it is scrolled and whichever strategy is selected."""
    lines = [{"role": "user", "content": f"line {number}"} for number in range(19_980)]  # few requests: a short replay
    show(report_html(replay([[*lines, *orders(10)]], ["truncate"], window=6_000, counter="chars/4")))
    for strategy in ("truncate", "none"):
        page.evaluate(f'select({{ strategy: "{strategy}" }})')
        for place in (0, 280_000, 559_000):
            page.evaluate(f"document.querySelector('#list').scrollTop = {place}")
            page.wait_for_timeout(50)
            assert page.locator("#list *").count() > 20
            assert page.evaluate("document.getElementsByTagName('*').length") <= 3_000
