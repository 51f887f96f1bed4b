"""How a command ends: its exit code, and one line on standard error where something is wrong. Never a traceback."""

from __future__ import annotations

import contextlib
import enum
import io
import os
import sys
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import typer
from typer.core import TyperGroup

from ..errors import ConfigurationError, InputError, UnreadableFile, UnwritableFile
from .terminal import safe

__all__ = ["CommandGroup", "ExitCode", "complain", "naming"]


class ExitCode(enum.IntEnum):
    """What a command's exit code means."""

    DONE = 0
    """It did what was asked, and found nothing wrong."""

    FOUND = 1
    """It did what was asked, and the answer is bad: a problem, or a size not reached. The output is written."""

    UNUSABLE = 2
    """Arguments or input cannot be used, or the output cannot be written. It is as it was, unless only the report failed."""

    DEFECT = 3
    """This package is at fault."""

    INTERRUPTED = 130
    """Somebody pressed Ctrl-C."""


# The base of all that typer says about arguments. It has no public name.
_UsageError: Final = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])


class CommandGroup(TyperGroup):
    """The commands, ended in one place."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and exit."""
        if sys.stderr is None:
            sys.stderr = io.StringIO()
        if sys.stdout is None:
            complain("standard output is closed; send it to a file, or to /dev/null")
            sys.exit(ExitCode.UNUSABLE)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        extra["standalone_mode"] = False
        sys.exit(int(_code_of(lambda: super(CommandGroup, self).main(*args, **extra))))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what typer would answer in its own way is answered here."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            return ExitCode.INTERRUPTED


def _code_of(run: Callable[[], Any]) -> int:
    """The exit code of a command; says in one line what went wrong."""
    try:
        code = run() or ExitCode.DONE
        sys.stdout.flush()
    except (InputError, ConfigurationError, UnwritableFile) as error:
        complain(str(error))
    except _UsageError as error:
        complain(f"{error.format_message().rstrip('.')}; see compaction --help")
    except OSError as error:
        complain(f"standard output: it cannot be written ({error.strerror or error}); make room, or send it elsewhere")
        _stop_writing()
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        complain(f"a defect of this program: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})")
        return ExitCode.DEFECT
    else:
        return code
    return ExitCode.UNUSABLE


def _stop_writing() -> None:
    """Send what is left for standard output nowhere, so that Python does not complain about it at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Write one line to standard error."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"compaction: {safe(text)}\n")


@contextlib.contextmanager
def naming(where: str) -> Generator[None]:
    """Name the conversation in what is said about its messages.

    Args:
        where: Its file and line.

    Raises:
        UnreadableFile: In place of what is raised within about a message.
    """
    try:
        yield
    except InputError as error:
        raise UnreadableFile(f"{where}: {error}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{where}: a message is nested too deeply; write the inner part as a string") from error
