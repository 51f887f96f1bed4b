"""The options of ``compaction serve``; ``tests/unit/gateway`` tests the server with real processes."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compaction.cli.app import app
from compaction.cli.options import parse_seconds
from compaction.cli.server import listening_socket, reserved_socket
from compaction.errors import ConfigurationError


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "pass --token"),
        (["--host", "0.0.0.0", "--token", ""], "pass --token"),
        (["--host", "0.0.0.0", "--token", " "], "pass --token"),
        (["--token", ""], "empty 'token'"),
        (["--preset", "magic"], "there is no such preset"),
        (["--window", "none"], "--window none"),
        (["--window", "12q"], "not a number of tokens"),
        (["--openai-url", "ftp://x"], "--openai-url must be an address with https:// or http://"),
        (["--name", "gw.local:8484"], "--name must be host names"),
        (["--preset", "hermes", "--config", "missing.toml"], "--preset and --config: give one of them"),
        (["--forget-after", "soon"], "not a time"),
        (["--config", "missing.toml"], "missing.toml"),
    ],
)
def test_what_cannot_be_served_is_an_error(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line says what to do, and no server is started."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2
    assert says in result.output


def test_times() -> None:
    """A time is a number of seconds, minutes, hours or days."""
    assert [parse_seconds(text) for text in ("45", "45s", "1.5m", "2h", "30D")] == [45, 45, 90, 7_200, 2_592_000]


def test_chunks_are_sent_at_once() -> None:
    """Connections have TCP_NODELAY, so that no chunk of a stream waits for the acknowledgement of the one before."""
    with listening_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        accepted.close()


def test_a_port_in_use_is_an_error_that_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compaction", "compaction.gateway", "uvicorn"):  # their handlers write to a stream that is closed
        for attribute, value in {"handlers": [], "level": logging.NOTSET, "propagate": True}.items():
            monkeypatch.setattr(logging.getLogger(name), attribute, value)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "--port", str(port), "--window", "8k"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"compaction: --port {port}: 127.0.0.1 cannot be used (Address already in use)")


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="workers need a system on which processes can share a port")
def test_workers_take_a_port_of_a_process_that_ended_but_of_none_that_serves() -> None:
    """Connections that the last process closed linger for a minute; two gateways at one port would share its clients."""
    with listening_socket("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            listening.accept()[0].close()  # this end closes first, so the port lingers
    with reserved_socket("127.0.0.1", port) as reserved, listening_socket("127.0.0.1", port, shared=True):
        assert reserved.getsockname()[1] == port
        with pytest.raises(ConfigurationError, match="cannot be used"):
            reserved_socket("127.0.0.1", port)
