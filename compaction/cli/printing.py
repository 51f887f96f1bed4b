"""Safe output to a terminal: text, numbers, bars and tables.

Transcripts are hostile text: none of it may move the cursor, ring the bell, change colours or hide anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO

import attrs

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_UNKNOWN_WIDTH = 120


def printable(text: str, chars: int | None = None) -> str:
    r"""Return a text, or its first ``chars``, safe to print: on one line, white space as one space, invisible as escapes.

    >>> printable("\x1b[2Jgone\r\n\tnext \u202eltr")
    '\\x1b[2Jgone next \\u202eltr'
    """
    if chars is not None:
        text = text[: 4 * chars]
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join([mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in line])
    return line if chars is None or len(line) <= chars else f"{line[: chars - 1]}…"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "message"), plural(2_433, "message")
    ('1 message', '2,433 messages')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * share:.1f} %"


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """Return a bar of ``width`` characters, filled to ``share``.

    >>> bar(0.3, 5), bar(0.3, 5, ascii_only=True)
    ('█▌', '##')
    """
    if ascii_only:
        return "#" * round(share * width)
    full, eighths = divmod(round(share * width * 8), 8)
    return "█" * full + _EIGHTHS[eighths].strip()


def print_json(data: object, stream: TextIO | None = None) -> None:
    """Write data as one line of JSON, by default to standard output; attrs objects become objects of their fields."""
    (stream or sys.stdout).write(json.dumps(data, default=attrs.asdict) + "\n")


@contextlib.contextmanager
def open_console(stream: TextIO) -> Generator[Console]:
    """Open a rich console whose output goes to a stream at the end; it is wide if the stream's width is unknown."""
    from rich.console import Console

    fixed = None if stream.isatty() or "COLUMNS" in os.environ else _UNKNOWN_WIDTH
    console = Console(file=stream, width=fixed, highlight=False, markup=False, emoji=False)
    with console.capture() as shown:
        yield console
    stream.write(shown.get())


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print lines, made safe to print."""
    for line in lines:
        console.print(printable(line))


@contextlib.contextmanager
def progress_line(*columns: ProgressColumn, **options: Any) -> Generator[Callable[..., None]]:
    """Show one line of progress on standard error if it is a terminal; yields rich's function that updates it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal, **options) as shown:
        yield partial(shown.update, shown.add_task("starting", total=None))


@attrs.frozen
class Column:
    """A column of a table."""

    heading: str  # safe to print; it may have several lines
    align: Literal["left", "right"] = attrs.field(default="left", kw_only=True)  # the side that its cells touch
    # what happens to its cells if the table is too wide
    if_narrow: Literal["whole", "wrapped", "cut"] = attrs.field(default="whole", kw_only=True)


def number_columns(*headings: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(heading, align="right") for heading in headings]


def print_table(console: Console, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; its cells are made safe to print here."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify=column.align, no_wrap=column.if_narrow == "whole")
    for row in rows:
        cells = [Text(printable(cell)) for cell in row]
        for cell, column in zip(cells, columns, strict=True):
            if column.if_narrow == "cut":
                cell.no_wrap, cell.overflow = True, "ellipsis"
        table.add_row(*cells)
    console.print(table)
    console.print()
