"""The command line: ``compaction compact``, ``inspect``, ``validate``, ``repair`` and others.

It needs the extra ``cli``; without it, `main` prints one line that names the missing package.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from importlib import import_module
from typing import NoReturn

from ..installation import install_line, version_text

__all__ = ["main"]

_NEEDED = frozenset({"rich", "typer"})


def main() -> NoReturn:
    """Run the command line on the process's arguments and exit with a code of `ExitCode`.

    It exits silently after SIGTERM or SIGHUP, and when the reader of its output stops, once half-written files are removed.
    """
    try:
        _run()
    except KeyboardInterrupt:  # before the command runs, or after it
        sys.exit(130)


def _run() -> NoReturn:
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        with contextlib.suppress(OSError):  # if it cannot be written, the application below reports it
            sys.stdout.write(f"{version_text()}\n")
            sys.stdout.flush()
            sys.exit()
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            # the code of the signal, by an exception, so that temporary files are removed
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    try:
        import_module("rich")  # the commands import it only when they print: fail now if it is missing
        from .app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        sys.stderr.write(f"compaction: the command line needs {error.name}: {install_line('cli')}\n")
        sys.exit(2)
    sys.exit(app(prog_name="compaction"))
