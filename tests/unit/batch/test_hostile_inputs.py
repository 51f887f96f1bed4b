"""Inputs made to exhaust memory or disk, and links out of an input directory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from compaction.batch import estimate
from tests.support.corpora import STRATEGY, errors_of, run, store

JUNK_LINES = 10_000


@pytest.mark.parametrize(("name", "line", "bound"), [("in.jsonl.gz", b"x\n", 262_144), ("in.jsonl", b"x" * 9 + b"\n", 400_000)])
def test_the_errors_of_junk_are_bounded(name: str, line: bytes, bound: int, tmp_path: Path) -> None:
    """Junk makes at most 256 KiB of errors, or four times its bytes as stored; the last entry counts the rest."""
    text = line * JUNK_LINES
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    report = run(tmp_path / name, tmp_path / "out.jsonl", slice_bytes=1_000_000)
    *entries, last = errors_of(report)
    assert report.tally.bad == JUNK_LINES
    assert (last["error"], last["original"], last["count"]) == ("NotListed", None, JUNK_LINES - len(entries))
    assert last["reason"].startswith(f"{last['count']:,} bad conversations")
    assert [entry["line"] for entry in entries] == list(range(1, last["line"]))
    sizes = [len(json.dumps({key: entry[key] for key in entry if key != "file"})) + 1 for entry in entries]
    assert bound - 2 * sizes[-1] < sum(sizes) <= bound


def test_bad_conversations_of_usual_size_are_all_listed(tmp_path: Path) -> None:
    line = json.dumps({"messages": [{"role": "user", "content": "What is the weather like in Oslo? " * 8}], "n": 1})[:-1]
    (tmp_path / "in.jsonl").write_text(f"{line}\n" * 2_000)
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", slice_bytes=1_000_000)
    assert [entry["original"] for entry in errors_of(report)] == [line] * 2_000


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz"])
def test_the_memory_of_empty_lines_is_bounded(tmp_path: Path, name: str) -> None:
    text = b"\n" * 50_000
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    tracemalloc.start()
    try:
        run(tmp_path / name, tmp_path / "out.jsonl", slice_bytes=len(text))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_400_000  # a list of the lines has 2 MB, the buffers of files 1 MB


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An input directory with links to a file and to a directory outside of it, and to itself."""
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").mkdir()
    store(tmp_path / "in" / "a.jsonl", "jsonl")
    store(tmp_path / "secret" / "b.jsonl", "jsonl")
    (tmp_path / "in" / "link.jsonl").symlink_to(tmp_path / "secret" / "b.jsonl")
    (tmp_path / "in" / "there").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "self").symlink_to(tmp_path / "in")
    return tmp_path / "in"


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    report = run(folder, tmp_path / "out")
    assert sorted(report.outputs) == [str(tmp_path / "out" / "a.jsonl")]
    assert sorted(report.foreign) == [str(folder / name) for name in ("link.jsonl", "self", "there")]
    assert estimate([folder], STRATEGY).bytes_total == (folder / "a.jsonl").stat().st_size


def test_links_are_followed_if_asked_for(folder: Path, tmp_path: Path) -> None:
    """With ``follow_links``, files behind links are read; a link to a directory above it or to nothing is not followed."""
    (folder / "link.jsonl").unlink()
    (folder / "dead.jsonl").symlink_to(folder / "nothing.jsonl")
    report = run(folder, tmp_path / "out", follow_links=True)
    assert sorted(report.outputs) == [str(tmp_path / "out" / name) for name in ("a.jsonl", "there/b.jsonl")]
    assert report.foreign == [str(folder / "dead.jsonl")]
    assert estimate([folder], STRATEGY, follow_links=True).bytes_total == 2 * (folder / "a.jsonl").stat().st_size
