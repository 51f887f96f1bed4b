"""Arguments and options that several commands share: files, sizes, formats and token counters."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Final, TextIO, TypeAlias, TypeVar

import typer

from ..errors import ConfigurationError, UnreadableFile
from ..files import FileConversation, read_conversations
from ..formats import FORMATS
from ..models import UnknownModel, input_limit
from ..presets import PRESETS, Preset
from ..tokens import TokenCounter, counter
from .exit_codes import error_context

STANDARD: Final = "-"
_T = TypeVar("_T")
_FORMAT_NAMES: Final = [format.name for format in FORMATS]
_COUNTER_NAMES: Final = ("auto", "chars/4", "bytes/4", "estimate", "o200k_base", "cl100k_base")


def completed(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes these names in a shell.

    >>> completed(["adaptive", "hermes"])("h")
    ['hermes']
    """
    known = list(names)
    return lambda incomplete: [name for name in known if name.startswith(incomplete)]  # typer asks for the argument by its name


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
        help="The output file, in the shape that was read; gzip if the name ends in .gz. - is standard output; the report then "
        "goes to standard error.",
    ),
]
CounterName: TypeAlias = Annotated[
    str,
    typer.Option(
        "--counter",
        metavar="NAME",
        autocompletion=completed(_COUNTER_NAMES),
        help="The token counter: auto, chars/4, bytes/4, estimate, an encoding such as o200k_base, or a model such as gpt-4o.",
    ),
]
FormatName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        autocompletion=completed(_FORMAT_NAMES),
        help=f"The wire format: {', '.join(_FORMAT_NAMES)}. By default it is detected.",
        show_default=False,
    ),
]
Window: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="SIZE",
        help="The model's context window: tokens, such as 32000, 32k or 1m (k is 1,000), or the model's name, such as gpt-5.",
        show_default=False,
    ),
]
PresetName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        autocompletion=completed(PRESETS),
        help=f"The preset: {', '.join(PRESETS)}. By default context_window with --window, token_budget with --budget.",
        show_default=False,
    ),
]
PipelineFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Instead of --preset: a pipeline in TOML or YAML. --window is then the model's context window; the result is "
        "judged by --budget, else by --window.",
    ),
]
ModelTableFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--models",
        metavar="FILE",
        help="A table of your own (TOML) with windows and prices of models; it is used before the known ones.",
        show_default=False,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Report as JSON.")]

_SIZE: Final = re.compile(r"(\d[\d_]*(?:\.\d+)?)([km]?)", re.IGNORECASE | re.ASCII)
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)", re.IGNORECASE | re.ASCII)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def parse_size(text: str) -> int:
    """Parse a number of tokens; k is 1,000 and m is 1,000,000.

    >>> parse_size("32k"), parse_size("32_000"), parse_size("1.5m")
    (32000, 32000, 1500000)
    """
    size = _quantity(text, _SIZE, _UNITS)
    if size is None or not size.is_integer():
        raise typer.BadParameter(
            f"{text!r} is not a number of tokens; write one as 32000, 32_000, 32k (32,000) or 1m (1,000,000)."
        )
    return int(size)


def parse_seconds(text: str) -> float:
    """Parse a time: a number with s, m, h or d, or of seconds.

    >>> parse_seconds("30d"), parse_seconds("90")
    (2592000.0, 90.0)
    """
    seconds = _quantity(text, _TIME, _SECONDS)
    if not seconds:
        raise typer.BadParameter(f"{text!r} is not a time; write one as 30d, 12h, 90m or 45s.")
    return seconds


def _quantity(text: str, pattern: re.Pattern[str], units: Mapping[str, int]) -> float | None:
    """Return a number times its unit; ``None`` if the text is not written like that."""
    found = pattern.fullmatch(text.strip())
    return None if found is None else float(found[1]) * units[found[2].lower()]


Budget: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--budget",
        parser=parse_size,
        metavar="SIZE",
        help="Instead of --window: tokens a result may have. Gentle steps come first; if they do not suffice, the oldest "
        "messages are dropped.",
    ),
]
ReserveOutput: TypeAlias = Annotated[
    int | None,
    typer.Option("--reserve-output", parser=parse_size, metavar="SIZE", help="Tokens of --window to keep free for the answer."),
]


def window_tokens(window: str, models: Path | None, reserve_output: int | None = None) -> int:
    """Return the tokens of ``--window``: a number minus the reserve, or the input limit of a model.

    >>> window_tokens("32k", None, 2_000), window_tokens("gpt-5", None)
    (30000, 272000)
    """
    if window.strip()[:1].isalpha():
        try:
            return input_limit(window, reserve_output=reserve_output, table=models)
        except UnknownModel as error:
            raise UnknownModel(f"--window {window}: {error}; a number is written as 32000 or 32k") from error
    try:
        tokens, reserve = parse_size(window), reserve_output or 0
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint="'--window'") from error
    if reserve >= tokens:
        least = f"--reserve-output {reserve}" if reserve else "0"
        raise ConfigurationError(f"--window {window}: it must be larger than {least}")
    return tokens - reserve


def not_both(first: str, one: object, second: str, other: object) -> None:
    """Check that at most one of two options was given."""
    if one is not None and other is not None:
        raise ConfigurationError(f"{first} and {second}: give one of them, not both")


def find_preset(name: str, names: Iterable[str] = PRESETS) -> Preset:
    """Return the preset that ``--preset`` names."""
    if name not in names:
        raise ConfigurationError(f"--preset {name}: there is no such preset; use one of {', '.join(names)}")
    return PRESETS[name]


def find_counter(name: str) -> tuple[TokenCounter, str | None]:
    """Return the counter of that name, and its warning if it has one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = counter(name)
    return found, str(caught[0].message) if caught else None


def read_input(source: str, on_bad_line: Callable[[UnreadableFile], object] | None = None) -> Iterator[FileConversation]:
    """Return the conversations of the ``IN`` argument, as `read_conversations` does."""
    if source == STANDARD and sys.stdin is None:
        raise UnreadableFile("standard input is closed; name a file")
    return read_conversations(sys.stdin.buffer if source == STANDARD else Path(source), on_bad_line=on_bad_line)


def read_usable(source: str, use: Callable[[FileConversation], _T]) -> tuple[list[_T], list[str]]:
    """Return the result of a function for each conversation of the ``IN`` argument, and the errors of those it cannot use."""
    found: list[_T] = []
    errors: list[str] = []
    try:
        for conversation in read_input(source, lambda error: errors.append(str(error))):
            try:
                with error_context(conversation.where):
                    found.append(use(conversation))
            except UnreadableFile as error:
                errors.append(str(error))
    except UnreadableFile as error:  # of the whole file
        errors.append(str(error))
    return found, errors


def open_output(output: str) -> tuple[Path | IO[bytes], TextIO]:
    """Return where the result is written, and the text stream for the report."""
    return (sys.stdout.buffer, sys.stderr) if output == STANDARD else (Path(output), sys.stdout)


def signing_keys() -> tuple[str, ...]:
    """Return the keys in the environment variable ``COMPACTION_KEY``, separated by blanks; the first signs summaries."""
    return tuple(os.environ.get("COMPACTION_KEY", "").split())
