"""The plots of ``docs/benchmarks.md``, drawn from its tables: ``python -m benchmarks.peers.plots docs/benchmarks.md``.

Each name stands at the right, in the order of the points, and a line leads to its point, so that no names overlap.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from typing import TypeAlias

Estimate: TypeAlias = tuple[float, float, float]

BASELINES = {"none", "truncate", "hysteresis"}
WIDTH, HEIGHT, LEFT, TOP, NAMES = 760, 420, 64, 34, 560
MOST = 1.4  # the cost at the right edge
OURS, BASELINE, OTHER, INK, GRID = "#0550ae", "#99286e", "#424a53", "#1f2937", "#d0d7de"


def rows_of(table: str) -> dict[str, tuple[Estimate, Estimate]]:
    """Return the cost and the usable share of each strategy, with their intervals, from a table of the page."""
    number = r"([\d.]+) \(([\d.]+)-([\d.]+)\)"
    found = re.findall(rf"^\| ([^|]+?) \| {number} \| {number} \|", table, re.MULTILINE)
    figures = {name: [float(each) for each in numbers] for name, *numbers in found}
    return {name: ((a, b, c), (d / 100, e / 100, f / 100)) for name, (a, b, c, d, e, f) in figures.items()}


def x_of(cost: float) -> float:
    """Return the place of a cost; what is further right than the plot is at its edge."""
    return LEFT + (NAMES - LEFT) * min(cost, MOST) / MOST


def y_of(share: float) -> float:
    """Return the place of a share."""
    return TOP + (HEIGHT - TOP) * (1 - share)


def label_places(rows: dict[str, tuple[Estimate, Estimate]]) -> dict[str, float]:
    """Return the height of each name: as near to its point as the names above it allow."""
    places: dict[str, float] = {}
    for name in sorted(rows, key=lambda each: -rows[each][1][0]):
        places[name] = max(y_of(rows[name][1][0]), max(places.values(), default=TOP - 18) + 18)
    lowest = max(places.values(), default=0)
    return {name: place - max(0, lowest - HEIGHT) for name, place in places.items()}


def frontier(table: str, title: str) -> str:
    """Draw cost against recall, as SVG; the same table gives the same text."""
    rows = rows_of(table)
    shapes: list[str] = []
    for tenth in range(0, 11, 2):
        shapes.append(f'<path d="M{LEFT} {y_of(tenth / 10):g}H{NAMES}" stroke="{GRID}"/>')
        shapes.append(f'<text x="{LEFT - 8}" y="{y_of(tenth / 10) + 4:g}" text-anchor="end">{10 * tenth} %</text>')
    for tenth in range(0, round(MOST * 10) + 1, 2):
        shapes.append(f'<path d="M{x_of(tenth / 10):g} {TOP}V{HEIGHT}" stroke="{GRID}"/>')
        shapes.append(f'<text x="{x_of(tenth / 10):g}" y="{HEIGHT + 18}" text-anchor="middle">{tenth / 10:g}</text>')
    for name, place in label_places(rows).items():
        (cost, low, high), (usable, least, most) = rows[name]
        plain = name.strip("*")
        colour = OURS if name.startswith("*") else BASELINE if plain in BASELINES else OTHER
        x, y = x_of(cost), y_of(usable)
        bars = f"M{x_of(low):.1f} {y:.1f}H{x_of(high):.1f}M{x:.1f} {y_of(least):.1f}V{y_of(most):.1f}"
        shapes.append(f'<path d="{bars}" stroke="{colour}" opacity=".6"/>')
        shapes.append(f'<path d="M{x:.1f} {y:.1f}L{NAMES + 6} {place:.1f}" stroke="{colour}" stroke-width=".6" opacity=".5"/>')
        shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        weight = ' font-weight="600"' if name.startswith("*") else ""
        shapes.append(f'<text x="{NAMES + 10}" y="{place + 4:.1f}" fill="{colour}"{weight}>{escape(plain)}</text>')
    middle = (LEFT + NAMES) / 2
    shapes.append(f'<text x="{middle}" y="{HEIGHT + 38}" text-anchor="middle">cost, as a share of sending everything</text>')
    shapes.append(f'<text x="{LEFT}" y="20">needed facts in a request that a provider accepts</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 50}" role="img" font-size="12"'
        f' font-family="system-ui, sans-serif" fill="{INK}"><title>{escape(title)}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT + 50}" rx="10" fill="#fff"/><g fill-rule="nonzero">'
        + "\n".join(shapes)
        + "</g></svg>\n"
    )


def draw(page: Path) -> None:
    """Write the picture of each table of the page beside it."""
    text = page.read_text(encoding="utf-8")
    for size, table in re.findall(r"^## A window of (\d+)k tokens\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        title = f"Cost and recall of each strategy in a window of {size},000 tokens"
        page.with_name(f"{page.stem}-{size}k.svg").write_text(frontier(table, title), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
