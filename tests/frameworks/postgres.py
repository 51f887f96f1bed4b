"""A PostgreSQL server from the machine's package, on loopback, for the duration of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Return the folder with ``initdb`` and ``pg_ctl``, which Debian does not put on the path."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def _user() -> str | None:
    """Return the user that runs the server, which refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Yield the address of a server that accepts connections; remove it and its data afterwards.

    Args:
        folder: What `binaries` returned.
    """
    user, data = _user(), Path(tempfile.mkdtemp(prefix="compaction-pg-"))
    if user is not None:
        shutil.chown(data, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data} -c fsync=off"

    def run(*command: str) -> None:
        done = subprocess.run(command, user=user, cwd=data, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    run(str(folder / "initdb"), "-D", str(data / "db"), "-A", "trust", "-U", "tester", "--no-sync")
    # The log goes to a file: a server that keeps the pipe open would be waited for.
    run(str(folder / "pg_ctl"), "-D", str(data / "db"), "-o", options, "-l", str(data / "log"), "-w", "start")
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres?sslmode=disable"
    finally:
        run(str(folder / "pg_ctl"), "-D", str(data / "db"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(data, ignore_errors=True)
