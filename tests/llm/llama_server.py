"""A llama.cpp server on loopback for the tests: on a free port, with a small window, and always stopped."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

CONTEXT_TOKENS = 4_096

_START_SECONDS = 60
_LIFE_SECONDS = 1_800
_STOP_SECONDS = 10
# An alarm persists across exec, so the server exits by itself even if these tests are killed and cannot stop it.
_BOUNDED = "import os, signal, sys; signal.alarm(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"


@contextlib.contextmanager
def serving(program: str, weights: str, log: Path) -> Iterator[str]:
    """Yield the base URL of a server that has loaded the weights, and stop the server afterwards.

    Args:
        program: The path of a ``llama-server``.
        weights: The path of a GGUF file.
        log: The file for the server's output.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-c", str(CONTEXT_TOKENS), "-np", "1", "-t", "1", "-a", "small"]
    command = [program, "-m", weights, "--host", "127.0.0.1", "--port", str(port), *options]
    with log.open("wb") as written:
        bounded = [sys.executable, "-c", _BOUNDED, str(_LIFE_SECONDS), *command]
        server = subprocess.Popen(bounded, stdout=written, stderr=subprocess.STDOUT)
        try:
            _wait_until_ready(server, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            _stop(server)


def _wait_until_ready(server: subprocess.Popen[bytes], health: str, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(health, timeout=1):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"no server within {_START_SECONDS} s; its log ends:\n{log.read_text('utf-8', 'replace')[-2_000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Terminate the server, and kill it if it does not exit in time."""
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
