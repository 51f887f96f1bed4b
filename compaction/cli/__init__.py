"""The command line: ``compaction compact``, ``inspect``, ``validate`` and ``repair``.

It needs the extra ``cli``; without it, `main` says so in one line.
"""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

__all__ = ["main"]

_NEEDED = frozenset({"rich", "typer"})


def main() -> NoReturn:
    """Run the command line on the process's arguments and exit; the exit codes are those of `compaction.cli.exits.ExitCode`."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _leave)
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        sys.exit(f"compaction: the command line needs {error.name}: pip install 'compaction-toolkit[cli]'")
    app()
    raise AssertionError("the command group exits by itself")


def _leave(number: int, _: object) -> NoReturn:
    """Exit as after a signal, but tidy up first: a file half written is removed."""
    sys.exit(128 + number)
