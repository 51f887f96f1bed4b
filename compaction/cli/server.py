"""The server of the gateway: its sockets, its log, what it sets in its process, and several of them beside each other."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from importlib.util import find_spec
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, TextIO

from ..errors import ConfigurationError
from ..gateway import GatewaySettings, Workers, create_app, is_worth_a_log
from ..integrations.opentelemetry import OpenTelemetryEvents

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    import uvicorn

_logger: Final = logging.getLogger("compaction.gateway")
_SWITCH_SECONDS: Final = 0.0005  # so that a compaction in a thread does not delay streams by five milliseconds at a time
_COLLECT: Final = (5_000, 20, 100)  # so that the garbage collector rarely walks all conversations, and stops for a millisecond
_KEEP_ALIVE_SECONDS: Final = 120  # longer than the pauses of most agents, which then stay with one worker
_MOST_CONNECTIONS: Final = 2_000  # of a process; further ones get 503
_LEAST_SECONDS: Final = 2.0  # a process that ends by itself earlier would end again, so it is not started again
_MOST_KILLED: Final = 5  # processes in a row that a signal may end so early
_STOP_SECONDS: Final = 10.0


def make_server(settings: GatewaySettings, log: TextIO | None, workers: Workers | None = None) -> uvicorn.Server:
    """Return a server of the gateway, which runs at a `listening_socket`; ``workers`` if several serve the same address."""
    import uvicorn

    tune_process()
    _log_lines("compaction.gateway", logging.INFO, "%(message)s", log)
    _log_lines("compaction", logging.WARNING, "%(levelname)s %(name)s: %(message)s", log)
    _log_lines("uvicorn", logging.WARNING, "%(levelname)s %(name)s: %(message)s", log)
    logging.getLogger("uvicorn.error").addFilter(is_worth_a_log)
    app: Any = create_app(settings, on_event=telemetry(), workers=workers)
    options: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "proxy_headers": False,
        "http": "h11",
        "ws": "none",
        "lifespan": "on",
        "timeout_graceful_shutdown": 5,
        "timeout_keep_alive": _KEEP_ALIVE_SECONDS,
        "limit_concurrency": _MOST_CONNECTIONS,
    }
    return uvicorn.Server(uvicorn.Config(app, **options))


def telemetry() -> OpenTelemetryEvents | None:
    """Return the observer that reports to OpenTelemetry; ``None`` if its API is not installed, or too old, which is logged."""
    try:
        return OpenTelemetryEvents()
    except ConfigurationError as error:
        if find_spec("opentelemetry") is not None:
            _logger.warning("no events are reported to OpenTelemetry: %s", error)
        return None


def tune_process() -> None:
    """Set how often threads and the garbage collector take their turn in this process, which only serves."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECT)


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket whose connections send every chunk at once; port 0 is any that is free.

    Accepted connections inherit TCP_NODELAY. asyncio does not set it for the sockets that uvicorn makes, and a chunk then waits
    up to 40 ms for the client to acknowledge the one before. If it is ``shared``, other processes of this user may listen
    there too; the system then gives each connection to one of them.
    """
    try:
        found = socket.create_server((host, port), family=_family(host), backlog=2_048, reuse_port=shared)
    except OSError as error:
        reason = str(error.strerror or error).partition(" (")[0]
        raise ConfigurationError(
            f"--port {port}: {host} cannot be used ({reason}); name another port, or 0 for any that is free"
        ) from error
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def reserved_socket(host: str, port: int) -> socket.socket:
    """Return a socket that keeps an address for the workers, which listen there; it does not listen itself.

    It can be had at once after another process that served there has ended, but not beside one that still does.
    """
    if not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigurationError("--workers needs a system on which processes can share a port; leave it out")
    with listening_socket(host, port) as alone:
        port = alone.getsockname()[1]
    found = socket.socket(_family(host))
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        found.setsockopt(socket.SOL_SOCKET, option, 1)
    found.bind((host, port))
    return found


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _log_lines(name: str, level: int, format: str, log: TextIO | None) -> None:
    handler = logging.NullHandler() if log is None else logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter(format))
    logger = logging.getLogger(name)
    logger.setLevel(level)
    logger.addHandler(handler)
    logger.propagate = False


# -------------------------------------------------------------------- several processes


def run_processes(count: int, work: Callable[[int], None]) -> None:
    """Run this many processes until a signal ends this one; one that ends by itself is started again."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("--workers needs a system that can fork; leave it out")
    running: dict[int, tuple[BaseProcess, float]] = {}
    killed = 0
    with _ended_by_signals(running):
        for number in range(count):
            running[number] = _started(work, number)
        while True:
            wait([process.sentinel for process, _ in running.values()])
            for number, (process, since) in list(running.items()):
                if process.is_alive():
                    continue
                is_early = time.monotonic() - since < _LEAST_SECONDS
                killed = killed + 1 if is_early else 0
                if is_early and ((process.exitcode or 0) >= 0 or killed > _MOST_KILLED):
                    raise ConfigurationError(
                        f"worker {number} ended with code {process.exitcode} right after its start; its messages above say why"
                    )
                running[number] = _started(work, number)


@contextlib.contextmanager
def _ended_by_signals(running: dict[int, tuple[BaseProcess, float]]) -> Generator[None]:
    """Turn signals into an exit, and end the processes in any case."""
    before = {each: signal.signal(each, lambda number, _: sys.exit(0)) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join(_STOP_SECONDS)
        for each, handler in before.items():
            signal.signal(each, handler)


def _started(work: Callable[[int], None], number: int) -> tuple[BaseProcess, float]:
    process = multiprocessing.get_context("fork").Process(target=_process, args=(work, number), daemon=True)
    process.start()
    return process, time.monotonic()


def _process(work: Callable[[int], None], number: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(number)


def _end_with_parent() -> None:
    """End this process after the one that started it, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
