"""``compaction config`` and ``compact --config``: a pipeline in a file, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from compaction import RunContext
from compaction.cli.app import app
from compaction.config import load, loads
from compaction.run import compact_sync
from tests.support.chats import tool_turns

PIPELINE = """
[[steps]]
use = "ToolResult"
trigger = "tokens_exceed(300)"
target = "tokens_below(200)"

[[steps]]
use = "Truncation"
trigger = "context_exceeds(0.5)"
keep = "last(groups=1)"
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE)
    return path


def test_check(pipeline: Path, tmp_path: Path) -> None:
    """``config check`` checks every file, reports those with errors, and then exits with code 2."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("steps: [{use: Truncaton}]")
    assert (run("config", "check", pipeline).exit_code, run("config", "check", wrong, pipeline).exit_code) == (0, 2)
    done = run("config", "check", wrong, pipeline)
    assert "wrong.yaml: steps[0]: 'Truncaton' is not a strategy; did you mean 'Truncation'?" in done.stderr
    assert "pipeline.toml: Pipeline, valid" in done.stdout


@pytest.mark.parametrize("form", ["toml", "yaml"])
def test_show(pipeline: Path, form: str) -> None:
    """``config show`` prints a file with the same pipeline, or the expression that builds it; other forms are refused."""
    assert loads(run("config", "show", pipeline, "--as", form).stdout, format=form) == load(pipeline)  # type: ignore[arg-type]
    assert run("config", "show", pipeline, "--as", "python").stdout == f"{load(pipeline)!r}\n"
    assert run("config", "show", pipeline, "--as", "json").exit_code == 2


def test_compact(pipeline: Path, tmp_path: Path) -> None:
    """``compact --config`` compacts as the pipeline in the file does, and its exit code says if the window is exceeded."""
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps(tool_turns(6)))
    arguments = ("compact", chat, "-o", tmp_path / "out.json", "--config", pipeline, "--counter", "chars/4")
    assert run(*arguments, "--window", "400").exit_code == 0
    context = RunContext(window=400)
    expected = compact_sync(tool_turns(6), load(pipeline), counter="chars/4", context=context).messages
    assert json.loads((tmp_path / "out.json").read_text()) == expected
    assert run(*arguments, "--window", "1").exit_code == 1
    assert run(*arguments, "--window", "400", "--budget", "1").exit_code == 1


def test_compact_without_a_budget(tmp_path: Path) -> None:
    """Without a budget or a window, the exit code says whether the pipeline reached its own targets."""
    chat, pipeline = tmp_path / "chat.json", tmp_path / "p.yaml"
    chat.write_text(json.dumps(tool_turns(6)))
    for target, code in (("tokens_below(300)", 0), ("tokens_below(3)", 1)):
        pipeline.write_text(f"use: Truncation\ntarget: {target}\nkeep: last(groups=1)")
        done = run("compact", chat, "-o", tmp_path / "out.json", "--config", pipeline, "--counter", "chars/4")
        assert (done.exit_code, "the limit is" in done.stdout) == (code, False)
