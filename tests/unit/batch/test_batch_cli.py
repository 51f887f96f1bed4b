"""``compaction batch``: its options, what it shows, its exit codes."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from compaction.batch import BatchCounts, BatchProgress
from compaction.cli.app import app
from compaction.cli.batch import progress_bar
from tests.support.corpora import BUDGET, CHATS, expected, lines, read_rows, store

SHARED = ("--counter", "chars/4", "--workers", "1")


def batch(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["batch", *map(str, arguments), *SHARED])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return store(tmp_path / "in.jsonl", "jsonl")


def test_it_compacts_to_a_budget(source: Path, tmp_path: Path) -> None:
    """The output is what the library makes; the table shows sizes, the lines under it what was done, with what, and where."""
    done = batch(source, "-o", tmp_path / "out.jsonl", "--budget", str(BUDGET))
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected()
    assert f"finished: {len(CHATS)} conversations" in done.stdout
    assert "tokens counted by chars/4" in done.stdout
    assert "TokenBudgetComposed" in done.stdout
    assert "out.jsonl (" in done.stdout


def test_json_is_the_report(source: Path, tmp_path: Path) -> None:
    """With --json, standard output is one line: the report, with what a summarizer cost if a model's prices were named."""
    done = batch(source, "-o", tmp_path / "out", "--to", "jsonl.gz", "--budget", str(BUDGET), "--json", "--model", "gpt-5")
    report = json.loads(done.stdout)
    assert report["outputs"] == {str(tmp_path / "out" / "in.jsonl.gz"): (tmp_path / "out" / "in.jsonl.gz").stat().st_size}
    assert (report["tally"]["conversations"], report["dollars"], report["outcome"]) == (len(CHATS), 0.0, "finished")


def test_bad_conversations_are_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines() + b"broken\n")
    done = batch(tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--budget", str(BUDGET))
    assert (done.exit_code, len(read_rows(tmp_path / "out.jsonl", "jsonl"))) == (1, len(CHATS))
    assert "1 bad" in done.stdout
    assert "out.jsonl.errors.jsonl" in done.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--budget", "300", "--engine", "spark"), "'spark' is not one of"),
        (("--budget", "300", "--model", "nobody"), "no table has prices"),
        (("--budget", "300", "--max-errors", "-1"), "--max-errors"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_cannot_be(options: tuple[str, ...], says: str, source: Path, tmp_path: Path) -> None:
    """Unusable arguments give one line of error and exit code 2, and nothing is written."""
    done = batch(source, "-o", tmp_path / "out.jsonl", *options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == [source]


def test_another_configuration_is_exit_code_2(source: Path, tmp_path: Path) -> None:
    """A second run reports the same; a second run with another budget is an error that names the earlier budget."""
    first = batch(source, "-o", tmp_path / "out.jsonl", "--budget", "300")
    again = batch(source, "-o", tmp_path / "out.jsonl", "--budget", "300")
    other = batch(source, "-o", tmp_path / "out.jsonl", "--budget", "301")
    assert (first.exit_code, again.exit_code, other.exit_code) == (0, 0, 2)
    assert again.stdout.splitlines()[:4] == first.stdout.splitlines()[:4]
    assert "budget was 300" in other.stderr


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_progress_is_one_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, bytes, time left, conversations and errors are one line, whatever the figures are."""
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    counts = BatchCounts(conversations=123_456_789, bad=12_345, tokens_before=10**12, tokens_after=10**11, requests=10**6)
    figures: dict[str, Any] = {"bytes_total": 987_654_321_098, "bytes_before": 0, "seconds": 9e4, "seconds_counted": 9e4}
    with progress_bar(None) as update:
        for done in (0, 123_456_789_012):
            update(BatchProgress(tally=counts, bytes_done=done, **figures))
    drawn = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()))
    assert [line for line in drawn if "123.5 GB of 987.7 GB, 175:00:00 left, 123,456,789 conversations" in line]
    assert max(map(len, drawn)) <= 80
    assert all("GB" in line for line in drawn if line.strip() and "starting" not in line)


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_a_dry_run_writes_nothing(as_json: bool, source: Path, tmp_path: Path) -> None:
    """It estimates the sizes of all inputs, and the requests to a summarizer with their price."""
    how = ("--preset", "hermes", "--window", "600", "--dry-run", "--model", "gpt-5", "--sample", "1000")
    done = batch(source, "-o", tmp_path / "out.jsonl", *how, *(("--json",) if as_json else ()))
    assert (done.exit_code, list(tmp_path.iterdir())) == (0, [source])
    if as_json:
        data = json.loads(done.stdout)
        whole = BatchCounts.from_dict(data["whole"])
        assert (whole.conversations, data["bytes_total"]) == (len(CHATS), source.stat().st_size)
        assert data["dollars"] == pytest.approx((whole.prompt_tokens * 1.25 + whole.completion_tokens * 10) / 1e6)
        assert data["dollars"] > 0
    else:
        assert "nothing was written" in done.stdout
        assert "at the prices of gpt-5" in done.stdout.replace("\n", " ")
