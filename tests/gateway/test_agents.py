"""Real agents, unchanged and without any other network, at a strict model: a long task, and three turns of a user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .agents import AGENTS, FOLDER, STEPS, WINDOW
from .long_run import SAID

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
"""Runs a command in a network namespace that has nothing but loopback."""

SUMMARY = "Replace: the oldest make room; a summary grows"
"""The edit of a summary that was accepted. Where one is refused, the edit has another reason, or is a drop."""

UNSIGNED = ("opencode-chat", "aider")
"""Agents whose format has no signed thoughts."""


def _missing(name: str) -> str | None:
    """Return why an agent cannot be run here."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return "unshare or ip is missing"
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        return "this machine allows no network namespace"
    if not (FOLDER / AGENTS[name].program).exists():
        return f"{AGENTS[name].program} is not in {FOLDER}; make test-gateway installs it where npm is"
    return None


def run_alone(module: str, name: str, *arguments: str) -> dict[str, Any]:
    """Run a module of this folder on an agent with loopback alone, and return the JSON that it prints."""
    if (why := _missing(name)) is not None:
        pytest.skip(why)
    command = [*ALONE, sys.executable, "-m", f"tests.gateway.{module}", name, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_ends_its_task_within_the_window(name: str) -> None:
    """No request is refused or too long, few files are read again, the last word is right, and the bill is lower."""
    found = run_alone("agents", name)
    assert found["right"], found["said"]
    assert (found["invalid"], found["over"], found["problems"]) == (0, 0, [])
    assert found["largest"] <= WINDOW
    assert found["cuts"] > 0
    assert found["calls"] >= STEPS
    assert found["read_again"] <= STEPS / 10
    assert found["signatures"] > 0 or name in UNSIGNED
    assert found["bill_before"] <= 1.02
    assert found["bill_after"] <= 0.60


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "calls", "window"), [("opencode-chat", 80, 20_000), ("codex", 80, 24_000), ("opencode-chat", 24, 12_000)]
)
def test_a_long_run_with_reminders_stays_within_the_window(name: str, calls: int, window: int) -> None:
    """Three turns with a reminder after every ten results: all that the user said is in every request, and cuts stay low.

    ``python -m tests.gateway.long_run NAME 800 40000`` is the same with ten times the calls.
    """
    found = run_alone("long_run", name, str(calls), str(window))
    assert found["replies"] == len(SAID) * (calls // len(SAID) + 1), found["printed"]
    assert found["lost"] == []
    assert (found["invalid"], found["over"], found["problems"]) == (0, 0, [])
    assert set(found["edits"]) <= {"Rewrite", SUMMARY}, found["edits"]
    assert found["edits"][SUMMARY] >= len(SAID) - 1
    assert (found["passed_through"], found["retries"], found["failures"]) == ({}, {}, {})
    half = len(found["floors"]) // 2
    assert max(found["floors"][half:]) <= 1.2 * max(found["floors"][:half])
    assert found["bill"] <= 0.9


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["opencode-chat", "codex"])
def test_what_left_is_recalled_unseen_by_the_agent(name: str) -> None:
    """With recall, the model reads summaries' sources, every request is valid, and the agent never sees the tool."""
    found = run_alone("long_run", name, "36", "20000", "--recall")
    assert found["recalled"] > 0
    assert found["saw_recall"] is False
    assert (found["lost"], found["invalid"], found["over"], found["problems"]) == ([], 0, 0, [])
    assert found["replies"] == 39, found["printed"]
    assert (found["passed_through"], found["failures"]) == ({}, {})
