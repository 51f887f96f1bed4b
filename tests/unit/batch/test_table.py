"""An Arrow table of conversations in, a table out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compaction import last
from compaction.batch import Job, compact_table
from compaction.errors import ConfigurationError, InputError
from compaction.strategies import Summarization
from compaction.triggers import messages_exceed
from tests.support.chats import turns, user
from tests.support.corpora import BUDGET, CHATS, STRATEGY, expected
from tests.support.scripted import Awaited

JOB = Job(STRATEGY, counter="chars/4", budget=BUDGET)


def table_of(messages: list[Any], **columns: list[Any]) -> pa.Table:
    """Conversations as JSON text, beside other columns."""
    texts = [None if each is None else json.dumps(each) for each in messages]
    return pa.table({**columns, "messages": pa.array(texts, pa.string())})


@pytest.mark.parametrize("chunks", [1, 5])
def test_it_is_what_each_conversation_compacts_to(chunks: int) -> None:
    """The messages are compacted row for row, in however many chunks they come; the other columns and all types stay."""
    table = table_of([chat["messages"] for chat in CHATS], id=[chat["id"] for chat in CHATS])
    rows = len(CHATS) // chunks
    made = compact_table(pa.concat_tables(table.slice(at, rows) for at in range(0, len(CHATS), rows)), JOB)
    assert [json.loads(text) for text in made.column("messages").to_pylist()] == expected()
    assert made.schema == table.schema
    assert made.column("id").to_pylist() == table.column("id").to_pylist()
    assert table.column("messages").to_pylist()[6] == json.dumps(CHATS[6]["messages"])


def test_bad_rows_are_raised_or_marked() -> None:
    """By default the first bad row raises an error; marked, it is unchanged beside its reason, with lone surrogates escaped."""
    table = table_of([turns(2), "text", None, turns(1)])
    with pytest.raises(InputError, match="row 1: it is not a conversation"):
        compact_table(table, JOB)
    marked = compact_table(table, JOB, on_error="mark")
    assert marked.drop_columns(["compaction_error"]).equals(table)
    reasons = marked.column("compaction_error").to_pylist()
    assert [reason is None for reason in reasons] == [True, False, False, True]
    assert compact_table(marked, JOB, on_error="mark").equals(marked)

    def fails(index: Any) -> Any:
        raise ValueError("\ud800")

    marked = compact_table(table_of([turns(1)]), fails, on_error="mark")
    assert marked.column("compaction_error").to_pylist() == ["ValueError: \\ud800"]
    table = table_of([], id=[])
    assert compact_table(table, JOB).schema == table.schema


def test_a_bad_nested_row_is_marked(tmp_path: Path) -> None:
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    table = pa.table({"messages": pa.array([None, turns(1)], pa.list_(message))})
    marked = compact_table(table, JOB, on_error="mark")
    assert marked.column("messages").equals(table.column("messages"))
    assert marked.column("compaction_error").to_pylist() == ["its messages are null; a conversation is a list", None]


def test_a_strategy_may_await() -> None:
    """A strategy with a summarizer runs in a new event loop; the rows keep their order."""
    table = table_of([[user(f"shelf {number}"), *turns(6, words=60)] for number in range(5)])
    awaited = Awaited("## Goal\nThey count.")
    made = compact_table(table, Summarization(awaited, trigger=messages_exceed(6), keep=last(messages=2)))
    assert len(awaited.requests) == 5
    assert all("They count." in text for text in made.column("messages").to_pylist())


@pytest.mark.parametrize("options", [{"column": "talk"}, {"on_error": "skip"}, {"budget": 0}], ids=str)
def test_arguments_that_cannot_be(options: dict[str, Any]) -> None:
    on_error = options.pop("on_error", "raise")
    with pytest.raises(ConfigurationError):
        compact_table(table_of([turns(1)]), Job(STRATEGY, **options), on_error=on_error)
