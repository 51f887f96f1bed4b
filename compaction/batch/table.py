"""An Arrow table of conversations in, the same table with its messages compacted out: what any engine of tables can map.

It reads no file, keeps no state and starts no process, so Ray Data, Daft, Hugging Face ``datasets``, Spark and others can
call it on each batch of theirs.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import anyio
import attrs

from ..errors import ConfigurationError, InputError
from ..strategies import StrategyLike
from .chunks import Rows
from .columns import Column, arrow_module
from .job import Bad, Job, handle
from .limits import Gate, LimitedSummarizer, Limits, summarizers_in, with_summarizers
from .tally import Tally
from .working import handled_async

__all__ = ["ERROR_COLUMN", "compact_table", "table_of"]

ERROR_COLUMN = "compaction_error"
"""The column that says why a conversation stayed as it was."""


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
        strategy: What compacts each conversation. One that awaits is run in an event loop of its own.
        column: The column that holds the messages: JSON text, or lists of structs.
        on_error: What a bad conversation does: ``"raise"``, or ``"mark"``: it stays as it is, and a text column
            ``compaction_error`` says why; of the others that is null.
        limits: What may be asked of the strategy's summarizers, by this call.
        options: Further arguments of `Job`: ``counter``, ``format``, ``budget``, ``window``, ``strict``.

    Returns:
        A ``pyarrow.Table`` of as many rows in the same order; the other columns are the same.

    Raises:
        InputError: If a conversation is bad, and is not to be marked; it names the row.
        ConfigurationError: If there is no such column, or an argument is out of range.

    >>> import pyarrow
    >>> from compaction.strategies import SlidingWindow
    >>> said = '[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]'
    >>> table = pyarrow.table({"id": [7], "messages": [said]})
    >>> compact_table(table, SlidingWindow(), counter="chars/4").to_pylist()
    [{'id': 7, 'messages': '[{"role": "user", "content": "two"}]'}]
    """
    job = Job.of(strategy, column=column, **options)
    if on_error not in ("raise", "mark"):
        raise ConfigurationError(f"on_error={on_error!r}: raise or mark")
    gate = Gate(limits or Limits()) if summarizers_in(job.strategy) else None
    if gate is not None:
        job = attrs.evolve(job, strategy=with_summarizers(job.strategy, partial(LimitedSummarizer, gate=gate)))
    return table_of(job, table, on_error=on_error, gate=gate)


def table_of(job: Job, table: Any, *, on_error: Literal["raise", "mark"], gate: Gate | None) -> Any:
    """`compact_table` for a job that stands; a gate says that its strategy awaits."""
    arrow = arrow_module()
    found = Column.of(table.schema, job.column)
    rows = Rows(table, found, found.rows(table.column(job.column)))
    tally = Tally()
    written = [handle(job, row, tally) for row in rows.rows] if gate is None else anyio.run(_in_loop, job, rows, tally, gate)
    bad = {place: each for place, each in enumerate(written) if isinstance(each, Bad)}
    if bad and on_error == "raise":
        place, first = next(iter(bad.items()))
        raise InputError(f"row {place}: {first.reason}")
    for place in bad:
        written[place] = rows.stood(place)
    made = rows.table(written)
    if on_error == "raise":
        return made
    reasons = [bad[place].reason if place in bad else None for place in range(len(written))]
    return made.append_column(ERROR_COLUMN, arrow.array(reasons, arrow.string()))


async def _in_loop(job: Job, rows: Rows, tally: Tally, gate: Gate) -> list[Any]:
    return await handled_async(job, rows, tally, anyio.CapacityLimiter(gate.limits.concurrency))
