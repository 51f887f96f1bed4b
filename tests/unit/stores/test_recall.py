"""The agent's tools: what they return, how much of it, and that a wrong call gets an answer instead of an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.errors import InputError, StateError
from compaction.stores import NotStored, SQLiteStore, StoredRecord
from compaction.stores.recall import (
    TOOLS,
    compaction_describe,
    compaction_expand,
    compaction_grep,
    handle_tool_call,
    tool_schemas,
)


def note(text: str, **about: Any) -> StoredRecord:
    return StoredRecord.of_message({"role": "user", "content": text}, role="user", text=text, salt="s", **about)


def answered(store: SQLiteStore, name: str, arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(handle_tool_call(name, arguments, store=store, session="s"))
    return answer


def test_grep_shows_the_lines_that_match(store: SQLiteStore) -> None:
    """Each result of ``compaction_grep`` has the id of its message and the matching lines, numbered, with their neighbours."""
    text = "\n".join(f"line {n}" for n in range(1, 9)) + "\nthe needle\nafter"
    store.put("s", [note(text), note("nothing")])
    [result] = compaction_grep(store, "s", "needle", context=1)["results"]
    assert result["id"] == note(text).id
    assert result["lines"] == ["8: line 8", "9: the needle", "10: after"]


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("tea", "please make Tea now"),
        ("cafe", "the Caf\u00e9 is open"),
        ("caf\u00e9", "the cafe\u0301 is open"),
        ('"red green"', "red, green"),
        ("find_me", "find me"),
    ],
)
def test_grep_shows_the_line_that_matches_as_the_search_does(store: SQLiteStore, query: str, line: str) -> None:
    """Words match whole, without regard to accents; quoted words match with signs between them."""
    store.put("s", [note(f"steady work\ninstead of that\nthe teapot, red and green\n{line}")])
    [result] = compaction_grep(store, "s", query, context=0)["results"]
    assert result["lines"] == [f"4: {line}"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("needle " + "h" * 233, "needle " + "h" * 233),
        ("needle " + "h" * 234, "needle " + "h" * 233 + "..."),
        ("h" * 299 + " NEEDLE " + "t" * 300, "..." + "h" * 59 + " NEEDLE " + "t" * 173 + "..."),
        ("h" * 60 + " needle " + "t" * 300, "..." + "h" * 59 + " needle " + "t" * 173 + "..."),
        ("h" * 59 + " needle " + "t" * 300, "h" * 59 + " needle " + "t" * 173 + "..."),
        ("needle " + "h" * 300 + " straw", "needle " + "h" * 233 + "..."),
        ("h" * 299 + " needle", "..." + "h" * 59 + " needle"),
        ("ß" * 299 + " NEEDLE " + "t" * 300, "..." + "ß" * 59 + " NEEDLE " + "t" * 173 + "..."),
    ],
    ids=[
        "short enough",
        "too long",
        "in the middle",
        "cut before",
        "from the start",
        "the first of two",
        "at the end",
        "longer folded",
    ],
)
def test_a_long_line_is_cut_around_the_word(store: SQLiteStore, line: str, shown: str) -> None:
    """A matching line of more than 240 characters is cut around the first matching word, with dots at the cuts."""
    store.put("s", [note(f"straw\n{line}"), *map(note, "abcdefghij")])
    query = '"needle" straw' if "straw" in line else "needle"
    [result] = compaction_grep(store, "s", query, context=0)["results"]
    assert result["lines"][-1] == f"2: {shown}"
    assert result["score"] == round(store.search("s", query, limit=1).hits[0].score, 3)


def test_grep_is_bounded(store: SQLiteStore) -> None:
    """Long lines are cut, few lines of a message are shown, and results beyond the size limit are left out with a note."""
    store.put("s", [note(f"{n} " + "hay " * 3_000 + "needle " + "hay " * 3_000) for n in range(30)])
    store.put("s", [note("needle\n" * 500 + str(n)) for n in range(30)])
    answer = compaction_grep(store, "s", "needle", limit=50, context=5)
    assert len(answer["results"]) == 50
    assert len(json.dumps(answer)) < 40_000
    assert all("needle" in line for result in answer["results"] for line in result["lines"] if "hay" in line)
    store.put("s", [note(f"{n}\n" + ("pin " * 60 + "\n") * 9) for n in range(60)])
    capped = compaction_grep(store, "s", "pin", limit=50, context=5)
    assert (capped["matches"], len(capped["results"])) == (60, 8)
    assert capped["note"] == "only 8 of 50 results fit; narrow the query"


@pytest.mark.slow
def test_grep_says_when_it_ranks_the_newest_only(store: SQLiteStore) -> None:
    store.put("s", [note(f"tea {n}") for n in range(20_001)])
    assert "newest 20,000" in compaction_grep(store, "s", "tea")["ranked"]
    assert "ranked" not in compaction_grep(store, "s", "tea 7")


@pytest.mark.parametrize("limit", [1, 7, 64, 100_000])
def test_pages_join_to_the_whole(store: SQLiteStore, limit: int) -> None:
    """The pages of ``compaction_expand`` join to the whole text, and the last page has no ``next_offset``."""
    notes = [note(f"message {n}") for n in range(9)]
    summary = StoredRecord.of_summary([each.id for each in notes], salt="s")
    store.put("s", [*notes, summary])
    whole, offset, page = "", 0, dict[str, Any]()
    while offset is not None:
        page = compaction_expand(store, "s", summary.id, offset=offset, limit=limit, form="json")
        assert len(page["content"]) <= limit
        whole, offset = whole + page["content"], page.get("next_offset")
    assert whole == "\n".join(each.data for each in notes)
    assert compaction_expand(store, "s", summary.id, offset=1 << 40)["content"] == ""


def test_expand_follows_summaries(store: SQLiteStore) -> None:
    """Expanding a summary of summaries returns all messages in order, each after a line with its id.

    A cycle ends, and unknown ids are listed as missing.
    """
    a, b, c = note("a"), note("b"), note("c")
    inner = StoredRecord.of_summary([a.id, b.id, "00000000", "ffffffff"], salt="s", id="00000000")
    outer = StoredRecord.of_summary([inner.id, c.id], salt="s")
    store.put("s", [a, b, c, inner, outer])
    answer = compaction_expand(store, "s", outer.id)
    assert answer["content"] == f"[{a.id} user]\na\n[{b.id} user]\nb\n[{c.id} user]\nc"
    assert answer["missing"] == ["ffffffff"]


def test_expand_gives_a_range(store: SQLiteStore) -> None:
    """A range from one id to another returns the messages as stored, both included; a reversed range raises an `InputError`."""
    notes = [note(f"message {n}") for n in range(200)]
    store.put("s", notes)
    answer = compaction_expand(store, "s", notes[20].id, to=notes[150].id, limit=100_000, form="json")
    assert answer["content"].split("\n") == [each.data for each in notes[20:151]]
    assert "next_offset" not in answer
    later = note("after a summary")
    store.put("s", [StoredRecord.of_summary(["x"], salt="s"), later])
    answer = compaction_expand(store, "s", notes[190].id, to=later.id, limit=100_000, form="json")
    assert answer["content"].split("\n") == [each.data for each in [*notes[190:], later]]
    assert compaction_expand(store, "s", notes[3].id, to=notes[3].id, form="json")["content"] == notes[3].data
    with pytest.raises(InputError, match="stored after"):
        compaction_expand(store, "s", notes[9].id, to=notes[8].id)


def test_describe_says_what_when_why_and_how_large(store: SQLiteStore) -> None:
    """``compaction_describe`` returns the sums of a session, or the facts about one record, without its content."""
    one = note("tea", by="Offload", reason="old", at=7.0, tokens=5)
    store.put("s", [one, StoredRecord.of_summary([one.id], salt="s", by="Offload", reason="old", at=8.0)])
    answer = compaction_describe(store, "s")
    about = {"by": "Offload", "reason": "old", "first_at": 7.0, "last_at": 7.0}
    assert answer["compacted"] == [{**about, "messages": 1, "tokens": 5, "chars": len(one.data)}]
    assert (answer["messages"], answer["tokens"]) == (1, 5)
    [summary] = answer["newest_summaries"]
    assert (summary["stands_for"], summary["first"], summary["at"]) == (1, (one.id,), 8.0)
    alone = compaction_describe(store, "s", id=one.id)
    assert (alone["by"], alone["at"], alone["chars"]) == ("Offload", 7.0, len(one.data))
    assert "content" not in alone


def test_schemas_name_the_tools() -> None:
    schemas = tool_schemas()
    assert [schema["function"]["name"] for schema in schemas] == list(TOOLS)
    for schema in schemas:
        function = schema["function"]
        arguments = set(TOOLS[function["name"]].__kwdefaults__ or ())
        assert arguments | {"query", "id"} >= set(function["parameters"]["properties"]) >= arguments
    schemas[0]["function"]["parameters"].clear()
    assert tool_schemas()[0]["function"]["parameters"]


def test_a_call_is_dispatched(store: SQLiteStore) -> None:
    one = note("tea")
    store.put("s", [one])
    for arguments in ({"id": one.id}, json.dumps({"id": one.id, "to": None, "limit": None})):
        assert answered(store, "compaction_expand", arguments)["content"] == "tea"
    assert answered(store, "compaction_describe", None)["messages"] == 1
    assert answered(store, "compaction_describe", "")["messages"] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("compaction_write", {}, "the tools are"),
        ("compaction_grep", {}, "missing: query"),
        ("compaction_grep", {"query": " "}, "Words that must all occur"),
        ("compaction_grep", {"query": 3}, "must be a text"),
        ("compaction_grep", {"query": "tea", "limit": 51}, "from 1 to 50"),
        ("compaction_grep", {"query": "tea", "limit": True}, "from 1 to 50"),
        ("compaction_grep", {"query": "\ud83d"}, "lone surrogate"),
        ("compaction_expand", "{", "not JSON"),
        ("compaction_expand", "[" * 100_000, "not JSON"),
        ("compaction_expand", [1], "must be an object"),
        ("compaction_expand", {"id": None}, "The id in a stub"),
        ("compaction_expand", {"id": "x", "session": "t"}, "unknown: session"),
        ("compaction_expand", {"id": "x", "offset": -1}, "offset=-1"),
        ("compaction_expand", {"id": "x", "form": "xml"}, "must be text or json"),
        ("compaction_expand", {"id": "ffffffffffffffff"}, "is not stored"),
        ("compaction_expand", {"id": "\x00' OR 1=1"}, "is not stored"),
        ("compaction_describe", {"id": 3}, "One message"),
    ],
)
def test_a_wrong_call_is_answered(store: SQLiteStore, name: str, arguments: Any, says: str) -> None:
    answer = answered(store, name, arguments)
    assert list(answer) == ["error"]
    assert says in answer["error"]


@pytest.mark.parametrize(
    ("name", "key", "given"),
    [("compaction_expand", "id", {}), ("compaction_expand", "to", {"form": "json"}), ("compaction_describe", "id", {})],
)
def test_another_sessions_id_is_answered_like_an_unknown_one(
    store: SQLiteStore, name: str, key: str, given: dict[str, Any]
) -> None:
    """An id of another session gets the same error as an unknown id, so that a model cannot learn what is stored there."""
    other, mine = note("secret"), note("mine")
    store.put("t", [other])
    store.put("s", [mine])
    known, unknown = (answered(store, name, {"id": mine.id, **given, key: id}) for id in (other.id, "0" * 16))
    assert known["error"].replace(other.id, "0" * 16) == unknown["error"]
    assert "is not stored in session 's'" in unknown["error"]
    with pytest.raises(NotStored):
        compaction_expand(store, "s", other.id)


def test_expand_follows_placeholders(store: SQLiteStore) -> None:
    one = note("tea")
    stub = StoredRecord.of_placeholder({"role": "user", "content": "a stub"}, [one.id], role="user", salt="s")
    whole = StoredRecord.of_summary([stub.id], salt="s")
    store.put("s", [one, stub, whole])
    assert compaction_expand(store, "s", whole.id, form="json")["content"] == one.data
    assert compaction_describe(store, "s")["messages"] == 1
    about = compaction_describe(store, "s", id=stub.id)
    assert (about["kind"], about["stands_for"], about["first"]) == ("placeholder", 1, (one.id,))
    assert [each["id"] for each in compaction_describe(store, "s")["newest_summaries"]] == [whole.id]


def test_a_broken_store_is_answered(store: SQLiteStore) -> None:
    one = note("tea")
    store.put("s", [one, StoredRecord.of_summary([one.id], salt="s", id="12345678")])
    store.path.write_bytes(b"no database at all, but long enough to be read as one " * 100)
    with pytest.raises(StateError):
        compaction_expand(store, "s", "12345678")
    assert "not a database" in answered(store, "compaction_grep", {"query": "tea"})["error"]
