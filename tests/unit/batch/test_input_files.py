"""The inputs of a batch, their slices, where the outputs are written, and inputs made to exhaust memory or disk."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction.batch import estimate
from compaction.batch.input_files import find_input_files, plan_output_files
from compaction.batch.slices import cut_slices
from compaction.errors import ConfigurationError, UnreadableFile
from tests.support.corpora import STRATEGY, errors_of, read_rows, run, store

LINE = b"[1]\n"


def test_a_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UnreadableFile, match=r"it cannot be read \(Permission denied\)"):
        find_input_files([tmp_path], follow_links=False)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "jsonl"),
        (b'{"messages": []}', "jsonl"),
        (b"\n[]", "jsonl"),
        (b" []\n", "jsonl"),
        (gzip.compress(b"[]\n", mtime=0), "jsonl.gz"),
    ],
)
def test_a_name_need_not_say_the_kind(content: bytes, kind: str, tmp_path: Path) -> None:
    """The first bytes of a file that was given decide it, if its ending is unknown; an empty file has no wrong kind."""
    (tmp_path / "chats").write_bytes(content)
    [source], foreign = find_input_files([tmp_path / "chats"], follow_links=False)
    assert (source.kind, source.name, foreign) == (kind, "chats", [])
    (tmp_path / "none.jsonl.gz").touch()
    run([tmp_path / "none.jsonl.gz"], tmp_path / "out.jsonl.gz")
    assert read_rows(tmp_path / "out.jsonl.gz", "jsonl.gz") == []


def test_each_input_is_given_once(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigurationError, match=r"b\.jsonl: it is given twice"):
        find_input_files([tmp_path, tmp_path / "b.jsonl"], follow_links=False)


@pytest.mark.parametrize(
    ("name", "to", "output"),
    [
        ("a.ndjson", "jsonl", "a.ndjson"),
        ("a.ndjson", None, "a.ndjson"),
        ("A.NDJSON.GZ", "jsonl", "A.jsonl"),
        ("a.b.jsonl", "parquet", "a.b.parquet"),
        ("chats", "jsonl.zst", "chats.jsonl.zst"),
    ],
)
def test_outputs_are_called_as_the_inputs(name: str, to: str | None, output: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(LINE) if name.endswith("GZ") else LINE)
    sources, _ = find_input_files([tmp_path / name], follow_links=False)
    (tmp_path / "out.jsonl").mkdir()
    [target] = plan_output_files(sources, tmp_path / "out.jsonl", to, [])
    assert (target.path, target.number, target.sources) == (str(tmp_path / "out.jsonl" / output), 0, (0,))
    [target] = plan_output_files(sources, tmp_path / "out.jsonl.gz", to, [])
    assert (target.path, target.kind) == (str(tmp_path / "out.jsonl.gz"), to or "jsonl.gz")


def test_two_inputs_cannot_become_one_output(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.jsonl").touch()
    with pytest.raises(ConfigurationError, match=r"x\.jsonl: two inputs would be written to this file"):
        run([tmp_path / "a" / "x.jsonl", tmp_path / "b" / "x.jsonl"], tmp_path / "out")


@pytest.mark.parametrize(
    ("size", "ends"), [(1, [4, 8, 12, 16]), (4, [4, 8, 12, 16]), (5, [8, 16]), (8, [8, 16]), (9, [12, 16])]
)
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz"])
def test_a_slice_ends_with_the_line_that_fills_it(kind: str, size: int, ends: list[int], tmp_path: Path) -> None:
    """Slices are whole lines of the size or more; together they cover the whole file."""
    (tmp_path / f"in.{kind}").write_bytes(LINE * 4 if kind == "jsonl" else gzip.compress(LINE * 4))
    [source], _ = find_input_files([tmp_path / f"in.{kind}"], follow_links=False)
    slices = list(cut_slices(source, size, 100))
    bytes_ = [slice.end - slice.start for slice in slices]
    assert [sum(bytes_[: place + 1]) for place in range(len(bytes_))] == ends
    assert [slice.key for slice in slices] == [(0, number) for number in range(len(ends))]
    assert sum(slice.weight for slice in slices) == source.size
    assert [slice.text for slice in slices] == [None if kind == "jsonl" else LINE * (count // 4) for count in bytes_]
    assert "[1]" not in repr(slices), "no text is shown in errors"


@pytest.mark.parametrize(("more", "groups"), [(0, [1, 1, 1, 1, 1]), (1, [2, 2, 1])])
def test_a_slice_of_a_table_has_whole_row_groups(more: int, groups: list[int], tmp_path: Path) -> None:
    pq.write_table(pa.table({"messages": ["[]"] * 10}), tmp_path / "in.parquet", row_group_size=2)
    [source], _ = find_input_files([tmp_path / "in.parquet"], follow_links=False)
    size = pq.ParquetFile(source.path).metadata.row_group(0).total_byte_size
    slices = list(cut_slices(source, size + more, 100))
    assert [slice.end - slice.start for slice in slices] == groups
    assert [slice.start for slice in slices] == [sum(groups[:place]) for place in range(len(groups))]
    assert sum(slice.weight for slice in slices) == source.size
    assert max(slice.weight for slice in slices) <= -(-source.size * max(groups) // 5)


def test_a_compressed_file_with_the_name_of_a_plain_one(tmp_path: Path) -> None:
    """In a folder it is not read, instead of giving one bad conversation for each line break in its bytes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(gzip.compress(LINE * 4))
    (tmp_path / "in" / "b.jsonl").write_bytes(LINE)
    report = run(tmp_path / "in", tmp_path / "out")
    [(path, reason)] = report.failed.items()
    assert reason == f"{path}: it is jsonl.gz, although its name says jsonl; rename it"
    assert report.tally.conversations == 1


def test_the_reason_of_a_line_names_no_other_line(tmp_path: Path) -> None:
    """Its number is beside it; a line that begins like gzip data is not decompressed."""
    (tmp_path / "in.jsonl").write_bytes(b"[]\n" + b'["\xff"]\n' + gzip.compress(LINE * 4).replace(b"\n", b"") + b"\n")
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert [(entry["line"], entry["reason"]) for entry in errors_of(report)] == [
        (number, "it is not UTF-8 text (invalid start byte); a conversation is JSON in UTF-8") for number in (2, 3)
    ]


# -------------------------------------------------------------------- junk, and links out of an input directory

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
