"""The parts of the performance report: claims with their target and measurement, and tables in Markdown."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Sequence

import attrs


@attrs.frozen
class Claim:
    """One claim of the performance contract and its measurement.

    Args:
        what: What is claimed.
        target: The limit.
        measured: The measurement.
        unit: The unit of both; ``"x"`` for a ratio.
        at_most: Whether the limit is an upper one.
    """

    what: str
    target: float
    measured: float
    unit: str = "x"
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether the measurement is within the limit."""
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def cells(self) -> list[str]:
        """Return the claim as a row of a table."""
        room = self.target / self.measured if self.at_most else self.measured / self.target
        result = f"met, {room:.1f} times over" if self.met else f"**missed**, {room:.2f} of it"
        if self.met and room < 1.95:
            result = f"met, by {room - 1:.0%}"
        limit = f"at most {self.target:g}" if self.at_most else f"{self.target:,g}"
        return [self.what, _with_unit(limit, self.unit), _with_unit(_figure(self.measured), self.unit), result]


@attrs.frozen
class Section:
    """A part of the report.

    Args:
        name: Its name, in the output and in the page's markers.
        lines: Its text, in Markdown.
        claims: The claims it measures.
        in_page: Whether it is written to the page; if not, it is only printed.
    """

    name: str
    lines: tuple[str, ...]
    claims: tuple[Claim, ...] = ()
    in_page: bool = True


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _with_unit(figure: str, unit: str) -> str:
    return f"{figure}x" if unit == "x" else f"{figure} {unit}"


def measured_on() -> str:
    """Return the date, and how busy the machine is: its load average and its cores."""
    date = f"{datetime.datetime.now(tz=datetime.UTC):%-d %B %Y}"
    return f"{date}, with a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def spoken(seconds: float) -> str:
    """Return a duration with its unit.

    >>> spoken(288.04), spoken(0.0123), spoken(0.00003)
    ('288 s', '12.3 ms', '30 us')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{_figure(seconds / size)} {unit}"
    return f"{_figure(seconds * 1e6)} us"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return a Markdown table whose first column is text and whose other columns are figures."""
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    return (*lines, *(f"| {' | '.join(row)} |" for row in rows))


def claims_table(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Return the table of claims."""
    return table(["claim", "target", "measured", "result"], (claim.cells() for claim in claims))


def written(page: str, parts: Sequence[Section]) -> str:
    """Return the page with each part written between its markers."""
    for part in (each for each in parts if each.in_page):
        start, end = f"<!-- {part.name} -->", f"<!-- /{part.name} -->"
        before, opened, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not opened or not closed:
            raise SystemExit(f"the page has no place for {part.name!r}: add the lines {start} and {end}")
        page = "\n".join([before + start, *part.lines, end + after])
    return page
