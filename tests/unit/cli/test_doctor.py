"""``compaction doctor``: its report and its exit codes."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from compaction.cli import doctor
from compaction.cli.app import app

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


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
    monkeypatch.setattr(doctor, "requires", lambda name: ['nowhere-1>=1; extra == "far"', "attrs>=24"])
    assert doctor.installed_extras() == {"far": {"nowhere-1": None}}
    assert "pip install '.[far]'" in run().stdout


def test_a_checkout_has_no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", absent)
    assert doctor.installed_extras() == {}
    assert run().exit_code == 0


@pytest.mark.parametrize(("model", "code", "says"), [("gpt-5", 0, "272,000 tokens"), ("gpt-none", 1, "is unknown")])
def test_a_models_window(model: str, code: int, says: str) -> None:
    done = run("--model", model)
    assert (done.exit_code, says in " ".join(done.stdout.split())) == (code, True)
