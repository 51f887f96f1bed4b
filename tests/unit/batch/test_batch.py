"""Batches of files: inputs, outputs and reports."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction import MessageIndex, compact_sync, last, presets
from compaction.batch import BatchCounts, BatchProgress, Job, estimate
from compaction.batch.input_files import find_input_files
from compaction.batch.slices import cut_slices
from compaction.errors import ConfigurationError, UnreadableFile, UnwritableFile
from compaction.stores import SQLiteStore
from compaction.strategies import Lossless, Summarization, Truncation
from compaction.summarizers import CachedSummarizer, DigestSummarizer, FirstOf, OpenAISummarizer, SummaryRequest
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import system, tool_turns, turns, user
from tests.support.corpora import BAD, BUDGET, CHATS, KINDS, SMALL, STRATEGY, errors_of, expected, lines, read_rows, run, store
from tests.support.limits import WAIT_SECONDS

ROOT = Path(__file__).resolve().parents[3]

# -------------------------------------------------------------------- what is read and written


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_every_kind(kind: str, to: str, tmp_path: Path) -> None:
    """For every kind of input and output, each conversation is compacted, in order, and keeps its fields."""
    source = store(tmp_path / f"in.{kind}", kind)
    report = run(source, tmp_path / f"out.{to}")
    rows = read_rows(tmp_path / f"out.{to}", to)
    assert [row["messages"] for row in rows] == expected()
    assert [(row["id"], row["score"], row["note"]) for row in rows] == [(c["id"], c["score"], c["note"]) for c in CHATS]
    assert (report.outcome, report.tally.conversations, report.tally.bad) == ("finished", len(CHATS), 0)
    assert 0 < report.tally.changed < len(CHATS)
    assert report.tally.bytes_read == (source.stat().st_size if kind == "parquet" else len(lines()))
    if to == "jsonl.gz":
        assert (tmp_path / f"out.{to}").read_bytes()[4:8] == bytes(4), "the header has no time"
    if to == "jsonl":
        assert report.tally.bytes_written == (tmp_path / "out.jsonl").stat().st_size
    assert report.tally.bytes_written > 0


def test_untouched_bytes_stay(tmp_path: Path) -> None:
    """An unchanged line keeps its bytes; a changed line keeps all bytes but those of the dropped messages."""
    odd = b'{ "n": 1.50,"big":123456789012345678901234567890, "messages" :[{"role":"user","content":"caf\\u00e9"}],"x":[ ]}\r\n'
    changed = json.dumps({"n": 1.0, "messages": tool_turns(6), "t": "\u00e9"}).replace('"n": 1.0', '"n":1.00').encode() + b"\n"
    no_json = b'{"cost": NaN, "messages": [{"role": "user", "content": "\\ud800"}]}\n'  # which orjson does not read
    (tmp_path / "in.jsonl").write_bytes(odd + b"\n" + no_json + changed + b"[]")
    assert run(tmp_path / "in.jsonl", tmp_path / "out.jsonl").tally.bad == 0
    first, blank, third, second, last = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    assert (first, blank, third, last) == (odd, b"\n", no_json, b"[]")
    assert second.startswith(b'{"n":1.00, "messages": [')
    assert second.endswith(b'], "t": "\\u00e9"}\n')
    assert len(second) < len(changed)
    (tmp_path / "blank.jsonl").write_bytes(b"[]\n\n")
    run(tmp_path / "blank.jsonl", tmp_path / "same.jsonl")
    assert (tmp_path / "same.jsonl").read_bytes() == b"[]\n\n"
    assert estimate([tmp_path / "blank.jsonl"], STRATEGY).bytes_sampled == 4


def test_directories_keep_their_shape(tmp_path: Path) -> None:
    """Each file of a directory becomes one of that name below the output; other files are ignored."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    store(tmp_path / "in" / "a.jsonl", "jsonl")
    store(tmp_path / "in" / "deep" / "b.parquet", "parquet")
    for foreign in ("notes.txt", "_SUCCESS", ".hidden.jsonl", "_", "._a.jsonl", ".b", "_c.jsonl"):
        (tmp_path / "in" / foreign).write_text("no conversation")
    report = run(tmp_path / "in", tmp_path / "out")
    assert [row["messages"] for row in read_rows(tmp_path / "out" / "a.jsonl", "jsonl")] == expected()
    assert [row["messages"] for row in read_rows(tmp_path / "out" / "deep" / "b.parquet", "parquet")] == expected()
    assert report.foreign == [str(tmp_path / "in" / "notes.txt")]
    assert sorted(path.name for path in (tmp_path / "out").rglob("*") if path.is_file()) == ["a.jsonl", "b.parquet"]


def test_several_inputs_become_one_file(tmp_path: Path) -> None:
    """Inputs are written to one file in their order; a missing line end at the end of an input is added."""
    (tmp_path / "a.jsonl").write_bytes(lines(CHATS[:3]).rstrip(b"\n"))
    store(tmp_path / "b.jsonl.gz", "jsonl.gz", CHATS[3:])
    run([tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"], tmp_path / "out.jsonl", slice_bytes=1_000_000)
    assert [row["id"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == [chat["id"] for chat in CHATS]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_files_stay_empty(kind: str, tmp_path: Path) -> None:
    """The output of any kind can be read; its folder is made."""
    source, outputs = tmp_path / f"in.{kind}", tmp_path / "new" / "folder"
    if kind == "parquet":
        pq.ParquetWriter(source, pa.schema({"id": pa.int32(), "messages": pa.string()})).close()  # without row groups
    else:
        store(source, kind, [])
    for to in KINDS:
        assert run(source, outputs / f"out.{to}").tally.conversations == 0
        assert read_rows(outputs / f"out.{to}", to) == []
        assert ((outputs / f"out.{to}").stat().st_size > 0) is (to != "jsonl"), "an empty file of any other kind is damaged"
    assert kind != "parquet" or pq.read_schema(outputs / "out.parquet").equals(pq.read_schema(source))


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_tables_keep_their_columns(type_: pa.DataType, tmp_path: Path) -> None:
    """A table keeps its other columns, its types and metadata, and the text of unchanged messages."""
    texts = ['[ {"role": "user",  "content": "caf\\u00e9"} ]', json.dumps(CHATS[6]["messages"])]
    when, chat = pa.array([1, None], pa.timestamp("ms")), pa.array(texts, pa.string()).cast(type_)
    table = pa.table({"when": when, "chat": chat, "raw": [b"\xff", b""]}).replace_schema_metadata({"made": "here"})
    pq.write_table(table, tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet", column="chat")
    back = pq.read_table(tmp_path / "out.parquet")
    assert back.schema.equals(pq.read_table(tmp_path / "in.parquet").schema, check_metadata=True)
    assert back.drop_columns(["chat"]).equals(table.drop_columns(["chat"]))
    first, second = back.column("chat").to_pylist()
    assert first == texts[0]
    assert json.loads(second) == expected()[6]


def test_nested_messages_stay_nested(tmp_path: Path) -> None:
    """A column of lists of structs stays one; the keys that Arrow fills with nulls are ignored."""
    store(tmp_path / "in.parquet", "parquet", nested=True)
    run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    before, after = pq.read_table(tmp_path / "in.parquet"), pq.read_table(tmp_path / "out.parquet")
    assert after.schema == before.schema
    kept = [[strip(message) for message in messages] for messages in after.column("messages").to_pylist()]
    assert kept == [[strip(message) for message in messages] for messages in expected()]


def test_rows_become_lines(tmp_path: Path) -> None:
    """Columns become fields, nested messages lose their nulls, and text with line ends becomes one line."""
    chat = [{"role": "user", "content": "caf\u00e9"}]
    when = datetime(2020, 1, 2, tzinfo=UTC)
    type_ = pa.large_list(pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())]))
    tables: dict[str, Any] = {
        "nested": ({"messages": pa.array([chat], type_)}, {}),
        "pretty": ({"when": [when], "messages": [json.dumps(chat, indent=1)]}, {"when": when.isoformat()}),
    }
    for name, (columns, fields) in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        run(tmp_path / f"{name}.parquet", tmp_path / f"{name}.jsonl")
        assert read_rows(tmp_path / f"{name}.jsonl", "jsonl") == [{**fields, "messages": chat}]
    flat = '[ {"role": "user",  "content": "caf\\u00e9"} ]'
    pq.write_table(pa.table({"messages": [flat]}), tmp_path / "flat.parquet")
    run(tmp_path / "flat.parquet", tmp_path / "flat.jsonl")
    assert (tmp_path / "flat.jsonl").read_text() == f'{{"messages":{flat}}}\n'
    for column, says in (({"raw": [b"x"]}, "JSON cannot represent"), ({"messages": [1]}, "rename it")):
        pq.write_table(pa.table({**column, "chat": ["[]"]}), tmp_path / "bad.parquet")
        with pytest.raises(ConfigurationError, match=says):
            run(tmp_path / "bad.parquet", tmp_path / "bad.jsonl", column="chat", restart=True)


def test_without_pyarrow_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet and zstd need pyarrow; other kinds do not."""
    sources = [store(tmp_path / f"in.{kind}", kind) for kind in KINDS]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for source in sources:
        wants = source.name in ("in.parquet", "in.jsonl.zst")
        with pytest.raises(ConfigurationError, match=r"need pyarrow.*install") if wants else contextlib.nullcontext():
            run(source, tmp_path / f"{source.name}.out.jsonl")


def strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: strip(inner) for name, inner in value.items() if inner is not None}
    return [strip(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("threads", [0, 1])
def test_programs_with_and_without_threads_have_workers(threads: int, tmp_path: Path) -> None:
    """A program with one thread forks its workers, and one with several starts new processes; both write the same bytes."""
    (tmp_path / "in").mkdir()
    store(tmp_path / "in" / "a.jsonl", "jsonl")
    store(tmp_path / "in" / "b.jsonl.gz", "jsonl.gz")
    run(tmp_path / "in", tmp_path / "one")
    program = (
        "import sys, threading\nfrom pathlib import Path\nfrom tests.support.corpora import run\n"
        "if __name__ == '__main__':\n    end = threading.Event()\n"
        f"    [threading.Thread(target=end.wait).start() for _ in range({threads})]\n"
        "    run(Path(sys.argv[1]), Path(sys.argv[2]), workers=2)\n    end.set()\n"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path / "in"), str(tmp_path / "two")]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=WAIT_SECONDS)
    for name in ("a.jsonl", "b.jsonl.gz"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_lines_with_different_fields_become_one_table(tmp_path: Path) -> None:
    """A field that some lines lack is null there; one with values of two types in two slices or chunks is an error."""
    rows: list[dict[str, Any]] = [{"messages": turns(1)}, {"messages": [], "a": (1 << 63) - 1}]
    rows.append({"b": [1], "messages": [], "c": 1 << 63, "d": float("nan")})
    (tmp_path / "in.jsonl").write_bytes(lines(rows))
    run(tmp_path / "in.jsonl", tmp_path / "out.parquet", slice_bytes=1)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["messages", "a", "b", "c", "d"]
    assert table.select(["a", "b", "c"]).to_pylist() == [
        {"a": None, "b": None, "c": None},
        {"a": (1 << 63) - 1, "b": None, "c": None},
        {"a": None, "b": "[1]", "c": str(1 << 63)},
    ]
    assert str(table.column("d").to_pylist()) == "[None, None, nan]"
    more = b"\n[]\nbroken\n" + b" " * 500 + b"[]\n"
    (tmp_path / "two.jsonl").write_bytes(lines([{"messages": [], "a": 1}, {"messages": [], "a": "x"}]) + more)
    with pytest.raises(UnwritableFile, match="different types in one column"):
        run(tmp_path / "two.jsonl", tmp_path / "two.parquet", slice_bytes=1)
    chunks = [{"messages": [], "a": 1}] * 128 + [{"messages": [], "a": "x"}]
    (tmp_path / "chunks.jsonl").write_bytes(lines(chunks))
    with pytest.raises(UnwritableFile, match=r"chunks\.jsonl: .*different types in one column"):
        run(tmp_path / "chunks.jsonl", tmp_path / "chunks.parquet", slice_bytes=1 << 20)
    assert run(tmp_path / "two.jsonl", tmp_path / "one.parquet", max_bytes=300).tally.bad == 2
    assert pq.read_table(tmp_path / "one.parquet").column("a").to_pylist() == ["1", '"x"', None]


def test_lone_surrogates_become_escapes_in_a_table(tmp_path: Path) -> None:
    """Arrow stores UTF-8: in the names and texts of columns they are escapes, and in the messages escapes of JSON."""
    row = {"\ud800": "a", "b": "\ud801", "c": ["\ud802"], "messages": [user("\ud803")]}
    (tmp_path / "in.jsonl").write_bytes(lines([row]))
    run(tmp_path / "in.jsonl", tmp_path / "out.parquet")
    [back] = read_rows(tmp_path / "out.parquet", "parquet")
    assert back == {"\\ud800": "a", "b": "\\ud801", "c": '["\\ud802"]', "messages": [user("\ud803")]}


# -------------------------------------------------------------------- bad conversations


def test_bad_conversations_are_put_aside(tmp_path: Path) -> None:
    """A bad conversation is left out, and listed in the errors with file, line, reason and original; the others are written."""
    good = lines().splitlines(keepends=True)
    (tmp_path / "in.jsonl").write_bytes(b"".join(good[:10] + BAD + good[10:] + BAD[:1]))
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected()
    entries = errors_of(report)
    assert [entry["line"] for entry in entries] == [11, 12, 13, 14, 15, 26]
    assert {entry["file"] for entry in entries} == {str(tmp_path / "in.jsonl")}
    assert [entry["original"] for entry in entries[:2]] == ["{broken", '{"messages": 3}']
    assert "not a list (got int)" in entries[1]["reason"]
    assert "messages[0]" in entries[2]["reason"]
    assert entries[4]["original"] is None
    assert entries[4]["original_base64"] == "//4K"
    assert report.tally.bad == 6
    assert not report.is_well


def test_errors_with_text_that_is_not_unicode(tmp_path: Path) -> None:
    """A file's name or a reason with a lone surrogate is written with escapes."""

    def fails(index: MessageIndex) -> Any:
        raise ValueError(index.source[0]["content"])

    source = tmp_path / os.fsdecode(b"\xff.jsonl")
    source.write_bytes(lines([{"messages": [user("\ud800")]}]))
    [entry] = errors_of(run(source, tmp_path / "out.jsonl", strategy=fails, budget=None))
    assert (entry["file"], entry["reason"]) == (str(source), "ValueError: \ud800")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_conversation_that_is_too_long_is_not_read(packed: bool, tmp_path: Path) -> None:
    """A line above the bound is skipped without loading it, and reported with its size; its neighbours are compacted."""
    kind = "jsonl.gz" if packed else "jsonl"
    huge = {"messages": [user("x" * 20_000)]}
    source = store(tmp_path / f"in.{kind}", kind, [CHATS[6], huge, CHATS[5]])
    report = run(source, tmp_path / "out.jsonl", max_bytes=10_000)
    assert [row["id"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == ["chat-6", "chat-5"]
    [entry] = errors_of(report)
    size = len(json.dumps(huge)) + 1
    assert (entry["line"], entry["original"], entry["bytes"]) == (2, None, size)
    assert f"it has {size:,} bytes, more than the 10,000 that are read" in entry["reason"]
    assert (report.tally.conversations, report.tally.bad, report.tally.lines) == (3, 1, 3)


def test_the_longest_row_that_is_read(tmp_path: Path) -> None:
    """It has as many bytes of text as the bound."""
    text = json.dumps(turns(1))
    pq.write_table(pa.table({"messages": [text]}), tmp_path / "in.parquet")
    assert run(tmp_path / "in.parquet", tmp_path / "a.parquet", max_bytes=len(text)).errors is None
    [entry] = errors_of(run(tmp_path / "in.parquet", tmp_path / "b.parquet", max_bytes=len(text) - 1))
    assert entry["error"] == "Oversized"


@pytest.mark.parametrize("most", [0, 3])
def test_too_many_errors_end_it(most: int, tmp_path: Path) -> None:
    """The batch stops when the limit is exceeded, and can be resumed with a higher limit."""
    (tmp_path / "in.jsonl").write_bytes(b"".join(BAD * 4 + [lines()]))
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", max_errors=most, slice_bytes=20)
    assert (report.outcome, report.outputs) == ("too many errors", {})
    assert most < report.tally.bad < 20
    again = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", max_errors=20, slice_bytes=20)
    assert (again.outcome, again.resumed, again.tally.bad) == ("finished", True, 20)
    assert len(errors_of(again)) == 20


def test_strict_ends_at_the_first(tmp_path: Path) -> None:
    """Strict, a conversation that breaks a rule of its format, or stays over its target, is bad and ends the batch."""
    orphan = {"messages": [user(), {"role": "tool", "tool_call_id": "none", "content": "x"}, user()]}
    (tmp_path / "rule.jsonl").write_bytes(lines([orphan, CHATS[1]]))
    (tmp_path / "size.jsonl").write_bytes(lines([{"messages": [system("word " * 2_000), user()]}]))
    rule = run(tmp_path / "rule.jsonl", tmp_path / "a.jsonl", strict=True)
    size = run(tmp_path / "size.jsonl", tmp_path / "b.jsonl", strict=True)
    assert (rule.outcome, size.outcome) == ("too many errors", "too many errors")
    assert "messages[1]" in errors_of(rule)[0]["reason"]
    assert "over target" in errors_of(size)[0]["reason"]
    assert run(tmp_path / "rule.jsonl", tmp_path / "c.jsonl").tally.bad == 0
    assert run(tmp_path / "rule.jsonl", tmp_path / "e.jsonl", strict=True, max_errors=1).outcome == "finished"
    assert run(tmp_path / "size.jsonl", tmp_path / "d.jsonl").tally.over_target == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError("too many"), "KeyError: 'too many'"),
        (RecursionError(), "it is nested too deeply; write the inner part as a string"),
    ],
    ids=repr,
)
def test_a_strategy_that_raises_spoils_its_conversation_alone(error: Exception, reason: str, tmp_path: Path) -> None:

    def picky(index: Any) -> Any:
        if index.included.messages > 20:
            raise error
        yield from ()

    report = run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", strategy=picky)
    long = [chat["id"] for chat in CHATS if len(chat["messages"]) > 20]
    assert [json.loads(entry["original"])["id"] for entry in errors_of(report)] == long
    assert {(entry["error"], entry["reason"]) for entry in errors_of(report)} == {(type(error).__name__, reason)}


# -------------------------------------------------------------------- what is refused


def test_an_output_that_is_there_is_kept(tmp_path: Path) -> None:
    """An existing output of another batch is replaced only with restart; no file is left behind."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(UnwritableFile, match="exists already"):
        run(source, tmp_path / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    assert run(source, tmp_path / "out.jsonl", restart=True).outcome == "finished"


def test_the_output_must_not_be_the_input(tmp_path: Path) -> None:
    store(tmp_path / "in.jsonl", "jsonl")
    for inputs, output in ((tmp_path / "in.jsonl", tmp_path / "in.jsonl"), (tmp_path, tmp_path / "out")):
        with pytest.raises(ConfigurationError, match="is an input, or in an input folder"):
            run(inputs, output)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.jsonl", None, "No such file"),
        ("one.json", b"[]", "single JSON document"),
        ("picture", b"\x89PNG", "not a file of conversations"),
        ("in.parquet", b"[]\n", "it is not parquet"),
        ("in.jsonl", b"PAR1....", "it is not jsonl"),
        ("empty", None, "no file of conversations found"),
    ],
)
def test_inputs_that_are_something_else(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    """A missing input, or one whose content contradicts its name, is an error before anything is written."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    elif name == "empty":
        (tmp_path / name).mkdir()
    with pytest.raises(UnreadableFile, match=says):
        run(tmp_path / name, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.parametrize("type_", [pa.int64(), pa.list_(pa.string())], ids=str)
def test_a_column_of_another_shape_is_named(type_: pa.DataType, tmp_path: Path) -> None:
    """A table without the column, or with another type in it, is not written; the report names the columns or the type."""
    pq.write_table(pa.table({"messages": pa.array([None], type_), "chat": ["[]"]}), tmp_path / "in.parquet")
    wrong = run(tmp_path / "in.parquet", tmp_path / "a.parquet")
    missing = run(tmp_path / "in.parquet", tmp_path / "b.parquet", column="talk")
    assert f"its type is {str(type_).partition('<')[0]}" in wrong.failed[str(tmp_path / "in.parquet")]
    assert "messages, chat" in missing.failed[str(tmp_path / "in.parquet")]
    assert (wrong.outputs, missing.outputs, wrong.is_well) == ({}, {}, False)


def test_a_table_with_two_columns_of_that_name_is_not_written(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["[]"]), pa.array(["[]"])], names=["messages", "messages"])
    pq.write_table(table, tmp_path / "in.parquet")
    wrong = run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert "there are several such columns; rename all but one" in wrong.failed[str(tmp_path / "in.parquet")]


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"slice_bytes": 0}, {"max_errors": -1}, {"to": "csv"}, {"max_bytes": 0}, {"window": 0}], ids=str
)
def test_arguments_out_of_range(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", **options)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_strategy_that_cannot_be_sent(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="define it in a module"):
        run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", strategy=lambda index: iter(()), workers=2)


# -------------------------------------------------------------------- what is said


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress is reported after each slice; at the end it equals the report, which counts bytes, lines and seconds."""
    seen: list[BatchProgress] = []
    source = store(tmp_path / "in.jsonl", "jsonl")
    slices = len(list(cut_slices(find_input_files([source], follow_links=False)[0][0], SMALL, 100_000)))
    monkeypatch.setattr(time, "process_time", itertools.count(1_000.0).__next__)
    report = run(source, tmp_path / "out.jsonl", on_progress=seen.append, clock=lambda: 5.0 + 10 * len(seen))
    done = [now.bytes_done for now in seen]
    assert slices > 3
    assert done == sorted(done)
    assert (len(set(done)), len(seen)) == (slices, slices + 1)
    assert (done[-1], seen[-1].bytes_total) == (source.stat().st_size, source.stat().st_size)
    assert [now.seconds for now in seen] == [10.0 * place for place in range(slices + 1)]
    assert [now.seconds_counted for now in seen] == [*(10.0 * place for place in range(slices)), 10.0 * (slices - 1)]
    assert (report.seconds, report.workers) == (10.0 * (slices + 1), 1)
    tally = report.tally
    assert seen[-1].tally == tally
    assert seen[0].tally.lines < tally.lines, "a progress is not changed later"
    assert (tally.lines, tally.bytes_read, tally.seconds) == (len(CHATS), source.stat().st_size, slices)
    assert report.outputs == {str(tmp_path / "out.jsonl"): tally.bytes_written}


def test_what_is_counted() -> None:
    """It counts the sizes before and after, and the results that were changed, degraded or over their target."""
    result = compact_sync(tool_turns(9), Truncation(keep=last(groups=1)), counter="chars/4", budget=1)
    counts = BatchCounts()
    assert set(counts.to_dict().values()) == {0}
    counts.count(result)
    before, after = result.before, result.after
    sizes = {"messages_before": before.messages, "messages_after": after.messages}
    sizes |= {"tokens_before": before.tokens, "tokens_after": after.tokens}
    assert counts == BatchCounts(changed=1, over_target=1, **sizes)
    assert before.messages > after.messages > 0


def test_a_batch_may_leave_workers_and_slices_to_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker where the processors are not known; the conversations of a summarizer wait together, in larger slices."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    asking = Summarization(FirstOf(OpenAISummarizer("m", api_key="none")))
    usual: dict[str, Any] = {"workers": None, "slice_bytes": None, "stop": lambda: True}
    plain, waiting = (run(source, tmp_path / f"{each!r:.3}", strategy=each, **usual) for each in (STRATEGY, asking))
    sizes = [json.loads(Path(report.manifest).read_bytes())["slice_bytes"] for report in (plain, waiting)]
    assert plain.workers == 1 < waiting.workers
    assert sizes[0] < sizes[1]


class AwaitedList:
    """A summarizer without a model that has to be awaited."""

    asks_model = False

    async def summarize(self, request: SummaryRequest) -> str:
        return "Awaited."


def test_an_estimate_stores_no_answer_and_awaits_none(tmp_path: Path) -> None:
    """A digest answers in place of a cache and of a summarizer that has to be awaited; neither asks a model."""
    chat = {"messages": [user("Never push to main. " * 9), *turns(40, words=30)]}
    source, cache = store(tmp_path / "in.jsonl", "jsonl", [chat]), tmp_path / "answers.db"
    for summarizer in (CachedSummarizer(DigestSummarizer(), cache), AwaitedList()):
        found = estimate([source], Job(Summarization(summarizer, keep=last(groups=1)), counter="chars/4"))
        assert (found.sample.requests, found.sample.degraded, found.sample.changed > 0) == (0, 0, True)
    assert not cache.exists() or sqlite3.connect(cache).execute("SELECT count(*) FROM answers").fetchone() == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_of_everything_is_the_truth(kind: str, tmp_path: Path) -> None:
    """An estimate from all conversations equals the counts of the batch; nothing is written."""
    source = store(tmp_path / f"in.{kind}", kind)
    found = estimate([source], Job(STRATEGY, counter="chars/4", budget=BUDGET), sample=10_000)
    assert list(tmp_path.iterdir()) == [source]
    report = run(source, tmp_path / "out.jsonl")
    whole, truth = found.whole, report.tally
    for name in ("conversations", "tokens_before", "tokens_after"):
        assert getattr(whole, name) == getattr(truth, name)


def test_an_estimate_counts_what_a_summarizer_would_get(tmp_path: Path) -> None:
    """Each conversation to summarize counts as a request with its tokens; the model is not called, and a digest asks none."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    model = OpenAISummarizer("m", base_url="http://127.0.0.1:9", api_key="unused")
    sizes = {"max_tokens_before_summary": BUDGET, "max_summary_tokens": 100}
    strategy = presets.langgraph_summary(summarizer=model, **sizes)
    found = estimate([source], Job(strategy, counter="chars/4"), sample=10_000)
    assert found.sample.requests >= found.sample.changed > 0
    assert found.sample.completion_tokens == 100 * found.sample.requests
    assert found.sample.prompt_tokens > 1_000 * found.sample.requests
    one = store(tmp_path / "one.jsonl", "jsonl", [{"messages": turns(9)}])
    found = estimate([one], Job(Summarization(model, keep=last(groups=1)), counter="chars/4"))
    full = Summarization(DigestSummarizer(redact=lambda text: text.replace("q", "query ")), keep=last(groups=1))
    chat = store(tmp_path / "chat.jsonl", "jsonl", [{"messages": [user("q " * 300), *turns(9, words=30)]}])
    truth = run(chat, tmp_path / "out.jsonl", strategy=full, budget=None).tally
    assert truth.changed == 1
    assert estimate([chat], Job(full, counter="chars/4")).whole.tokens_after == truth.tokens_after
    groups = MessageIndex(turns(9), counter="chars/4").included_groups
    assert (found.sample.requests, found.sample.prompt_tokens) == (1, 1_000 + sum(group.tokens for group in groups[:-2]))
    for strategy in (presets.langgraph_summary(**sizes), presets.adaptive(BUDGET), presets.token_budget(BUDGET)):
        found = estimate([source], Job(strategy, counter="chars/4", budget=BUDGET))
        assert (found.sample.requests, found.sample.changed > 0) == (0, True)
        assert estimate([source], Job(strategy, counter="chars/4", budget=BUDGET), count_digests=True).sample.requests > 0


def test_an_estimate_of_a_part_is_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, 200 conversations are compacted. The figures of the whole are larger by the bytes that were not read."""
    (tmp_path / "in.jsonl").write_bytes(lines([{"messages": turns(1)}] * 400))
    monkeypatch.setattr(time, "process_time", itertools.count(1_000.0).__next__)
    found = estimate([tmp_path / "in.jsonl"], STRATEGY)
    assert (found.bytes_sampled, found.bytes_total) == (found.bytes_total / 2, (tmp_path / "in.jsonl").stat().st_size)
    assert (found.sample.conversations, found.sample.lines, found.sample.seconds) == (200, 200, 1.0)
    assert (found.whole.conversations, found.whole.bytes_read, found.whole.seconds) == (400, found.bytes_total, 2.0)
    with pq.ParquetWriter(tmp_path / "end.parquet", (large := pa.table({"messages": ["[]" + " " * 1_000_000]})).schema) as out:
        for rows in (large, large.slice(0, 0)):
            out.write_table(rows)
    assert estimate([tmp_path / "end.parquet"], STRATEGY).sample.conversations == 1
    nested = estimate([store(tmp_path / "in.parquet", "parquet", CHATS[:1], nested=True)], STRATEGY)
    assert (nested.whole.conversations, nested.sample.bytes_read) == (1, 0)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    found = estimate([tmp_path / "bad.parquet"], STRATEGY, sample=1)
    assert (found.whole.conversations, list(found.failed)) == (0, [str(tmp_path / "bad.parquet")])
    sample: Any
    for sample in (0, "9", True):
        with pytest.raises(ConfigurationError, match="sample must be a whole number >= 1"):
            estimate(tmp_path / "in.jsonl", STRATEGY, sample=sample)


@pytest.mark.parametrize(("sample", "taken"), [(1, 1), (5, 5), (10, 10), (11, 12)])
def test_a_sample_is_spread(sample: int, taken: int, tmp_path: Path) -> None:
    """It is taken from slices all over a plain file, at least five from each; of a compressed one, from the first slice."""
    line = json.dumps([user("x" * 125_000)]).encode() + b"\n"
    plain = tmp_path / "in.jsonl"
    plain.write_bytes(line * 24)
    found = estimate([plain], STRATEGY, sample=sample)
    assert (found.sample.conversations, found.bytes_sampled) == (taken, pytest.approx(taken * len(line)))
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(line * 10, 1))
    assert estimate([tmp_path / "in.jsonl.gz"], STRATEGY, sample=sample).sample.conversations == min(sample, 8)


def test_an_estimate_stores_nothing(tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl")
    shelf = SQLiteStore(tmp_path / "shelf.db")
    strategy = Lossless(Truncation(trigger=tokens_exceed(20), target=tokens_below(10), keep=last(groups=1)), shelf)
    found = estimate([source], strategy, sample=10_000).sample
    assert (found.changed > 0, found.bad, found.requests) == (True, 0, 0)
    assert shelf.describe("default").tallies == ()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_key_signs_summaries_and_is_written_nowhere(workers: int, tmp_path: Path) -> None:
    """Workers get the key and sign the output; the manifest, the errors and the report do not contain it."""
    key = "a key of enough letters"
    chat = [{"role": "user", "content": f"Shelf {n} holds box {n * 7}. " * 30} for n in range(9)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for _ in range(4)))
    seen: list[str] = []

    def look(progress: object) -> None:
        seen.extend(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())

    settings: dict[str, Any] = {"strategy": Summarization(keep=last(groups=2)), "budget": None, "keys": [key]}
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **settings, workers=workers, slice_bytes=1, on_progress=look)
    rows = [json.loads(line)["messages"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (len(rows), report.workers) == (4, workers)
    for row in rows:
        assert re.match(r"\[compaction [0-9a-f]{16} by Summarization round 1\]\n", row[0]["content"])
    assert key not in repr(report) + "".join(seen)
    assert any("signed" in text for text in seen)
