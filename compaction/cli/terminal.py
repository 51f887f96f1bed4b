"""What goes to a terminal. Transcripts are hostile text: nothing of them may move the cursor, ring, recolour or hide."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["bar", "console_on", "counted", "percent", "place_in", "safe", "show_table"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_UNKNOWN_WIDTH = 120
_GIVES_WAY = ("~", "^")


def safe(text: str, chars: int | None = None) -> str:
    r"""The text on one line, as a terminal may show it: white space as one space, what cannot be seen as its escape.

    Args:
        text: Anything.
        chars: Characters after which it is cut, > 0; ``None`` for all of it.

    >>> safe("\x1b[2Jgone\r\n\tnext \u202eltr")
    '\\x1b[2Jgone next \\u202eltr'
    """
    if chars is not None:
        text = text[: 4 * chars]
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join([mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in line])
    return line if chars is None or len(line) <= chars else f"{line[: chars - 1]}…"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "message"), counted(2_433, "message")
    ('1 message', '2,433 messages')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * share:.1f} %"


def place_in(file: str, where: str) -> str:
    """A conversation's place, without the file where that goes without saying.

    >>> place_in("runs.jsonl", "runs.jsonl, line 3")
    'line 3'
    """
    return where.removeprefix(f"{file}, ")


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A bar of ``width`` characters, filled to ``share``.

    Args:
        share: From 0 to 1.
        width: Characters, > 0.
        ascii_only: Whether the terminal has no block characters.

    >>> bar(0.3, 5), bar(0.3, 5, ascii_only=True)
    ('█▌', '##')
    """
    if ascii_only:
        return "#" * round(share * width)
    full, eighths = divmod(round(share * width * 8), 8)
    return "█" * full + _EIGHTHS[eighths].strip()


@contextlib.contextmanager
def console_on(stream: TextIO) -> Generator[Console]:
    """A rich console whose output goes to a stream at the end; wide where nobody says how wide the stream is."""
    from rich.console import Console

    fixed = None if stream.isatty() or "COLUMNS" in os.environ else _UNKNOWN_WIDTH
    console = Console(file=stream, width=fixed, highlight=False, markup=False, emoji=False)
    with console.capture() as shown:
        yield console
    stream.write(shown.get())


def show_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table.

    Args:
        console: Where.
        columns: The headings. One that starts with ``>`` sets its column to the right. Where there is no room, a column whose
            heading starts with ``~`` is wrapped, with ``^`` cut.
        rows: The cells; made safe here.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.lstrip(">~^"), justify="right" if column[:1] == ">" else "left", no_wrap=column[:1] not in _GIVES_WAY
        )
    cut = [column[:1] == "^" for column in columns]
    for row in rows:
        table.add_row(
            *[
                Text(safe(cell), no_wrap=short or None, overflow="ellipsis" if short else None)
                for cell, short in zip(row, cut, strict=True)
            ]
        )
    console.print(table)
    console.print()
