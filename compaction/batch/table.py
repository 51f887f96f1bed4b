"""`compact_table`: compact the conversations of an Arrow table.

It reads no file, keeps no state and starts no process. So Ray Data, Daft, Hugging Face ``datasets`` and Spark can call it for
each of their batches.
"""

from __future__ import annotations

from typing import Any, Literal

import anyio
import attrs

from ..errors import ConfigurationError, InputError
from ..strategies import StrategyLike
from .arrow_columns import MessageColumn, arrow_module
from .async_worker import compact_chunk_async
from .chunks import TableChunk
from .job import BadConversation, Job, compact_row
from .rate_limits import Limits, RateLimiter, rate_limited
from .report import BatchCounts
from .strategy_summarizers import find_summarizers

ERROR_COLUMN = "compaction_error"
"""The column with the reason why a conversation was not compacted."""


def compact_table(
    table: Any,
    strategy: StrategyLike,
    *,
    column: str = "messages",
    on_error: Literal["raise", "mark"] = "raise",
    limits: Limits | None = None,
    **options: Any,
) -> Any:
    """Compact the conversations of a table.

    Args:
        table: A ``pyarrow.Table``.
        strategy: The strategy that compacts each conversation. If it asks a summarizer, it runs in a new event loop.
        column: The column with the messages: JSON text, or lists of structs.
        on_error: What to do with a bad conversation: ``"raise"``, or ``"mark"`` to keep it unchanged and write the reason to
            the text column ``compaction_error``, which is null for all other rows.
        limits: The limits for requests of this call to the strategy's summarizers.
        options: Further arguments of `Job`: ``counter``, ``format``, ``budget``, ``window``, ``strict``.

    Returns:
        A ``pyarrow.Table`` with the same rows in the same order; the other columns are unchanged.

    Raises:
        InputError: If a conversation is bad and ``on_error`` is ``"raise"``; the error names the row.
        ConfigurationError: If there is no such column, or an argument is out of range.

    >>> import pyarrow
    >>> from compaction.strategies import SlidingWindow
    >>> text = '[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]'
    >>> table = pyarrow.table({"id": [7], "messages": [text]})
    >>> compact_table(table, SlidingWindow(), counter="chars/4").to_pylist()
    [{'id': 7, 'messages': '[{"role": "user", "content": "two"}]'}]
    """
    job = Job.of(strategy, column=column, **options)
    if on_error not in ("raise", "mark"):
        raise ConfigurationError(f"on_error={on_error!r}: raise or mark")
    rate_limiter = RateLimiter(limits or Limits()) if find_summarizers(job.strategy) else None
    if rate_limiter is not None:
        job = attrs.evolve(job, strategy=rate_limited(job.strategy, rate_limiter))
    return table_of(job, table, on_error=on_error, rate_limiter=rate_limiter)


def table_of(job: Job, table: Any, *, on_error: Literal["raise", "mark"], rate_limiter: RateLimiter | None) -> Any:
    """Compact a table; with a rate limiter, in a new event loop."""
    arrow = arrow_module()
    column = MessageColumn.of(table.schema, job.column)
    chunk = TableChunk(table, column, column.rows(table.column(job.column)))
    counts = BatchCounts()
    if rate_limiter is None:
        written = [compact_row(job, row, counts) for row in chunk.rows]
    else:
        written = anyio.run(_compact_limited_chunk, job, chunk, counts, rate_limiter.limits.concurrency)
    bad = {place: each for place, each in enumerate(written) if isinstance(each, BadConversation)}
    if bad and on_error == "raise":
        place, first = next(iter(bad.items()))
        raise InputError(f"row {place}: {first.reason}")
    for place in bad:
        written[place] = chunk.unchanged(place)
    compacted = chunk.table(written)
    if on_error == "raise":
        return compacted
    reasons = [bad[place].reason if place in bad else None for place in range(len(written))]
    return compacted.append_column(ERROR_COLUMN, arrow.array(reasons, arrow.string()))


async def _compact_limited_chunk(job: Job, chunk: TableChunk, counts: BatchCounts, concurrency: int) -> list[Any]:
    return await compact_chunk_async(job, chunk, counts, anyio.CapacityLimiter(concurrency))
