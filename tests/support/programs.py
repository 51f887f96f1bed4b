"""Programs in processes of their own, which end with the test: by default the command ``compaction``."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .limits import WAIT_SECONDS

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = "import sys; from compaction.cli import main; sys.argv[0] = 'compaction'; main()"


@contextlib.contextmanager
def started(
    *arguments: str | Path, program: str = PROGRAM, env: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a new process group, with pipes for what it prints; kill the group at the end."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen(command, env=environment, start_new_session=True, **streams) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(*arguments: str | Path, **options: Any) -> tuple[int, str, str]:
    """Run a program to its end; return its exit code, standard output and standard error."""
    with started(*arguments, **options) as process:
        output, complaints = process.communicate(timeout=WAIT_SECONDS)
        return process.returncode, (output or b"").decode(), complaints.decode()
