"""Compact a Daft dataframe: a batch function takes columns as Arrow and returns one.

    python batch_daft.py service_chats.jsonl compacted.parquet

It needs the extra ``batch`` and the package ``daft``. Use a batch function, as here: it compacts many conversations in one
call. For a strategy that asks a summarizer, pass ``limits=``, which holds within one call.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import daft
import pyarrow as pa

from compaction import presets
from compaction.batch import compact_table

STRATEGY = presets.token_budget(600)


@daft.func.batch(return_dtype=daft.DataType.string())
def compacted(messages: daft.Series) -> Any:
    """Compact a column of conversations in JSON text."""
    table = pa.table({"messages": messages.to_arrow()})
    return compact_table(table, STRATEGY).column("messages").combine_chunks()


def main(source: str, target: str) -> None:
    """Compact a file of conversations into a table."""
    rows = [json.loads(line) for line in Path(source).read_text("utf-8").splitlines()]
    chats = daft.from_pydict({"id": [row["id"] for row in rows], "messages": [json.dumps(row["messages"]) for row in rows]})
    done = chats.with_column("messages", compacted(daft.col("messages"))).to_arrow()
    pa.parquet.write_table(done, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
