"""The command line: ``compaction compact``, ``inspect``, ``validate``, ``repair`` and others.

It needs the extra ``cli``; without it, `main` says so in one line.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from typing import NoReturn

__all__ = ["main"]

_NEEDED = frozenset({"rich", "typer"})


def main() -> NoReturn:
    """Run the command line on the process's arguments and exit; the exit codes are those of `compaction.cli.exits.ExitCode`.

    As other programs do, it ends in silence when whoever reads its output stops, and after a hang-up or a request to end it; it
    removes what it had half written first.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave)
    try:
        import_module("rich")  # the commands import it when they print: better to know now
        from .app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        sys.stderr.write(f"compaction: the command line needs {error.name}: pip install 'compaction-toolkit[cli]'\n")
        sys.exit(2)
    sys.exit(app())


def _leave(number: int, _: object) -> NoReturn:
    """Exit as after a signal, but tidy up first."""
    sys.exit(128 + number)
