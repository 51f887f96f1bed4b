"""Compact a Hugging Face dataset: ``datasets`` maps Arrow tables, and `compact_table` takes and returns them.

    python batch_datasets.py service_chats.jsonl compacted.parquet

It needs the extra ``batch`` and the package ``datasets``. With ``num_proc=`` each process has its own counter.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import datasets

from compaction import presets
from compaction.batch import compact_table

STRATEGY = presets.token_budget(600)


def compacted(dataset: Any) -> Any:
    """Compact the conversations of a dataset; a bad one stays unchanged, with its error in ``compaction_error``."""
    tables = dataset.with_format("arrow")
    return tables.map(lambda table: compact_table(table, STRATEGY, on_error="mark"), batched=True, batch_size=128).with_format(
        None
    )


def main(source: str, target: str) -> None:
    """Compact a file of conversations into a table."""
    rows = [json.loads(line) for line in Path(source).read_text("utf-8").splitlines()]
    chats = [{"id": row["id"], "messages": json.dumps(row["messages"])} for row in rows]
    compacted(datasets.Dataset.from_list(chats)).to_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
