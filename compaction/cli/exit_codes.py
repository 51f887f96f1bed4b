"""Exit codes, and the conversion of errors into one line on standard error; a user never sees a traceback."""

from __future__ import annotations

import contextlib
import enum
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import typer
from typer.core import TyperGroup

from ..errors import CompactionError, ConfigurationError, InputError, UnreadableFile, UnwritableFile
from .printing import printable


class ExitCode(enum.IntEnum):
    """The exit codes of the commands."""

    DONE = 0  # the command succeeded and found nothing wrong
    FOUND = 1  # the command ran and found a problem, or a size was not reached; the output is written
    # arguments or input cannot be used, or the output cannot be written; it is unchanged unless only the report failed
    UNUSABLE = 2
    DEFECT = 3  # a bug in this package
    INTERRUPTED = 130  # Ctrl-C was pressed


# The base class of typer's errors about arguments, which has no public name.
_UsageError: Final = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])


class CommandGroup(TyperGroup):
    """A group of commands that turns every error into an exit code."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and exit."""
        if sys.stderr is None:
            sys.stderr = io.StringIO()
        if sys.stdout is None:
            print_error("standard output is closed; redirect it to a file, or to /dev/null")
            sys.exit(ExitCode.UNUSABLE)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        extra["standalone_mode"] = False
        given = extra.get("args") or (args[0] if args else None) or sys.argv[1:]
        sys.exit(int(_code_of(lambda: super(CommandGroup, self).main(*args, **extra), given)))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C and a closed output are handled here and not by typer."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_error("interrupted")
            return ExitCode.INTERRUPTED
        except BrokenPipeError:
            _end_unread()


def _code_of(run: Callable[[], Any], given: Sequence[str]) -> int:
    """Run a command with the given arguments and return its exit code; an error is printed on one line."""
    try:
        code = run() or ExitCode.DONE
        sys.stdout.flush()
    except (InputError, ConfigurationError, UnwritableFile) as error:
        print_error(_with_option(error, given))
    except BrokenPipeError:
        _end_unread()
    except _UsageError as error:
        said = error.format_message().removeprefix("Invalid value for ").replace(": Value error, ", ": ")
        print_error(f"{said.rstrip('.')}; see compaction --help")
    except OSError as error:
        if error.filename is None:
            print_error(f"standard output: it cannot be written ({error.strerror or error}); make room, or redirect it")
            _discard_output()
        else:
            print_error(f"{error.filename}: it cannot be used ({error.strerror}); name another place")
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        print_error(f"a bug in this program: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})")
        return ExitCode.DEFECT
    else:
        return code
    return ExitCode.UNUSABLE


def _with_option(error: CompactionError, given: Sequence[str]) -> str:
    """Return the text of an error; an argument is named by the option that set it, if one of the given ones did."""
    option = f"--{error.argument.replace('_', '-')}"
    was_given = error.argument and option in [word.partition("=")[0] for word in given]
    return error.text_about(option) if was_given else str(error)


def _end_unread() -> NoReturn:
    """End the process by SIGPIPE, as programs do when nobody reads their output any more; shells do not report it.

    The signal is ignored until then. A command also writes to pipes of its own, such as those of its workers, and must outlive
    a reader of these; and what it half wrote is removed first.
    """
    _discard_output()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    sys.exit(ExitCode.FOUND)


def _discard_output() -> None:
    """Discard what is left for standard output, so that Python does not report an error at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(text: str) -> None:
    """Print one line on standard error; a signal handler whose line comes in the middle of another one loses it."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        sys.stderr.write(f"compaction: {printable(text)}\n")


@contextlib.contextmanager
def error_context(where: str) -> Generator[None]:
    """Raise an error about a message as an `UnreadableFile` that names its file and line."""
    try:
        yield
    except InputError as error:
        raise UnreadableFile(f"{where}: {error}") from error
    except RecursionError as error:
        raise UnreadableFile(f"{where}: a message is nested too deeply; write the inner part as a string") from error
