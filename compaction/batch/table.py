"""`compact_table`: compact the conversations of an Arrow table.

It reads no file, keeps no state and starts no process. So Ray Data, Daft, Hugging Face ``datasets`` and Spark can call it for
each of their batches.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio

from ..errors import ConfigurationError, InputError
from ..index import unawaited
from ..strategies import StrategyLike
from .job import Job
from .rate_limits import Limits, RateLimiter, limiter_for, rate_limited
from .report import BatchCounts
from .rows import BadConversation, MessageColumn, TableChunk, arrow_module, escaped
from .workers import compact_chunk

ERROR_COLUMN = "compaction_error"
"""The column with the reason why a conversation was not compacted."""


def compact_table(
    table: Any,
    job: Job | StrategyLike,
    *,
    on_error: Literal["raise", "mark"] = "raise",
    limits: Limits | None = None,
) -> Any:
    """Compact the conversations of a table.

    Args:
        table: A ``pyarrow.Table``.
        job: The strategy and the settings for each conversation, as for `compact_files`. A strategy that asks a summarizer runs
            in a new event loop.
        on_error: What to do with a bad conversation: ``"raise"``, or ``"mark"`` to keep it unchanged and write the reason to
            the text column ``compaction_error``, which is null for all other rows.
        limits: The limits for requests of this call to the strategy's summarizers.

    Returns:
        A ``pyarrow.Table`` with the same rows in the same order; the other columns are unchanged.

    Raises:
        InputError: If a conversation is bad and ``on_error`` is ``"raise"``; the error names the row.
        ConfigurationError: If there is no such column, or an argument is out of range.

    >>> import pyarrow
    >>> from compaction.strategies import SlidingWindow
    >>> text = '[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]'
    >>> table = pyarrow.table({"id": [7], "messages": [text]})
    >>> compact_table(table, SlidingWindow()).to_pylist()
    [{'id': 7, 'messages': '[{"role": "user", "content": "two"}]'}]
    """
    job = Job.of(job)
    check_on_error(on_error)
    return table_of(job, table, on_error=on_error, limiter=limiter_for(job.strategy, limits))


def check_on_error(on_error: str) -> None:
    """Check the ``on_error`` of `compact_table`."""
    if on_error not in ("raise", "mark"):
        raise ConfigurationError(f"on_error={on_error!r}: raise or mark")


def table_of(
    job: Job, table: Any, *, on_error: Literal["raise", "mark"], limiter: RateLimiter | None, cache: Path | None = None
) -> Any:
    """Compact a table; with a rate limiter, in a new event loop, and ``cache`` keeps each answer of the summarizers."""
    arrow = arrow_module()
    column = MessageColumn.of(table.schema, job.column)
    chunk, counts = TableChunk(table, column, column.rows(table.column(job.column), job.max_bytes)), BatchCounts()
    if limiter is None:
        written = unawaited(compact_chunk(job, chunk, counts))
    else:
        written = anyio.run(partial(compact_chunk, rate_limited(job, limiter, cache), chunk, counts, limiter=limiter))
    bad = {place: each for place, each in enumerate(written) if isinstance(each, BadConversation)}
    if bad and on_error == "raise":
        place, first = next(iter(bad.items()))
        raise InputError(f"row {place}: {first.reason}")
    for place in bad:
        written[place] = chunk.unchanged(place)
    compacted = chunk.table(written)
    if on_error == "raise":
        return compacted
    compacted = compacted.select([name for name in compacted.column_names if name != ERROR_COLUMN])  # of an earlier call
    reasons = [escaped(bad[place].reason) if place in bad else None for place in range(len(written))]
    return compacted.append_column(ERROR_COLUMN, arrow.array(reasons, arrow.string()))
