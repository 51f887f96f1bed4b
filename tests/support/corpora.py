"""Files of conversations for the tests of batches: writes and reads them in each file format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from compaction import compact_sync, presets
from compaction.batch import BatchReport, Job, compact_files
from tests.support.chats import tool_turns, turns

KINDS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
SMALL = 4_000  # bytes of a slice: several slices in every file of these tests
BAD = [b"{broken\n", b'{"messages": 3}\n', b"[{}]\n", b'"text"\n', b"\xff\xfe\n"]
BUDGET = 300
STRATEGY = presets.token_budget(BUDGET)
CHATS: list[dict[str, Any]] = [
    {"id": f"chat-{number}", "messages": tool_turns(number % 7) + turns(2 + number % 3), "score": number / 4, "note": None}
    for number in range(20)
]
"""Return conversations, some within the budget and some larger."""


@cache
def expected() -> list[list[Any]]:
    """Return each conversation as the strategy compacts it."""
    return [compact_sync(chat["messages"], STRATEGY, counter="chars/4", budget=BUDGET).messages for chat in CHATS]


def lines(chats: Iterable[dict[str, Any]] = CHATS) -> bytes:
    """Return the conversations as JSON lines."""
    return b"".join(json.dumps(chat).encode() + b"\n" for chat in chats)


def store(path: Path, kind: str, chats: list[dict[str, Any]] = CHATS, *, nested: bool = False) -> Path:
    """Write the conversations to a file of that kind."""
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = chats if nested else [{**chat, "messages": json.dumps(chat["messages"])} for chat in chats]
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=6)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines(chats)))
    elif kind == "jsonl.zst":
        import pyarrow as pa

        text = lines(chats)
        frames = [pa.Codec("zstd").compress(part, asbytes=True) for part in (text[:1_000], text[1_000:])]
        path.write_bytes(b"".join(frames))
    else:
        path.write_bytes(lines(chats))
    return path


def read_rows(path: Path, kind: str) -> list[dict[str, Any]]:
    """Return the conversations in a file of that kind, with their messages as JSON values."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
        return [{**row, "messages": json.loads(row["messages"])} for row in rows]
    if kind == "jsonl.zst":
        import pyarrow as pa

        with pa.input_stream(str(path), compression="zstd") as stream:
            text = stream.read()
    else:
        text = gzip.decompress(path.read_bytes()) if kind == "jsonl.gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def run(inputs: Any, output: Path, **options: Any) -> BatchReport:
    """Run a batch in this process, in small slices."""
    job: Any = {"strategy": STRATEGY, "counter": "chars/4", "budget": BUDGET}
    job |= {field.name: options.pop(field.name) for field in attrs.fields(Job) if field.name in options}
    return compact_files(inputs, output, Job(**job), **{"workers": 1, "slice_bytes": SMALL, **options})


def errors_of(report: BatchReport) -> list[dict[str, Any]]:
    """Return the entries of a batch's file of bad conversations."""
    assert report.errors is not None
    return [json.loads(line) for line in Path(report.errors).read_text("utf-8").splitlines()]
