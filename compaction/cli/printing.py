"""Safe output to a terminal: text, numbers, bars and tables.

Transcripts are hostile text: none of it may move the cursor, ring the bell, change colours or hide anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

import attrs

if TYPE_CHECKING:
    from rich.console import Console

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_UNKNOWN_WIDTH = 120
_FLEXIBLE = ("~", "^")


def printable(text: str, chars: int | None = None) -> str:
    r"""Return a text that is safe to print: on one line, white space as one space, invisible characters as escapes.

    Args:
        text: Any text.
        chars: The maximum length, > 0; ``None`` for no limit.

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


def short_location(file: str, where: str) -> str:
    """Return a conversation's place without the name of its file.

    >>> short_location("runs.jsonl", "runs.jsonl, line 3")
    'line 3'
    """
    return where.removeprefix(f"{file}, ")


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


def print_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table.

    Args:
        console: The console.
        columns: The headings. One that starts with ``>`` aligns its column to the right. If the table is too wide, a column
            whose heading starts with ``~`` is wrapped, and one with ``^`` is cut.
        rows: The cells; they are made safe to print here.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.lstrip(">~^"), justify="right" if column[:1] == ">" else "left", no_wrap=column[:1] not in _FLEXIBLE
        )
    cut = [column[:1] == "^" for column in columns]
    for row in rows:
        table.add_row(
            *[
                Text(printable(cell), no_wrap=short or None, overflow="ellipsis" if short else None)
                for cell, short in zip(row, cut, strict=True)
            ]
        )
    console.print(table)
    console.print()
