"""Batches of files: inputs, outputs and reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction import last, presets
from compaction.batch import BatchProgress, Job, estimate
from compaction.errors import ConfigurationError, StateError, UnreadableFile, UnwritableFile
from compaction.stores import SQLiteStore
from compaction.strategies import Lossless, Summarization, Truncation
from tests.support.chats import system, tool_turns, turns, user
from tests.support.corpora import BAD, BUDGET, CHATS, KINDS, STRATEGY, errors_of, expected, lines, read_rows, run, store
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


def test_directories_keep_their_shape(tmp_path: Path) -> None:
    """Each file of a directory becomes one of that name below the output; other files are ignored."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    store(tmp_path / "in" / "a.jsonl", "jsonl")
    store(tmp_path / "in" / "deep" / "b.parquet", "parquet")
    for foreign in ("notes.txt", "_SUCCESS", ".hidden.jsonl"):
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
    run([tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"], tmp_path / "out.jsonl")
    assert [row["id"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == [chat["id"] for chat in CHATS]


@pytest.mark.parametrize("kind", KINDS)
def test_empty_files_stay_empty(kind: str, tmp_path: Path) -> None:
    """A file without conversations becomes one without."""
    source = tmp_path / f"in.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"messages": pa.array([], pa.string())}), source)
    else:
        store(source, kind, [])
    assert run(source, tmp_path / f"out.{kind}").tally.conversations == 0
    assert read_rows(tmp_path / f"out.{kind}", kind) == []


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_tables_keep_their_columns(type_: pa.DataType, tmp_path: Path) -> None:
    """A table keeps its other columns, its types and metadata, and the text of unchanged messages."""
    texts = ['[ {"role": "user",  "content": "caf\\u00e9"} ]', json.dumps(tool_turns(6))]
    table = pa.table(
        {
            "when": pa.array([1, None], pa.timestamp("ms")),
            "chat": pa.array(texts, pa.string()).cast(type_),
            "raw": [b"\xff", b""],
        }
    ).replace_schema_metadata({"made": "here"})
    pq.write_table(table, tmp_path / "in.parquet")
    run(tmp_path / "in.parquet", tmp_path / "out.parquet", column="chat")
    back = pq.read_table(tmp_path / "out.parquet")
    assert back.schema.equals(pq.read_table(tmp_path / "in.parquet").schema, check_metadata=True)
    assert back.drop_columns(["chat"]).equals(table.drop_columns(["chat"]))
    first, second = back.column("chat").to_pylist()
    assert first == texts[0]
    assert json.loads(second) == expected([{"messages": tool_turns(6)}])[0]


def test_nested_messages_stay_nested(tmp_path: Path) -> None:
    """A column of lists of structs stays one; the keys that Arrow fills with nulls are ignored."""
    store(tmp_path / "in.parquet", "parquet", nested=True)
    run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    before, after = pq.read_table(tmp_path / "in.parquet"), pq.read_table(tmp_path / "out.parquet")
    assert after.schema == before.schema
    kept = [[strip(message) for message in messages] for messages in after.column("messages").to_pylist()]
    assert kept == [[strip(message) for message in messages] for messages in expected()]


def strip(value: Any) -> Any:
    """Return the value without keys that are null."""
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


# -------------------------------------------------------------------- bad conversations


def test_bad_conversations_are_put_aside(tmp_path: Path) -> None:
    """A bad conversation is left out, and listed in the errors with file, line, reason and original; the others are written."""
    good = lines().splitlines(keepends=True)
    (tmp_path / "in.jsonl").write_bytes(b"".join(good[:20] + BAD + good[20:] + BAD[:1]))
    report = run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected()
    entries = errors_of(report)
    assert [entry["line"] for entry in entries] == [21, 22, 23, 24, 25, 46]
    assert {entry["file"] for entry in entries} == {str(tmp_path / "in.jsonl")}
    assert [entry["original"] for entry in entries[:2]] == ["{broken", '{"messages": 3}']
    assert "not a list (got int)" in entries[1]["reason"]
    assert "messages[0]" in entries[2]["reason"]
    assert entries[4]["original"] is None
    assert entries[4]["original_base64"] == "//4K"
    assert report.tally.bad == 6
    assert not report.is_well


def test_bad_rows_are_put_aside(tmp_path: Path) -> None:
    """So does a bad row of a table, with all its columns."""
    texts = ["null", json.dumps(turns(2)), "{broken", None]
    pq.write_table(pa.table({"n": [0, 1, 2, 3], "messages": texts}), tmp_path / "in.parquet")
    report = run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert [row["n"] for row in read_rows(tmp_path / "out.parquet", "parquet")] == [1]
    assert [(entry["line"], json.loads(entry["original"])["n"]) for entry in errors_of(report)] == [(1, 0), (3, 2), (4, 3)]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_conversation_that_is_too_long_is_not_read(packed: bool, tmp_path: Path) -> None:
    """A line above the bound is skipped without loading it, and reported with its size; its neighbours are compacted."""
    kind = "jsonl.gz" if packed else "jsonl"
    huge = {"messages": [user("x" * 20_000)]}
    source = store(tmp_path / f"in.{kind}", kind, [CHATS[6], huge, CHATS[5]])
    report = run(source, tmp_path / "out.jsonl", max_bytes=10_000)
    assert [row["id"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == ["chat-6", "chat-5"]
    [entry] = errors_of(report)
    assert (entry["line"], entry["original"], entry["bytes"]) == (2, None, len(json.dumps(huge)) + 1)
    assert "more than the 10,000 that are read" in entry["reason"]


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
    assert run(tmp_path / "size.jsonl", tmp_path / "d.jsonl").tally.over_target == 1


def test_a_strategy_that_raises_spoils_its_conversation_alone(tmp_path: Path) -> None:
    """An exception that a user's strategy raises for one conversation is that conversation's error."""

    def picky(index: Any) -> Any:
        if index.included.messages > 20:
            raise KeyError("too many")
        yield from ()

    report = run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", strategy=picky)
    long = [chat["id"] for chat in CHATS if len(chat["messages"]) > 20]
    assert [json.loads(entry["original"])["id"] for entry in errors_of(report)] == long
    assert {entry["error"] for entry in errors_of(report)} == {"KeyError"}


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
    """An output must not be an input, nor be inside an input directory."""
    store(tmp_path / "in.jsonl", "jsonl")
    for inputs, output in ((tmp_path / "in.jsonl", tmp_path / "in.jsonl"), (tmp_path, tmp_path / "out")):
        with pytest.raises(ConfigurationError, match="must not be an input"):
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


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"slice_bytes": 0}, {"max_errors": -1}, {"to": "csv"}, {"max_bytes": 0}, {"window": 0}], ids=str
)
def test_arguments_out_of_range(options: dict[str, Any], tmp_path: Path) -> None:
    """An argument out of range is refused before anything is written."""
    with pytest.raises(ConfigurationError):
        run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", **options)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_strategy_that_cannot_be_sent(tmp_path: Path) -> None:
    """A strategy that cannot be pickled is an error with a remedy, before any work."""
    with pytest.raises(ConfigurationError, match="define it in a module"):
        run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", strategy=lambda index: iter(()), workers=2)


# -------------------------------------------------------------------- what is said


def test_progress_is_told(tmp_path: Path) -> None:
    """The progress is reported after each slice; at the end it equals the report, which counts bytes and lines."""
    seen: list[BatchProgress] = []
    ticks = iter(range(1_000))
    source = store(tmp_path / "in.jsonl", "jsonl")
    report = run(source, tmp_path / "out.jsonl", on_progress=seen.append, clock=lambda: float(next(ticks)))
    done = [now.bytes_done for now in seen]
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert (done[-1], seen[-1].bytes_total) == (source.stat().st_size, source.stat().st_size)
    tally = report.tally
    assert seen[-1].tally.tokens_after == tally.tokens_after
    assert (tally.lines, tally.bytes_read) == (len(CHATS), source.stat().st_size)
    assert report.outputs == {str(tmp_path / "out.jsonl"): tally.bytes_written}
    assert seen[0].seconds_left is not None
    assert seen[0].seconds_left > 0 == seen[-1].seconds_left


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_of_everything_is_the_truth(kind: str, tmp_path: Path) -> None:
    """An estimate from all conversations equals the counts of the batch; nothing is written."""
    source = store(tmp_path / f"in.{kind}", kind)
    found = estimate([source], Job(STRATEGY, counter="chars/4", budget=BUDGET), sample=10_000)
    assert list(tmp_path.iterdir()) == [source]
    report = run(source, tmp_path / "out.jsonl")
    whole, truth = found.whole, report.tally
    assert (whole.conversations, whole.tokens_before, whole.tokens_after) == (
        truth.conversations,
        truth.tokens_before,
        truth.tokens_after,
    )


def test_an_estimate_counts_what_a_summarizer_would_get(tmp_path: Path) -> None:
    """Each conversation to summarize counts as a request with its tokens; the summarizer is not called."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    strategy = presets.langgraph_summary(max_tokens_before_summary=BUDGET, max_summary_tokens=100)
    found = estimate([source], Job(strategy, counter="chars/4"), sample=10_000)
    assert found.sample.requests >= found.sample.changed > 0
    assert found.sample.completion_tokens == 100 * found.sample.requests
    assert found.sample.prompt_tokens > 1_000 * found.sample.requests


def test_an_estimate_stores_nothing(tmp_path: Path) -> None:
    """An estimate for a strategy that offloads does not write to its store."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    shelf = SQLiteStore(tmp_path / "shelf.db")
    estimate([source], Lossless(Truncation(keep=last(groups=1)), shelf), sample=10_000)
    assert shelf.describe("default").tallies == ()


def test_another_batch_at_work_is_noticed(tmp_path: Path) -> None:
    """A second run of the same batch at the same time is an error and changes nothing."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    refusals: list[str] = []

    def meanwhile(now: BatchProgress) -> None:
        if not refusals:
            with pytest.raises(StateError) as caught:
                run(source, tmp_path / "out.jsonl")
            refusals.append(str(caught.value))

    assert run(source, tmp_path / "out.jsonl", on_progress=meanwhile).outcome == "finished"
    assert "another process is running" in refusals[0]


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
    assert len(rows) == 4
    for row in rows:
        assert re.match(r"\[compaction [0-9a-f]{16} by Summarization round 1\]\n", row[0]["content"])
    assert key not in repr(report) + "".join(seen)
    assert any("signed" in text for text in seen)
