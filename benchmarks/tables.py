"""What the report is made of: claims, each with what was asked and what was measured, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs


@attrs.frozen
class Claim:
    """One promise of the performance contract and what came of it.

    Args:
        what: What is promised.
        asked: The limit.
        measured: What was measured.
        unit: Of both; ``"x"`` for a ratio.
        at_most: Whether the limit is an upper one.
    """

    what: str
    asked: float
    measured: float
    unit: str = "x"
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.asked if self.at_most else self.measured >= self.asked

    def cells(self) -> list[str]:
        room = self.asked / self.measured if self.at_most else self.measured / self.asked
        verdict = f"met, {room:.1f} times over" if self.met else f"**missed**, {room:.2f} of it"
        if self.met and room < 1.95:
            verdict = f"met, by {room - 1:.0%}"
        limit = f"at most {self.asked:g}" if self.at_most else f"{self.asked:,g}"
        return [self.what, _with_unit(limit, self.unit), _with_unit(_figure(self.measured), self.unit), verdict]


@attrs.frozen
class Section:
    """A part of the report.

    Args:
        name: Its name in the page's markers.
        lines: Its text, Markdown.
        claims: What it says of the contract.
    """

    name: str
    lines: tuple[str, ...]
    claims: tuple[Claim, ...] = ()


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _with_unit(figure: str, unit: str) -> str:
    return f"{figure}x" if unit == "x" else f"{figure} {unit}"


def spoken(seconds: float) -> str:
    """A duration as a reader wants it.

    >>> spoken(288.04), spoken(0.0123), spoken(0.00003)
    ('288 s', '12.3 ms', '30 us')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{_figure(seconds / size)} {unit}"
    return f"{_figure(seconds * 1e6)} us"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """A Markdown table, its first column text and the others figures."""
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    return (*lines, *(f"| {' | '.join(row)} |" for row in rows))


def claims_table(claims: Iterable[Claim]) -> tuple[str, ...]:
    """The contract, claim by claim."""
    return table(["claim", "asked", "measured", "verdict"], (claim.cells() for claim in claims))


def written(page: str, parts: Sequence[Section]) -> str:
    """The page with each part between its markers."""
    for part in parts:
        start, end = f"<!-- {part.name} -->", f"<!-- /{part.name} -->"
        before, opened, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise SystemExit(f"the page has no place for {part.name!r}: it needs the lines {start} and {end}")
        page = "\n".join([before + start, *part.lines, end + after])
    return page
