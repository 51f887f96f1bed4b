"""The SQLite store: storing, searching and forgetting records; a damaged or locked file raises an error and loses nothing."""

from __future__ import annotations

import contextlib
import json
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.errors import ConfigurationError, StateError
from compaction.stores import ForgettingStore, NotStored, SessionStore, SQLiteStore, Store, StoredRecord
from compaction.stores.base import RANKED
from compaction.stores.database import DatabaseFile
from compaction.summarizers import redact

ROOT = Path(__file__).parents[3]


def note(text: str, **about: Any) -> StoredRecord:
    return StoredRecord.of_message({"role": "user", "content": text}, role="user", text=text, salt="s", **about)


def found(store: SQLiteStore, query: str, session: str = "s") -> list[str]:
    """The texts that a search finds, best first."""
    return [hit.record.text for hit in store.search(session, query, limit=50).hits]


def test_what_is_put_is_read_back(store: SQLiteStore) -> None:
    one = note("tea", by="Offload", reason="old", at=12.5, tokens=3)
    summary = StoredRecord.of_summary([one.id, "0000000000000000"], salt="s", by="Offload", at=13.0)
    store.put("s", [one, summary])
    assert store.get("s", [summary.id, one.id]) == [attrs.evolve(summary, position=2), attrs.evolve(one, position=1)]
    assert isinstance(store, Store)


def test_the_same_message_is_stored_once(store: SQLiteStore) -> None:
    store.put("s", [note("tea", by="A"), note("milk", by="A")])
    before = store.describe("s")
    store.put("s", [note("milk", by="B"), note("tea", by="A")])
    assert store.describe("s") == before
    assert [record.text for record in store.range("s", 1, 9)] == ["tea", "milk"]


def test_a_summary_gains_children(store: SQLiteStore) -> None:
    """A summary stored again under its id has the children of both, in order and without repetition."""
    store.put("s", [StoredRecord.of_summary(["a", "b"], salt="s", id="12345678")])
    store.put("s", [StoredRecord.of_summary(["b", "c", "c"], salt="s", id="12345678")])
    assert store.get("s", ["12345678"])[0].children == ("a", "b", "c")


def test_ids_are_salted() -> None:
    said = {"role": "user", "content": "tea"}
    one, same, other = (
        StoredRecord.of_message(said, role="user", text="tea", salt=salt, by=by)
        for salt, by in (("kim-17", "A"), ("kim-17", "B"), ("kim-18", "A"))
    )
    assert one.id == same.id != other.id
    links = [StoredRecord.of_summary([one.id], salt=salt).id for salt in ("kim-17", "kim-18", "\ud83d")]
    assert len({one.id, other.id, *links}) == 5


@pytest.mark.parametrize("first", ["message", "placeholder"])
def test_a_placeholder_and_the_same_message_are_one_record(store: SQLiteStore, first: str) -> None:
    """If an edit's placeholder and a message have equal content, the record keeps the kind it was first stored with.

    Another content with the same id raises a `StateError`.
    """
    said = {"role": "user", "content": "a stub"}
    message = StoredRecord.of_message(said, role="user", text="a stub", salt="s")
    placeholder = StoredRecord.of_placeholder(said, ["a"], role="user", salt="s", by="Offload")
    records = [message, placeholder] if first == "message" else [placeholder, message]
    store.put("s", records[:1])
    store.put("s", [*records, StoredRecord.of_placeholder(said, ["b"], role="user", salt="s")])
    assert store.get("s", [message.id]) == [attrs.evolve(records[0], position=1)]
    assert found(store, "stub") == (["a stub"] if first == "message" else [])
    assert placeholder.text == ""
    other = attrs.evolve(placeholder, data='{"role": "user", "content": "milk"}')
    for record in (other, StoredRecord.of_summary(["a"], salt="s", id=message.id)):
        with pytest.raises(StateError, match="belongs to another message"):
            store.put("s", [record])


@given(
    wire=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False)
            | st.text(st.characters(exclude_categories=[])),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=4,
    )
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_comes_back_byte_for_byte(store: SQLiteStore, wire: dict[str, Any]) -> None:
    """Whatever the message, its JSON reads back to the same text: keys in their order, halves of a sign and all."""
    record = StoredRecord.of_message(wire, role="user", text=json.dumps(wire), salt="s")
    store.put("s", [record])
    [back] = store.get("s", [record.id])
    assert json.dumps(json.loads(back.data)) == json.dumps(wire)


def test_what_is_no_json_is_refused() -> None:
    for wire in ({"content": b"bytes"}, {"content": {1, 2}}):
        with pytest.raises(StateError, match="cannot be stored as JSON"):
            StoredRecord.of_message(wire, role="user", text="", salt="s")


def test_a_session_reads_its_own(store: SQLiteStore) -> None:
    mine, other = note("my tea"), note("other tea")
    store.put("s", [mine])
    store.put("t", [other])
    with pytest.raises(NotStored, match="is not stored in session 's'"):
        store.get("s", [mine.id, other.id])
    with pytest.raises(NotStored, match="is not stored in session 's'"):
        store.get("s", ["ffffffffffffffff"])
    assert found(store, "tea") == ["my tea"]
    assert [record.text for record in store.range("s", 0, 9)] == ["my tea"]
    assert sum(tally.messages for tally in store.describe("s").tallies) == 1
    assert store.describe("nobody").tallies == ()
    assert store.range("nobody", 1, 9) == []


def test_a_range_is_bounded(store: SQLiteStore) -> None:
    """A range starts at a position, has at most the requested number of messages, and omits summaries."""
    store.put("s", [note("a"), StoredRecord.of_summary(["x"], salt="s"), note("b"), note("c")])
    assert [record.text for record in store.range("s", 2, 1)] == ["b"]
    assert [record.text for record in store.range("s", 2, 9)] == ["b", "c"]
    assert store.range("s", 1 << 60, 9) == []


def test_describe_sums_by_strategy_and_reason(store: SQLiteStore) -> None:
    store.put("s", [note("a", by="A", reason="old", at=1.0, tokens=3), note("bb", by="A", reason="old", at=5.0, tokens=4)])
    store.put("s", [note("c", by="B", reason="large")])
    described = {(tally.by, tally.reason): tally for tally in store.describe("s").tallies}
    old = described["A", "old"]
    assert (old.messages, old.tokens, old.first_at, old.last_at) == (2, 7, 1.0, 5.0)
    assert described["B", "large"].first_at is None


def test_search_finds_all_words_best_first(store: SQLiteStore) -> None:
    """A search finds messages with all words, regardless of case, and quoted words only together.

    Messages with more matches in less text come first.
    """
    store.put("s", [note("green tea and " + "milk " * 30), note("tea tea TEA"), note("green milk"), note("tea that is green")])
    assert found(store, "tea")[0] == "tea tea TEA"
    assert sorted(found(store, "green TEA")) == ["green tea and " + "milk " * 30, "tea that is green"]
    assert found(store, '"green tea"') == ["green tea and " + "milk " * 30]
    assert found(store, "handle_tea") == []


@given(query=st.text(st.characters(exclude_categories=[]), max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_query(store: SQLiteStore, query: str) -> None:
    assert store.search("s", query, limit=1).capped is False
    store.put("t", [note("tea")])
    assert len(store.search("t", query, limit=1).hits) <= 1


def test_names_of_sessions_and_ids_are_values(store: SQLiteStore) -> None:
    for session in ("'; DROP TABLE records; --", "a\x00b", "\ud83d", ""):
        store.put(session, [note("tea")])
        assert found(store, "tea", session) == ["tea"]
        with pytest.raises(NotStored):
            store.get(session, ["' OR 1=1 --"])


@pytest.mark.slow
def test_the_newest_20000_matches_are_ranked(store: SQLiteStore) -> None:
    store.put("s", [note("tea tea tea, the oldest"), *(note(f"tea {n}") for n in range(RANKED - 1))])
    whole = store.search("s", "tea", limit=1)
    assert (whole.matches, whole.capped, whole.hits[0].record.position) == (RANKED, False, 1)
    store.put("s", [note("tea, the newest of all")])
    capped = store.search("s", "tea", limit=50)
    assert (capped.matches, capped.capped) == (RANKED, True)
    assert "tea tea tea, the oldest" not in [hit.record.text for hit in capped.hits]


def test_the_file_is_its_owners(store: SQLiteStore) -> None:
    """Only its owner can read the file, the file uses a write-ahead log, and the store can be pickled."""
    assert store.path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(store.path) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()
    assert pickle.loads(pickle.dumps(store)) == store == SQLiteStore(store.path)
    with pytest.raises(ConfigurationError):
        SQLiteStore(store.path, timeout_seconds=0)


def test_a_locked_file_is_an_error_and_stays_whole(store: SQLiteStore) -> None:
    """While another process writes, reading works and storing raises a `StateError` after the timeout; later it works again."""
    store.put("s", [note("tea")])
    impatient = SQLiteStore(store.path, timeout_seconds=0.05)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateError, match="locked; another process"):
        impatient.put("s", [note("milk")])
    assert found(impatient, "tea") == ["tea"]
    other.rollback()
    other.close()
    impatient.put("s", [note("milk")])
    assert found(store, "milk") == ["milk"]


def test_a_read_only_file_is_an_error(store: SQLiteStore) -> None:
    store.put("s", [note("tea")])
    header = bytearray(store.path.read_bytes())
    header[18] = 9  # a newer write version: SQLite then opens the file read-only, whoever runs the test
    store.path.write_bytes(bytes(header))
    with pytest.raises(StateError, match="readonly"):
        store.put("s", [note("milk")])


FULL = """
import resource, sys
from compaction.errors import StateError
from compaction.stores import StoredRecord, SQLiteStore
store = SQLiteStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
kept = 0
try:
    for n in range(100_000):
        text = f"note {n} " * 500
        store.put("s", [StoredRecord.of_message({"role": "user", "content": text}, role="user", text=text, salt="s")])
        kept += 1
except StateError as error:
    print(kept, error)
"""


def test_a_full_disk_is_an_error_and_keeps_what_was_stored(store: SQLiteStore) -> None:
    said = subprocess.check_output([sys.executable, "-c", FULL, str(store.path)], cwd=ROOT, text=True)
    kept, _, error = said.partition(" ")
    assert "free some space" in error
    assert len(store.range("s", 1, 100_000)) == int(kept) > 0


def test_a_corrupt_file_is_an_error(store: SQLiteStore, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("these are not the bytes of a database, but words " * 100)
    with pytest.raises(StateError, match="not a database"):
        SQLiteStore(tmp_path / "text")
    store.put("s", [note(f"tea {n}") for n in range(500)])
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(StateError, match="damaged"):
        store.put("s", [note("milk")])
    with pytest.raises(StateError, match="damaged"):
        store.search("s", "tea", limit=1)
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    SQLiteStore(tmp_path / "messages.db")
    for kind, name in ((SQLiteStore, "other.db"), (SessionStore, "messages.db")):
        with pytest.raises(StateError, match="not a store of this package"):
            kind(tmp_path / name)


@pytest.mark.parametrize(
    ("kind", "version", "rule"),
    [
        (SQLiteStore, 99, "schema 99 is newer"),
        (SQLiteStore, 1, "schema 1 is older than 2, .*name another file"),
        (SessionStore, 99, "schema 99 is newer"),
    ],
)
def test_a_file_of_another_release_is_an_error(tmp_path: Path, kind: Callable[[Path], Any], version: int, rule: str) -> None:
    path = tmp_path / "store.db"
    kind(path)
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version={version}")
    before = path.read_bytes()
    with pytest.raises(StateError, match=rule):
        kind(path)
    assert path.read_bytes() == before
    database.close()


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere" / "store.db", tmp_path):
        with pytest.raises(StateError):
            SQLiteStore(path)


WRITER = """
import sys
from compaction.stores import StoredRecord, SQLiteStore
store = SQLiteStore(sys.argv[1], timeout_seconds=60)
for n in range(60):
    text = f"{sys.argv[2]} says {n}"
    shared = f"both say {n}"
    store.put("s", [StoredRecord.of_message({"content": each}, role="user", text=each, salt="s") for each in (text, shared)])
"""


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    commands = [[sys.executable, "-c", WRITER, str(path), name] for name in ("ann", "bob")]
    writers = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for command in commands]
    errors = [writer.communicate()[1] for writer in writers]
    assert errors == [b"", b""]
    told = [record.text for record in SQLiteStore(path).range("s", 1, 1_000)]
    assert sorted(told) == sorted(f"{who} {n}" for who in ("ann says", "bob says", "both say") for n in range(60))


@pytest.mark.parametrize("data", ["[1]", "{}", "NaN", "[" * 9_999, 7], ids=lambda data: repr(data)[:9])
def test_a_summary_with_damaged_ids_is_refused(store: SQLiteStore, data: object) -> None:
    record = StoredRecord.of_summary(["0" * 16], salt="s")
    store.put("s", [record])
    with sqlite3.connect(store.path) as database:
        database.execute("UPDATE records SET children = ?", (data,))
    database.close()
    with pytest.raises(StateError, match=f"record '{record.id}'"):
        store.get("s", [record.id])
    with pytest.raises(StateError, match=f"record '{record.id}'"):
        store.put("s", [record])


def test_a_forgotten_message_leaves_no_trace(store: SQLiteStore) -> None:
    """Forgetting a message removes its record, the records that refer to it, its words from searches, and its share of sums.

    No file of the store contains its text.
    """
    secret, tea = note("swordfish " * 900, by="A", tokens=9), note("green tea", by="A", tokens=2)
    link = StoredRecord.of_summary([secret.id], salt="s")
    placeholder = StoredRecord.of_placeholder({"content": "swordfish, in short"}, [link.id], role="tool", salt="s")
    outer = StoredRecord.of_summary([tea.id, placeholder.id], salt="t")
    store.put("s", [tea, secret, link, placeholder, outer])
    store.put("other", [tea])
    assert isinstance(store, ForgettingStore)
    store.forget("s", [secret])
    assert [record.id for record in store.range("s", 1, 9)] == [tea.id]
    for gone in (secret, link, placeholder, outer):
        with pytest.raises(NotStored):
            store.get("s", [gone.id])
    assert found(store, "swordfish") == []
    assert found(store, "tea") == found(store, "tea", "other") == ["green tea"]
    [counts] = store.describe("s").tallies
    assert (counts.messages, counts.tokens) == (1, 2)
    for path in store.path.parent.iterdir():
        assert b"swordfish" not in path.read_bytes()


def test_forgetting_in_one_session_leaves_the_others(store: SQLiteStore) -> None:
    """A message is forgotten by its content, regardless of the order of its keys, and only in its session.

    Forgetting it again does nothing, and it can be stored again.
    """
    record = note("tea", by="A")
    store.put("s", [record])
    store.put("other", [record])
    same = StoredRecord.of_message({"content": "tea", "role": "user"}, role="user", text="", salt="another")
    store.forget("s", [same])
    assert store.range("s", 1, 9) == []
    assert store.describe("s").tallies == ()
    assert len(store.range("other", 1, 9)) == 1
    store.forget("s", [same])
    store.forget("nobody", [same])
    store.put("s", [record])
    assert found(store, "tea") == ["tea"]


def test_another_process_reads_while_a_message_is_forgotten(tmp_path: Path) -> None:
    """A `StateError` says to try again, and the next call removes the message, although the other process stays connected.

    The other may read while a message that is not stored is forgotten, which removes nothing.
    """
    store = SQLiteStore(tmp_path / "store.db", timeout_seconds=0.05)
    store.put("s", [note("swordfish " * 900)])
    with contextlib.closing(sqlite3.connect(store.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        store.put("s", [note("trout")])
        store.forget("s", [note("salmon")])
        assert len(store.range("s", 1, 9)) == 2
        with pytest.raises(StateError, match="again"):
            store.forget("s", [note("swordfish " * 900)])
        reader.rollback()
        store.forget("s", [note("swordfish " * 900)])
        assert not any(b"swordfish" in path.read_bytes() for path in tmp_path.iterdir())


def test_a_file_that_is_locked_after_the_deletion(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that the record is gone but not its bytes; the next call removes these."""
    store.put("s", [note("tea hunter22x")])
    other, scrub = sqlite3.connect(store.path, isolation_level=None), DatabaseFile.scrub

    def locked(file: DatabaseFile) -> None:
        other.execute("BEGIN IMMEDIATE")
        scrub(file)

    monkeypatch.setattr(DatabaseFile, "scrub", locked)
    with pytest.raises(StateError, match="its bytes are still in the file; try again"):
        SQLiteStore(store.path, timeout_seconds=0.05).forget("s", [note("tea hunter22x")])
    monkeypatch.undo()
    other.close()
    assert store.range("s", 1, 9) == []
    store.forget("s", [note("tea hunter22x")])
    assert b"hunter22x" not in store.path.read_bytes()


def test_a_store_that_redacts_holds_no_secret_and_forgets_all_the_same(tmp_path: Path) -> None:
    """A secret is in no byte of the file, the ids stay, the message can be found, read and forgotten; by default it is kept."""
    secrets = {"password": "hunter22x", "deep": [{"api_key": "sk-proj-Ab3dEf6hIj9kLm2nOp5q"}]}
    wire = {"role": "user", "content": "log in", "input": secrets}
    record = StoredRecord.of_message(wire, role="user", text="log in with password=hunter22x", salt="s")
    store = SQLiteStore(tmp_path / "redacted.db", redact=redact)
    store.put("s", [record])
    store.put("s", [record])
    assert b"hunter22x" not in (tmp_path / "redacted.db").read_bytes()
    [read] = store.get("s", [record.id])
    assert json.loads(read.data)["input"] == {"password": "[REDACTED:password]", "deep": [{"api_key": "[REDACTED:openai-key]"}]}
    assert found(store, "log") == ["log in with password=[REDACTED:password]"]
    store.forget("s", [record])
    assert found(store, "log") == []
    plain = SQLiteStore(tmp_path / "plain.db")
    plain.put("s", [record])
    assert plain.get("s", [record.id]) == [attrs.evolve(record, position=1)]


def test_redaction_that_begins_later_leaves_what_is_stored(tmp_path: Path) -> None:
    """A stored message does not change, whatever removes secrets now; without ``redact``, the error names it."""
    plain, one, other = SQLiteStore(tmp_path / "store.db"), note("password=hunter22x"), note("password=hunter33x")
    plain.put("s", [one])
    redacting = attrs.evolve(plain, redact=redact)
    redacting.put("s", [one, other])
    assert [record.text for record in plain.range("s", 1, 9)] == [one.text, "password=[REDACTED:password]"]
    with pytest.raises(StateError, match="belongs to another message, or was stored with redact="):
        plain.put("s", [other])
