"""``compaction run -- AGENT``, with small programs as agents, and the options of ``compaction serve``."""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys
from pathlib import Path

import attrs
import pytest
import uvicorn
from typer.testing import CliRunner

from compaction.cli.app import app
from compaction.cli.options import parse_seconds
from compaction.cli.run import _upstream, agent_environment, agent_options
from compaction.cli.server import listening_socket, reserved_socket, telemetry
from compaction.errors import ConfigurationError
from compaction.integrations.requirements import OPENTELEMETRY
from tests.support.gateways import ScriptedUpstream, chat_reply, tool_chat
from tests.support.limits import WAIT_SECONDS
from tests.support.programs import ended, started

RUN = ("run", "--counter", "chars/4")
OPENAI_BASES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "AIDER_OPENAI_API_BASE")
ASKS = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": json.loads(sys.argv[1])}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""
WAITS = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(9))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(8))
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def quiet_loggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loggers as they were before a command gave them handlers for a stream that is closed by now."""
    for name in ("compaction", "compaction.gateway", "uvicorn"):
        for attribute, value in {"handlers": [], "level": logging.NOTSET, "propagate": True}.items():
            monkeypatch.setattr(logging.getLogger(name), attribute, value)


def test_an_agent_uses_the_gateway(tmp_path: Path) -> None:
    """Its requests are compacted, and go to the upstream that the variable named before."""
    messages = tool_chat(30)
    log = tmp_path / "log.txt"
    with ScriptedUpstream(chat_reply("It is done.")) as upstream:
        arguments = ("--window", "2000", "--log", str(log), "--", sys.executable, "-c", ASKS, json.dumps(messages))
        code, out, errors = ended(*RUN, *arguments, env={"OPENAI_BASE_URL": f"{upstream.url}/v1"})
    assert (code, out) == (0, "It is done.\n"), errors
    assert 0 < len(upstream.got[0].json["messages"]) < len(messages)
    assert errors.startswith("compaction gateway on http://127.0.0.1:")
    assert json.loads(log.read_text())["compacted"] is True


@pytest.mark.parametrize("name", ["OPENAI_API_BASE", "AIDER_OPENAI_API_BASE"])
def test_an_older_variable_names_the_upstream(name: str) -> None:
    messages = json.dumps(tool_chat(1))
    with ScriptedUpstream(chat_reply("It is done.")) as upstream:
        given = {**dict.fromkeys(OPENAI_BASES, ""), name: f"{upstream.url}/v1"}
        code, out, errors = ended(*RUN, "--", sys.executable, "-c", ASKS, messages, env=given)
    assert (code, out, [got.path for got in upstream.got]) == (0, "It is done.\n", ["/v1/chat/completions"]), errors


def test_different_servers_in_the_variables_are_a_warning() -> None:
    """An agent of another provider has no use for them. The usual server can be chosen too, by its option."""
    given = dict(zip(OPENAI_BASES, ("http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1", "http://127.0.0.1:2"), strict=True))
    errors = {}
    for options in ((), ("--openai-url", "https://api.openai.com/v1")):
        code, _, errors[options] = ended(*RUN, *options, "--", sys.executable, "-c", "import sys; sys.exit(7)", env=given)
        assert code == 7
    with_warning, without = errors.values()
    assert "servers" not in without
    assert with_warning.startswith(
        f"compaction: {' and '.join(OPENAI_BASES)} name different servers; requests are sent to that of OPENAI_BASE_URL\n"
    )


@pytest.mark.parametrize(
    ("variables", "given", "found"),
    [
        ({}, None, None),
        ({"B": "https://b", "A": "https://a"}, None, "https://a"),
        ({"A": "", "B": "https://b"}, None, "https://b"),
        ({"A": "https://a"}, "https://usual", "https://usual"),
    ],
)
def test_the_upstream(variables: dict[str, str], given: str | None, found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option comes first, also if it names the usual server; then the variables in their order."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert _upstream(("A", "B"), given) == found


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 15)", 143)])
def test_the_exit_code_is_the_agents(ends: str, code: int) -> None:
    """Also if a signal ended it, as in a shell."""
    assert ended(*RUN, "--", sys.executable, "-c", f"import os, sys; {ends}")[0] == code


def test_an_agent_that_does_not_exist() -> None:
    """One line says so, and the exit code is that of a shell."""
    code, _, errors = ended(*RUN, "--", "no-such-agent")
    assert (code, errors.splitlines()[-1]) == (127, "compaction: no-such-agent: No such file or directory")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 9), (signal.SIGTERM, 8)])
def test_signals_are_passed_on(number: int, code: int) -> None:
    """The agent decides what an interrupt means; the gateway stops with it."""
    with started(*RUN, "--", sys.executable, "-c", WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code


@pytest.mark.parametrize("option", ["--log", "--record"])
def test_a_place_that_cannot_be_written(option: str, tmp_path: Path) -> None:
    """One line names it, and no agent is started."""
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["run", option, str(tmp_path / "file" / "x"), "--", "no-such-agent"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"compaction: {tmp_path / 'file'}")
    assert "it cannot be used (Not a directory); name another place" in done.stderr


@pytest.mark.usefixtures("quiet_loggers")
def test_a_server_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says so and where the reason is, and no agent is started."""
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    for options, place in ((["--log", str(tmp_path / "log.txt")], str(tmp_path / "log.txt")), ([], "--log FILE")):
        done = CliRunner().invoke(app, ["run", *options, "--", "no-such-agent"])
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("compaction: the gateway did not start")
        assert place in done.stderr


def test_the_environment_of_an_agent() -> None:
    """Each client finds the address where it looks for it, and its own settings stay."""
    given = {"HOME": "/home/a", "NO_PROXY": "intern", "OPENCODE_CONFIG_CONTENT": '{"model": "openai/gpt-5"}'}
    found = agent_environment("http://127.0.0.1:9", given)
    assert found["HOME"] == "/home/a"
    assert found["OPENAI_BASE_URL"] == found["AIDER_OPENAI_API_BASE"] == "http://127.0.0.1:9/v1"
    assert found["ANTHROPIC_BASE_URL"] == found["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:9"
    assert found["NO_PROXY"] == "intern,127.0.0.1"
    opencode = json.loads(found["OPENCODE_CONFIG_CONTENT"])
    assert opencode["model"] == "openai/gpt-5"
    assert opencode["provider"]["google"]["options"] == {"baseURL": "http://127.0.0.1:9/v1beta"}
    with pytest.raises(ConfigurationError, match="OPENCODE_CONFIG_CONTENT"):
        agent_environment("http://127.0.0.1:9", {"OPENCODE_CONFIG_CONTENT": "[1]"})


def test_codex_gets_options() -> None:
    """Codex reads no environment variable for its address; other agents get no options."""
    options = agent_options("codex", "http://127.0.0.1:9")
    assert 'model_providers.gateway.base_url="http://127.0.0.1:9/v1"' in options
    assert agent_options("opencode", "http://127.0.0.1:9") == []


# ------------------------------------------------------------------------ serve


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
    assert [parse_seconds(text) for text in ("45", "45s", "1.5m", "2h", "30D")] == [45, 45, 90, 7_200, 2_592_000]


def test_chunks_are_sent_at_once() -> None:
    """Connections have TCP_NODELAY, so that no chunk of a stream waits for the acknowledgement of the one before."""
    with listening_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        accepted.close()


@pytest.mark.usefixtures("quiet_loggers")
def test_a_port_in_use_is_an_error_that_names_the_option() -> None:
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


def test_an_unusable_telemetry_is_logged_and_not_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another package may bring a part of OpenTelemetry without its API, or with an old one."""
    (tmp_path / "opentelemetry" / "proto").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("compaction.integrations.opentelemetry.OPENTELEMETRY", attrs.evolve(OPENTELEMETRY, minimum="999"))
    assert telemetry() is None
    assert "no events are reported to OpenTelemetry: opentelemetry-api" in caplog.text
