"""The table, the JSON and the exit codes of ``compaction replay``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from compaction.cli.app import app
from tests.support.chats import turns
from tests.unit.replay.test_result import chat

RECOMMENDED = ("--window", "200", "--strategy", "context_window", "--recommend", "--min-recall", 0)


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Return a file with two conversations, one of them short."""
    path = tmp_path / "sessions.jsonl"
    chats = {"id": "a", "messages": chat(20)}, {"id": "b", "messages": turns(1)}
    path.write_text("".join(json.dumps(each) + "\n" for each in chats))
    return path


def run(*arguments: object, code: int = 0) -> str:
    """Return what the command prints, or for an error what it complains."""
    done = CliRunner().invoke(app, ["replay", *map(str, arguments), "--counter", "chars/4", "--jobs", "1"])
    assert done.exit_code == code, done.output
    return done.stdout if code < 2 else done.stderr


def test_the_table_names_every_strategy(sessions: Path) -> None:
    """The baselines come first. Each column has a unit below its name, and the lines below the table explain it."""
    out = run(sessions, "--window", "200", "--strategy", "context_window")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[3:7]] == ["none", "truncate", "hysteresis", "context_window"]
    assert "1 session over 200 tokens, 22 calls" in lines
    assert "1 session within the window, not in the averages" in lines
    names, units, *rest = run(sessions, "--window", "200").splitlines()
    assert units.split() == ["strategy", "of", "all", "%", "%", "%", "calls", "calls", "calls", "tokens", "s"]
    assert [name for name in names.split() if f"{name}: " not in "\n".join(rest)] == []


def test_the_summary_fits_in_100_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With intervals, a long name and every note, no line is longer than 100 columns, and no figure is cut."""
    long = tmp_path / f"{'long_' * 12}.py"
    long.write_text("from compaction.strategies import SlidingWindow\nstrategy = SlidingWindow()\n")
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(json.dumps(turns(20 + at, words=2_000)) + "\n" for at in range(3)))
    monkeypatch.setenv("COLUMNS", "300")
    lines = run(path, "--window", "20k", "--strategy", long, "--recommend").splitlines()
    assert max(map(len, lines)) <= 100
    assert [line for line in lines[:8] if "(" in line] != []
    assert [line for line in lines[:8] if "…" in line[30:]] == []


def test_a_narrow_terminal_has_no_intervals(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns the intervals and the CPU time are left out, and the figures are whole."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(sessions, "--window", "200").splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines[:8] if "(" in line or "…" in line] == []


def test_recommendation(sessions: Path) -> None:
    """With --recommend, the recommendation follows the table: one sentence, the money a month, a command, the reasons."""
    out = run(sessions, *RECOMMENDED, "--calls-per-month", 500)
    assert "No recommendation: only 1 session exceeds the window, and at least 6 are needed" in out
    assert re.search(r"\ncontext_window at 500 calls a month: \$\d+\.\d\d for input, \$\d+\.\d\d (less|more) than", out)
    assert "to try context_window: compaction serve --preset context_window --window 200" in out
    assert "- none, truncate and hysteresis are baselines" in out
    assert "The rule: the cheapest strategy whose requests would all be accepted and that keeps at least 0 %" in out
    assert "Do not compact. None of the 2 conversations exceeds the window" in run(sessions, "--window", "100k", "--recommend")


def test_json(sessions: Path) -> None:
    data: dict[str, Any] = json.loads(run(sessions, *RECOMMENDED, "--json"))
    assert (data["window"], data["short"]) == (200, ["b"])
    assert (data["recommendation"]["names"], data["recommendation"]["lead"]) == ([], "context_window")


def test_what_is_wrong_is_named_and_the_rest_is_replayed(sessions: Path, tmp_path: Path) -> None:
    """A missing file, a damaged line and an unknown model are named; the exit code says so."""
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text(f'[{{"role": "user", "content": "hi"}}]\n{{damaged\n{sessions.read_text()}')
    out = " ".join(run(damaged, tmp_path / "none.jsonl", "--window", "200", "--model", "gpt-0", code=1).split())
    assert "damaged.jsonl, line 2: it is not JSON" in out
    assert "none.jsonl: it cannot be read" in out
    assert "no table has prices for model 'gpt-0'" in out
    assert "1 session over 200 tokens" in out


def test_nothing_to_replay_is_an_error(tmp_path: Path) -> None:
    assert "cannot be read" in run(tmp_path / "none.jsonl", "--window", "200", code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "quantum"], "is unknown; use one of none, truncate"),
        (["--window", "-3"], "not a number of tokens"),
        (["--min-recall", "2"], "min-recall"),
        (["--calls-per-month", "0"], "calls-per-month"),
        (["--models", "none.toml"], "cannot read a table of models"),
    ],
)
def test_bad_arguments(sessions: Path, arguments: list[str], words: str) -> None:
    assert words in run(sessions, *(["--window", "200"] if "--window" not in arguments else []), *arguments, code=2)


def test_a_strategy_from_a_file(sessions: Path, tmp_path: Path) -> None:
    """A Python file may define a strategy, or a function of the window that returns one."""
    head = "from compaction.strategies import SlidingWindow\n"
    (tmp_path / "mine.py").write_text(f"{head}strategy = SlidingWindow()\n")
    (tmp_path / "made.py").write_text(f"{head}def strategy(window): return SlidingWindow()\n")
    out = run(sessions, "--window", "200", "--strategy", tmp_path / "mine.py", "--strategy", tmp_path / "made.py")
    assert [line.split()[0] for line in out.splitlines()[6:8]] == ["mine", "made"]


def test_a_pipeline_from_a_file(sessions: Path, tmp_path: Path) -> None:
    """The files that `compaction serve --config` takes can be replayed before, in several processes too."""
    (tmp_path / "mine.toml").write_text('[[steps]]\nuse = "SlidingWindow"\n')
    (tmp_path / "other.yaml").write_text("steps:\n- use: SlidingWindow\n")
    (tmp_path / "bad.toml").write_text('[[steps]]\nuse = "Magic"\n')
    chosen = ("--strategy", tmp_path / "mine.toml", "--strategy", tmp_path / "other.yaml", "--jobs", "2")
    out = run(sessions, "--window", "200", *chosen)
    assert [line.split()[0] for line in out.splitlines()[6:8]] == ["mine", "other"]
    assert "Magic" in run(sessions, "--window", "200", "--strategy", tmp_path / "bad.toml", code=2)


@pytest.mark.parametrize("text", ["strategy = 3", "other = 1", "raise ValueError", "("])
def test_a_file_without_a_strategy(text: str, sessions: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(text)
    assert "strategy" in run(sessions, "--window", "200", "--strategy", tmp_path / "bad.py", code=2)
