"""The replay report on three widths, in light and dark, on paper, by keyboard and for screen readers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import Page

from compaction.replay import Candidate, replay, report_html

from .conftest import Show, orders

Scheme: TypeAlias = Literal["light", "dark"]

WIDTHS = [360, 390, 900, 1440]
HOSTILE_NAME = "<img src=x onerror='window.broken = 3'>"

CONTRASTS = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text || element.closest("script, option") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const one = light(parse(element.ownerSVGElement ? style.fill : style.color)), two = light(ground(element));
    const ratio = (Math.max(one, two) + .05) / (Math.min(one, two) + .05);
    if (ratio < 4.5) bad.push([ratio, element.outerHTML.slice(0, 120)]);
  }
  return bad;
}"""

LABELS = """() => {
  const frame = document.querySelector("#frontier svg").getBoundingClientRect();
  const boxes = [...document.querySelectorAll("#frontier .label, #frontier .dot, #frontier .better-text")].map((each) =>
    [each.textContent, each.getBoundingClientRect(), each.matches(".dot")]);
  const wrong = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1)
    .map(([text]) => `${text} is cut`);
  boxes.forEach(([text, one, dot], at) => boxes.slice(at + 1).forEach(([other, two, otherDot]) => {
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (across > 2 && down > 4 && !(dot && otherDot)) wrong.push(`${text} and ${other} overlap`);
  }));
  return wrong;
}"""

HIDDEN = """() => [...document.querySelectorAll("body *")].filter((each) => {
  const style = getComputedStyle(each);
  if (!each.getClientRects().length || each.closest("svg, select, .row, script")) return false;
  if (each.scrollWidth <= each.clientWidth + 1 || style.display === "inline" || style.overflowX === "visible") return false;
  return !(["auto", "scroll"].includes(style.overflowX) && each.tabIndex === 0);
}).map((each) => each.outerHTML.slice(0, 120))"""


def newest(count: int) -> Candidate:
    """Return a candidate that keeps the newest messages; several of them lie close together in the chart."""
    name = HOSTILE_NAME if count == 5 else f"the_newest_{count}_messages_and_nothing_else_of_the_conversation"
    return Candidate(name, lambda setting: lambda messages: messages[-count:])


@pytest.fixture(scope="module")
def many() -> str:
    """Return the report of six conversations under twelve strategies, with intervals and a recommendation."""
    chats = [orders(110 + 5 * number) for number in range(6)]
    strategies = ["adaptive", "context_window", "hermes", "token_budget", *(newest(count) for count in (5, 7, 9, 11, 13))]
    return report_html(replay(chats, strategies, window=2_400, counter="chars/4"), minimum_recall=0.2, calls_per_month=10_000)


def test_it_decides(page: Page, many: str, show: Show) -> None:
    """On top are one sentence, the money saved at the reader's volume with dated prices, and lines to paste."""
    show(many)
    assert page.locator("main section").first.get_attribute("id") == "recommendation"
    assert page.locator("#headline").inner_text().startswith("Use ")
    assert " of sending everything and keeps " in page.locator("#headline").inner_text()
    before = page.locator("#money strong").inner_text()
    assert before.startswith("$")
    assert before.endswith("saved a month")
    page.locator("#volume").fill("1000000")
    after = page.locator("#money strong").inner_text()
    assert float(after.split()[0].replace("$", "").replace(",", "")) > 50 * float(before.split()[0].replace("$", ""))
    assert "Prices of gpt-5 of 20" in page.locator("#money-basis").inner_text()
    assert "CompactionSession(" in page.locator(".snippet pre").first.inner_text()


def test_copying_needs_no_permission(page: Page, many: str, show: Show) -> None:
    """The button copies the lines, or selects them where a page may not write to the clipboard."""
    show(many)
    button = page.locator(".snippet button").first
    button.click()
    page.locator(".snippet button", has_text=re.compile("^(Copied|Selected)$")).wait_for()
    assert "CompactionSession(" in page.evaluate("getSelection().toString()")


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_are_whole_and_apart(page: Page, many: str, show: Show, width: int) -> None:
    """In the chart of cost against recall no label is cut, or overlaps another label or a point."""
    page.set_viewport_size({"width": width, "height": 900})
    show(many)
    assert page.locator("#frontier .name").count() == 12
    assert page.evaluate(LABELS) == []
    assert page.locator("#frontier .better-text").inner_html() == "better"


def test_shapes_tell_strategies_apart(page: Page, many: str, show: Show) -> None:
    """Each strategy has a shape of its own, so that nothing depends on colour."""
    show(many)
    shapes = page.eval_on_selector_all("#figures .mark-of path", "all => all.map((each) => each.getAttribute('d'))")
    assert len(set(shapes)) == len(shapes) == 12


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_without_a_way_to_scroll(page: Page, many: str, show: Show, width: int) -> None:
    """The page is as wide as the screen; what is wider than its place is in a box that scrolls, by keyboard too."""
    page.set_viewport_size({"width": width, "height": 900})
    show(many)
    page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
    page.locator(".row").nth(3).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(HIDDEN) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page: Page, many: str, show: Show, scheme: Scheme) -> None:
    """All text has a contrast of 4.5 or more, in light and in dark."""
    page.emulate_media(color_scheme=scheme)
    show(many)
    page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
    page.locator("#call").fill("30")
    page.locator("#list").focus()
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground[scheme]
    assert page.evaluate(CONTRASTS) == []


def test_every_column_is_explained_with_its_unit(page: Page, many: str, show: Show) -> None:
    """Each head has a name, a unit and a sentence; each table has a caption, and heads for rows and columns."""
    show(many)
    page.locator("#comparison summary").click()
    for table in ("#figures", "#more"):
        heads = page.locator(f"{table} thead th").all()[1:]
        for head in heads:
            assert [head.locator(f".{part}").inner_text() != "" for part in ("title", "unit", "why")] == [True] * 3
    assert page.locator("table").count() == page.locator("table > caption").count() == 5
    assert page.locator("th:not([scope])").count() == 0


def test_a_screen_reader_finds_its_way(page: Page, many: str, show: Show) -> None:
    """There are landmarks, named regions, headings without gaps, a name for each control, and text for each chart."""
    show(many)
    assert [page.locator(each).count() for each in ("header", "nav[aria-label]", "main", "html[lang]")] == [1] * 4
    assert page.locator("section:not([aria-labelledby]), [role=region]:not([aria-label]):not([aria-labelledby])").count() == 0
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    named = "each.labels?.length || each.getAttribute('aria-label') || each.textContent.trim()"
    unnamed = f"all => all.filter((each) => !({named})).map((each) => each.outerHTML)"
    assert page.eval_on_selector_all("input, select, button", unnamed) == []
    assert page.locator("figure > svg:not([role=img]), figure > svg:not([aria-label])").count() == 0
    assert "adaptive" in (page.locator("#frontier svg").get_attribute("aria-label") or "")


def test_the_keyboard_reaches_everything(page: Page, many: str, show: Show) -> None:
    """Tab goes from the skip link through volume, copying, tables and the session; the focus is visible."""
    show(many)
    seen: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("[document.activeElement].map((at) => at.id || at.className || at.tagName)[0]"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if seen[-1] == "notes-box":
            break
    assert seen[0] == "skip"
    assert {"volume", "BUTTON", "SUMMARY", "scroll", "conversation", "strategy", "call", "list", "notes-box"} <= set(seen)


def test_nothing_moves(page: Page, many: str, show: Show) -> None:
    """With reduced motion no element has an animation or a transition."""
    page.emulate_media(reduced_motion="reduce")
    show(many)
    moving = "style.transitionDuration !== '0s' || style.animationName !== 'none'"
    found = f"all => all.map((each) => getComputedStyle(each)).filter((style) => {moving}).length"
    assert page.eval_on_selector_all("body *", found) == 0


def test_it_prints_on_white(page: Page, many: str, show: Show) -> None:
    """On paper the colours are light, all details are open, tables are whole, and what needs a screen is left out."""
    page.set_viewport_size({"width": 760, "height": 900})
    page.emulate_media(color_scheme="dark")
    show(many)
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#more").is_visible()
    assert page.locator("#session, nav, .snippet button").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('.tall')).overflowY") == "visible"
    assert page.evaluate(CONTRASTS) == []
