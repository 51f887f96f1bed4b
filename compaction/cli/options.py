"""What several commands take: files, sizes, a counter."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Final, TextIO, TypeAlias

import typer

from ..errors import UnreadableFile
from ..files import Conversation, read_conversations
from ..formats import MessageFormat, resolve
from ..tokens import TokenCounter, counter

__all__ = [
    "STANDARD",
    "AsJson",
    "CounterName",
    "FormatName",
    "Input",
    "Output",
    "conversations_of",
    "counter_named",
    "format_of",
    "output_of",
    "parse_size",
]

STANDARD: Final = "-"

Input: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        show_default=False,
        help="A JSON list of messages, an object with 'messages', or one of these a line (JSONL); plain or gzip. "
        "- is standard input.",
    ),
]
Output: TypeAlias = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Where the result goes, in the shape that was read; gzip if it ends in .gz. - is standard output: the report then "
        "goes to standard error.",
    ),
]
CounterName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--counter",
        metavar="NAME",
        help="What counts tokens: auto, chars/4, bytes/4, estimate, an encoding such as o200k_base, or a model such as gpt-4o.",
    ),
]
FormatName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The wire format: openai-chat, openai-responses, anthropic or gemini. Without it, each conversation is looked at.",
        show_default=False,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Report as JSON.")]

_SIZE: Final = re.compile(r"(\d[\d_]*(?:\.\d+)?)([km]?)", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_size(text: str) -> int:
    """A number of tokens as a person writes it; k is 1,000 and m is 1,000,000.

    Raises:
        BadParameter: If it is none, or not whole.

    >>> parse_size("32k"), parse_size("32_000"), parse_size("1.5m")
    (32000, 32000, 1500000)
    """
    found = _SIZE.fullmatch(text.strip())
    size = float(found[1]) * _UNITS[found[2].lower()] if found else 0.5
    if not size.is_integer():
        raise typer.BadParameter(
            f"{text!r} is no number of tokens; write one as 32000, 32_000, 32k (32,000) or 1m (1,000,000)."
        )
    return int(size)


def counter_named(name: str) -> tuple[TokenCounter, str | None]:
    """The counter of that name, and what has to be said about it.

    Raises:
        UnknownCounter: If there is none.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = counter(name)
    return found, str(caught[0].message) if caught else None


def conversations_of(source: str) -> Iterator[Conversation]:
    """The conversations of what was named as ``IN``."""
    if source != STANDARD:
        return read_conversations(Path(source))
    if sys.stdin is None:
        raise UnreadableFile("standard input is closed; name a file")
    return read_conversations(sys.stdin.buffer)


def format_of(name: str | None, conversation: Conversation) -> MessageFormat:
    """The format of that name, or the one a conversation turns out to have.

    Raises:
        UnknownFormat: If no format has that name, or the messages are of different formats.
    """
    return resolve(name, conversation.messages)


def output_of(output: str) -> tuple[Path | IO[bytes], TextIO]:
    """Where the result goes, and the text stream that is left for the report."""
    return (sys.stdout.buffer, sys.stderr) if output == STANDARD else (Path(output), sys.stdout)
