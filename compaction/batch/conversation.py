"""The compaction of one conversation of a batch."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from ..errors import ConfigurationError, InputError, StateError, SyncDriverError
from ..result import CompactionResult
from ..run import compact, compact_sync
from .job import Job
from .report import BatchCounts
from .rows import Row
from .unchanged import find_unchanged


@attrs.frozen
class BadConversation:
    """A conversation that is left out of the output."""

    reason: str
    error: str  # the name of the error's class, or of the rule


Written: TypeAlias = bytes | list[Any] | BadConversation
"""The outcome of a row: the line to write, or the value of a nested column, or why there is none."""


async def compact_row(job: Job, row: Row, counts: BatchCounts, *, sync: bool = False) -> Written:
    """Compact and count one conversation.

    If the strategy awaits nothing (``sync``), this coroutine does not either, see `compaction.index.unawaited`.

    Raises:
        ConfigurationError: If the job fails for every conversation.
        SyncDriverError: If the strategy awaits something in spite of ``sync``.
        StateError: If a file that the strategy uses cannot be read or written.
    """
    counts.conversations += 1
    try:
        messages = row.read()
        unchanged = find_unchanged(job, row, messages)
        if unchanged is not None:
            counts.count_unchanged(len(messages), unchanged.tokens)
            return row.write(messages, messages)
        options = job.options
        result = compact_sync(messages, job.strategy, **options) if sync else await compact(messages, job.strategy, **options)
        return _written(job, row, messages, result, counts)
    except Exception as error:
        return _bad(error, counts)


def _written(job: Job, row: Row, messages: list[Any], result: CompactionResult, counts: BatchCounts) -> Written:
    reason = job.objection(messages, result)
    if reason is not None:
        counts.bad += 1
        return BadConversation(reason, "strict")
    written = row.write(messages, result.messages)
    counts.count(result)
    return written


def _bad(error: Exception, counts: BatchCounts) -> BadConversation:
    """Return the bad conversation for an error.

    Raises:
        Exception: The error itself, if every other conversation would raise it too.
    """
    if isinstance(error, ConfigurationError | SyncDriverError | StateError):
        raise error
    counts.bad += 1
    if isinstance(error, RecursionError):
        return BadConversation("it is nested too deeply; write the inner part as a string", "RecursionError")
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return BadConversation(reason, type(error).__name__)
