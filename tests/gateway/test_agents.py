"""Real agents, unchanged and without any other network: a task that fills the window five times over, at a strict model."""

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

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
"""Runs a command in a network namespace that has nothing but loopback."""

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


def run_alone(name: str) -> dict[str, Any]:
    """Run an agent's task with loopback alone, and return what came of it."""
    command = [*ALONE, sys.executable, "-m", "tests.gateway.agents", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_ends_its_task_within_the_window(name: str) -> None:
    """No request is refused or too long, few files are read again, the last word is right, and the bill is lower."""
    if (why := _missing(name)) is not None:
        pytest.skip(why)
    found = run_alone(name)
    assert found["right"], found["said"]
    assert (found["invalid"], found["over"], found["problems"]) == (0, 0, [])
    assert found["largest"] <= WINDOW
    assert found["cuts"] > 0
    assert found["calls"] >= STEPS
    assert found["read_again"] <= STEPS / 10
    assert found["signatures"] > 0 or name in UNSIGNED
    assert found["bill_before"] <= 1.02
    assert found["bill_after"] <= 0.60
