"""``compaction doctor``: its report, its exit codes, and what it does without a network."""

from __future__ import annotations

import json
import socket
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from compaction.cli import doctor
from compaction.cli.app import app

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["doctor", *arguments])


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with 401, as a provider does without a key."""

    def do_GET(self) -> None:
        """Refuse."""
        self.send_error(401)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """Serve on loopback, and yield the address."""
    with HTTPServer(("127.0.0.1", 0), Refusing) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}/v1"
        serving.shutdown()
        thread.join()


def test_the_report_names_the_counter_and_every_extra() -> None:
    """Without options the command shows the versions, the counter with the reason, and the extras; it succeeds."""
    done = run("--json")
    report = json.loads(done.stdout)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert done.exit_code == 0
    assert set(report["extras"]) == {name for name in declared if name != "all"}
    assert report["counter"].keys() == {"name", "exact", "why"}
    shown = run()
    assert (shown.exit_code, f"counter: {report['counter']['name']}" in shown.stdout) == (0, True)
    assert " installed " in shown.stdout


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An extra of which a package is missing is shown with the command that installs it."""
    monkeypatch.setattr(doctor, "requires", lambda name: ['nowhere-1>=1; extra == "far"', "attrs>=24"])
    assert doctor.installed_extras() == {"far": {"nowhere-1": None}}
    assert "pip install '.[far]'" in run().stdout


def test_a_checkout_has_no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the distribution is not installed, the rest of the report is shown."""

    def absent(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", absent)
    assert doctor.installed_extras() == {}
    assert run().exit_code == 0


@pytest.mark.parametrize(("model", "code", "says"), [("gpt-5", 0, "272,000 tokens"), ("gpt-none", 1, "is unknown")])
def test_a_models_window(model: str, code: int, says: str) -> None:
    """The limit of a known model is shown; an unknown model has exit code 1."""
    done = run("--model", model)
    assert (done.exit_code, says in " ".join(done.stdout.split())) == (code, True)


def test_an_address_that_answers(server: str) -> None:
    """Any HTTP status is an answer."""
    done = run("--url", server, "--json")
    assert (done.exit_code, json.loads(done.stdout)["url"]) == (0, {"url": server, "status": 401, "error": None})
    assert "answers (HTTP 401)" in run("--url", server).stdout


@pytest.mark.parametrize("says", [None, b"SSH-2.0-server\r\n"], ids=["silent", "not http"])
def test_an_address_that_does_not_answer(says: bytes | None) -> None:
    """A server that stays silent, or does not speak HTTP, has exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as client:
                client.sendall(says or b"")
                client.recv(1)
                client.recv(65_536)

        thread = threading.Thread(target=answer)
        thread.start()
        done = run("--url", f"http://127.0.0.1:{listening.getsockname()[1]}", "--timeout", "0.5")
        thread.join()
    assert (done.exit_code, "no answer: " in done.stdout) == (1, True)


def test_a_closed_port() -> None:
    """A refused connection has exit code 1 and names the reason."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    done = run("--url", f"http://127.0.0.1:{port}")
    assert (done.exit_code, "refused" in done.stdout) == (1, True)


def test_an_address_of_another_kind() -> None:
    """Only HTTP addresses are requested; a file is not read."""
    done = run("--url", "file:///etc/passwd")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "http://" in done.stderr
