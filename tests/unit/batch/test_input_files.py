"""The inputs of a batch, their slices, and where the outputs are written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction.batch.input_files import find_input_files, plan_output_files
from compaction.batch.slices import cut_slices
from compaction.errors import ConfigurationError
from tests.support.corpora import read_rows, run

LINE = b"[1]\n"


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
    """Files of the same name from two directories would overwrite one another."""
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
