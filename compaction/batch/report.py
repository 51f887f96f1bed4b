"""The counts, the progress and the final report of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from ..json_data import finite_number
from ..result import CompactionResult


@attrs.define(kw_only=True)
class BatchCounts:
    """Holds state: sums over the conversations processed so far."""

    conversations: int = 0  # the bad ones included
    changed: int = 0  # conversations that were edited
    # conversations written unchanged without counting their tokens, because the strategy never runs for conversations of
    # this size
    uncounted: int = 0
    bad: int = 0  # conversations left out of the output, each with a reason
    degraded: int = 0  # conversations in which a step failed and its failure policy was applied
    over_target: int = 0  # conversations that are still over their target
    messages_before: int = 0  # without those of bad conversations
    messages_after: int = 0
    tokens_before: int = 0  # of the messages read, without those of uncounted conversations
    tokens_after: int = 0  # of the messages written, without those of uncounted conversations
    bytes_read: int = 0  # of text, uncompressed
    bytes_written: int = 0  # of text, before compression
    lines: int = 0  # of the input, or its rows
    seconds: float = 0.0  # CPU seconds; 0 where conversations wait for a summarizer
    requests: int = 0  # requests to a summarizer
    prompt_tokens: int = 0  # sent to it, as the server reports them, else estimated
    completion_tokens: int = 0  # that it returned

    def count(self, result: CompactionResult) -> None:
        """Count one compacted conversation."""
        self.changed += bool(result.edits)
        self.degraded += bool(result.failures)
        self.over_target += result.outcome == "over_target"
        self.messages_before += result.before.messages
        self.messages_after += result.after.messages
        self.tokens_before += result.before.tokens
        self.tokens_after += result.after.tokens

    def count_unchanged(self, messages: int, tokens: int | None) -> None:
        """Count a conversation that was written as it was read; ``None`` if its tokens were not counted."""
        self.uncounted += tokens is None
        self.messages_before += messages
        self.messages_after += messages
        self.tokens_before += tokens or 0
        self.tokens_after += tokens or 0

    def add(self, other: BatchCounts) -> None:
        """Add other counts to these."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON data; `from_dict` reads it.

        >>> BatchCounts.from_dict(BatchCounts(conversations=2, seconds=0.25).to_dict())
        BatchCounts(conversations=2, ..., seconds=0.25, ...)
        """
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BatchCounts:
        """Return the counts that `to_dict` wrote; raise ``ValueError`` or ``TypeError`` for anything else."""
        for value in data.values():
            finite_number(value)
        return cls(**data)


_NAMES = tuple(field.name for field in attrs.fields(BatchCounts))


BatchOutcome: TypeAlias = Literal["finished", "interrupted", "too many errors"]
"""The outcome of a batch. Unless it is ``"finished"``, running the same batch again resumes it."""


@attrs.frozen(kw_only=True)
class BatchProgress:
    """The progress of a batch.

    Args:
        tally: The counts so far, earlier runs included.
        bytes_done: Bytes of the inputs, as stored, that are processed.
        bytes_total: Bytes of all inputs.
        bytes_before: The part of ``bytes_done`` that earlier runs processed.
        seconds: The duration of this run so far.
        seconds_counted: The same when the last slice was finished: the time that ``bytes_done`` took.
    """

    tally: BatchCounts
    bytes_done: int
    bytes_total: int
    bytes_before: int
    seconds: float
    seconds_counted: float

    @property
    def seconds_left(self) -> float | None:
        """The estimated time left, at the rate so far; ``None`` before the first slice is finished.

        Until the next slice is finished, the time since the last one counts as progress, so that the estimate falls.
        """
        done = self.bytes_done - self.bytes_before
        if done <= 0:
            return None
        left = self.seconds_counted * (self.bytes_total - self.bytes_done) / done
        return max(0.0, left - (self.seconds - self.seconds_counted))


@attrs.frozen(kw_only=True)
class BatchReport:
    """The result of a batch.

    Args:
        outcome: How it ended.
        tally: The counts of all runs of the batch.
        seconds: The duration of this run.
        workers: The number of processes, concurrent conversations or Ray actors.
        counter: The token counter's name.
        outputs: The files written, with their sizes in bytes.
        errors: The file of bad conversations; ``None`` if there are none.
        failed: Inputs that could not be read, each with the reason; their outputs are not written.
        foreign: Files in the input directories that were ignored.
        resumed: Whether this run resumed an earlier one; false if the batch was finished before, so that nothing was done.
        manifest: The path of the manifest, from which a later run resumes.
    """

    outcome: BatchOutcome
    tally: BatchCounts
    seconds: float
    workers: int
    counter: str
    outputs: dict[str, int]
    errors: str | None
    failed: dict[str, str]
    foreign: list[str]
    resumed: bool
    manifest: str

    @property
    def is_well(self) -> bool:
        """Whether every input was read and no conversation was bad."""
        return self.outcome == "finished" and not self.failed and not self.tally.bad

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return attrs.asdict(self)
