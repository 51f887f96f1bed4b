"""Fixtures for the tests against a real model: the server, a recorded conversation, and a report of the requests."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm.llama_server import serving

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPT = ROOT.parent / "shared" / "corpus" / "dev" / "tau_long.jsonl.gz"


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio unless a test requests both backends."""
    return "asyncio"


@pytest.fixture(scope="session")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the base URL of a server that runs for all tests of the session."""
    try:
        program, weights = os.environ["LLAMA_SERVER"], os.environ["LLAMA_MODEL"]
    except KeyError as missing:
        pytest.fail(f"{missing} is not set: run make test-llm, or name a llama-server and a GGUF file")
    with serving(program, weights, tmp_path_factory.mktemp("llama") / "server.log") as url:
        yield url


@pytest.fixture(scope="session")
def transcript() -> list[dict[str, Any]]:
    """Return a recorded customer-service conversation with tool calls: 436 messages."""
    if not TRANSCRIPT.is_file():
        pytest.skip("the recorded conversations are not beside this checkout (../shared/corpus/dev)")
    with gzip.open(TRANSCRIPT, "rt", encoding="utf-8") as lines:
        messages: list[dict[str, Any]] = json.loads(next(lines))["messages"]
    return messages


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the requests and responses that each test recorded."""
    terminalreporter.section("on the wire")
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}  {name}: {value}")
