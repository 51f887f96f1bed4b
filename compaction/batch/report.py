"""The progress of a running batch, and the report at its end."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs

from .counts import BatchCounts

__all__ = ["BatchOutcome", "BatchProgress", "BatchReport"]

BatchOutcome: TypeAlias = Literal["finished", "interrupted", "too many errors"]
"""How a batch ended. Unless it is ``"finished"``, running the same batch again resumes it."""


@attrs.frozen(kw_only=True)
class BatchProgress:
    """How far a batch is.

    Args:
        tally: What has been done, by earlier runs too.
        bytes_done: Bytes of the inputs, as stored, that are done.
        bytes_total: Bytes of all inputs.
        bytes_before: The part of ``bytes_done`` that earlier runs did.
        seconds: How long this run has taken so far.
    """

    tally: BatchCounts
    bytes_done: int
    bytes_total: int
    bytes_before: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """The time left at this rate; ``None`` while it is unknown."""
        done = self.bytes_done - self.bytes_before
        return None if done <= 0 else self.seconds * (self.bytes_total - self.bytes_done) / done


@attrs.frozen(kw_only=True)
class BatchReport:
    """The result of a batch.

    Args:
        outcome: How it ended.
        tally: Sums over all runs of the batch.
        seconds: How long this run took.
        workers: The number of processes, concurrent conversations or Ray actors.
        counter: The token counter's name.
        outputs: The files written, with their sizes in bytes.
        errors: The file of bad conversations; ``None`` if there are none.
        failed: Inputs that could not be read, and why; their outputs are not written.
        foreign: Files in the input directories that were ignored.
        resumed: Whether this run resumed an earlier one.
        manifest: The file that a later run resumes from.
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
        return {**attrs.asdict(self, recurse=False), "tally": self.tally.to_dict()}
