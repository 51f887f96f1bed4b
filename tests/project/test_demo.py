"""The demonstration of ``make demo``: what it prints is true, fits a screen, and can be repeated."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compaction import compact_sync, presets
from compaction.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """The lines that the demonstration prints into a pipe."""
    command, environment = [sys.executable, "examples/demo.py"], {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_the_demo_fits_a_screen(lines: list[str]) -> None:
    assert (len(lines) <= 24, [line for line in lines if len(line) > 80]) == (True, [])


def test_the_demo_keeps_the_ground_rules(lines: list[str]) -> None:
    """All ground rules of the first message are kept by compaction, and none by the plain cut."""
    rows = {line[:11].strip(): re.search(r"(\d+) of 6\b", line) for line in lines[2:5]}
    assert {name: row and row[1] for name, row in rows.items()} == {"before": "6", "plain cut": "0", "compaction": "6"}


def test_the_demo_pins_nothing() -> None:
    """The demonstration passes no ``pin=`` or other option that a reader would not see."""
    program = (ROOT / "examples" / "demo.py").read_text(encoding="utf-8")
    assert re.findall(r"compact_sync\((.*)\)", program) == ["messages, presets.token_budget(BUDGET)"]


def test_the_last_line_repeats_the_demo(lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in the last line is a program of this environment, and writes the same messages as the demonstration."""
    assert Path(sys.executable).with_name("compaction") == ROOT / lines[-1].split()[1]
    command, output = lines[-1].split()[2:], tmp_path / "out.json"
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", [str(output) if part == "OUT" else part for part in ["compaction", *command]])
    with pytest.raises(SystemExit) as done:
        sys.exit(main())
    session = json.loads((ROOT / "examples" / "coding_session.json").read_text(encoding="utf-8"))
    written = json.loads(output.read_text(encoding="utf-8"))
    expected = compact_sync(session["messages"], presets.token_budget(8_000)).messages
    assert (done.value.code or 0, written["messages"] if isinstance(written, dict) else written) == (0, expected)
