"""What a batch says of itself: while it runs, and at the end."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs

from .tally import Tally

__all__ = ["BatchOutcome", "BatchReport", "Progress"]

BatchOutcome: TypeAlias = Literal["finished", "interrupted", "too many errors"]
"""How a batch ended. All but ``"finished"`` can be gone on with by running the same again."""


@attrs.frozen(kw_only=True)
class Progress:
    """How far a batch is.

    Args:
        tally: What has been done, by earlier runs too.
        bytes_done: Bytes of the inputs, as stored, that are done.
        bytes_total: Bytes of all inputs.
        bytes_before: Of ``bytes_done``, what earlier runs did.
        seconds: How long this run has taken.
    """

    tally: Tally
    bytes_done: int
    bytes_total: int
    bytes_before: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate; ``None`` while nobody knows."""
        done = self.bytes_done - self.bytes_before
        return None if done <= 0 else self.seconds * (self.bytes_total - self.bytes_done) / done


@attrs.frozen(kw_only=True)
class BatchReport:
    """What a batch came to.

    Args:
        outcome: How it ended.
        tally: Sums over all runs of it.
        seconds: How long this run took.
        workers: How many processes, tasks or actors did it.
        counter: What counted tokens.
        outputs: The files written, with their bytes.
        errors: The file of bad conversations; ``None`` if there are none.
        failed: Inputs that could not be read, and why; their outputs are not written.
        foreign: Files in the input directories that were left alone.
        resumed: Whether an earlier run had begun.
        manifest: The file that a later run goes on with.
    """

    outcome: BatchOutcome
    tally: Tally
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
        """Whether all was read, and no conversation was bad."""
        return self.outcome == "finished" and not self.failed and not self.tally.bad

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**attrs.asdict(self, recurse=False), "tally": self.tally.to_dict()}
