"""The table, the JSON and the exit codes of ``compaction replay``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.app import app
from tests.support.chats import Chat, assistant, turns, user


def chat() -> Chat:
    """Return a conversation of about 700 tokens that ends with a question about its first message."""
    return [user("order A-170 came"), assistant("noted"), *turns(20, words=20), user("which?"), assistant("A-170")]


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Return a file with two conversations, one of them short."""
    path = tmp_path / "sessions.jsonl"
    path.write_text(
        "".join(json.dumps({"id": id, "messages": messages}) + "\n" for id, messages in (("a", chat()), ("b", turns(1))))
    )
    return path


def run(*arguments: object, code: int = 0) -> None:
    """Run the command in this process."""
    with pytest.raises(SystemExit) as ended:
        app(["replay", *map(str, arguments), "--counter", "chars/4", "--jobs", "1"])
    assert ended.value.code == code


def test_the_table_names_every_strategy(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table lists the baselines and the strategies asked for; below it are the counts of sessions."""
    run(sessions, "--window", "200", "--strategy", "context_window")
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["none", "truncate", "hysteresis", "context_window"]
    assert "1 session over 200 tokens, 22 calls" in lines
    assert "1 session within the window, not in the averages" in lines


def test_recommendation(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --recommend, the recommended strategies come last, with reasons."""
    run(sessions, "--window", "200", "--strategy", "context_window", "--recommend")
    out = capsys.readouterr().out
    assert re.search(r"^recommended: hysteresis$", out, re.MULTILINE)
    assert "- none is excluded: " in out
    run(sessions, "--window", "100k", "--recommend")
    assert "not compacting is cheapest" in capsys.readouterr().out


def test_json(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json, standard output is one JSON object and nothing else."""
    run(sessions, "--window", "200", "--strategy", "context_window", "--json", "--recommend")
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (data["window"], data["short"]) == (200, ["b"])
    assert data["recommendation"]["names"] == ["hysteresis"]


def test_what_is_wrong_is_named_and_the_rest_is_replayed(
    sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing file and an unknown model are named; the exit code says so."""
    run(sessions, tmp_path / "none.jsonl", "--window", "200", "--model", "gpt-0", code=1)
    out = " ".join(capsys.readouterr().out.split())
    assert "none.jsonl: it cannot be read" in out
    assert "no table has prices for model 'gpt-0'" in out
    assert "1 session over 200 tokens" in out


def test_nothing_to_replay_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no file can be read, there is no table."""
    run(tmp_path / "none.jsonl", "--window", "200", code=2)
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strategy", "quantum"], "is unknown; use one of none, truncate"),
        (["--window", "-3"], "not a number of tokens"),
        (["--prices", "none.toml"], "cannot read a table of models"),
    ],
)
def test_bad_arguments(sessions: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what is wrong and what to use."""
    run(sessions, *(["--window", "200"] if "--window" not in arguments else []), *arguments, code=2)
    assert words in capsys.readouterr().err


def test_a_note_of_many_sessions_is_shown_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Logs of one kind often have the same problem."""
    path = tmp_path / "logs.jsonl"
    path.write_text("".join(json.dumps([assistant(), *turns(1)]) + "\n" for _ in range(3)))
    run(path, "--window", "200")
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("it starts with an answer") == 1
    assert "3 sessions, first " in out


def test_a_strategy_from_a_file(sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Python file may define a strategy, or a function of the window that returns one."""
    head = "from compaction.strategies import SlidingWindow\n"
    (tmp_path / "mine.py").write_text(f"{head}strategy = SlidingWindow()\n")
    (tmp_path / "made.py").write_text(f"{head}def strategy(window): return SlidingWindow()\n")
    run(sessions, "--window", "200", "--strategy", tmp_path / "mine.py", "--strategy", tmp_path / "made.py")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[5:7]] == ["mine", "made"]


@pytest.mark.parametrize("text", ["strategy = 3", "other = 1", "raise ValueError", "("])
def test_a_file_without_a_strategy(text: str, sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad file is an error before anything is replayed."""
    (tmp_path / "bad.py").write_text(text)
    run(sessions, "--window", "200", "--strategy", tmp_path / "bad.py", code=2)
    assert "strategy" in capsys.readouterr().err
