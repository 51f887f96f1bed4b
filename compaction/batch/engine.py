"""The batch itself: inputs are cut into slices, workers do them, what is done is written down, and the parts are joined.

The parent holds nothing of the conversations but the slices of packed files that are under way. Parts are joined in the order
of the input, so who did what when leaves no trace in the output.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from ..checks import count
from ..errors import ConfigurationError, UnwritableFile
from ..formats import MessageFormat
from ..strategies import StrategyLike
from ..summarizers import CachedSummarizer, Summarizer
from ..tokens import TokenCounter
from .job import Job
from .limits import Gate, LimitedSummarizer, Limits, summarizers_in, with_summarizers
from .manifest import Manifest, Plan
from .report import BatchReport, Progress
from .running import Running
from .sources import find_sources, place_targets
from .workers import Awaiting, Here, MakeWorkers, Processes, Workers
from .working import Order

__all__ = ["SLICE_BYTES", "Batch", "compact_files", "gated"]

SLICE_BYTES: Final = 8_000_000
"""How large a slice is if nobody says."""


def compact_files(
    inputs: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    output: str | os.PathLike[str],
    strategy: StrategyLike,
    *,
    counter: str | TokenCounter = "auto",
    format: MessageFormat | str | None = None,
    budget: int | None = None,
    window: int | None = None,
    column: str = "messages",
    to: str | None = None,
    workers: int | MakeWorkers | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    max_errors: int | None = None,
    max_bytes: int = 256_000_000,
    slice_bytes: int = SLICE_BYTES,
    restart: bool = False,
    on_progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> BatchReport:
    """Compact the conversations of files, in bounded memory, and so that it can be gone on with after a crash.

    Beside the output stand ``OUT.manifest.jsonl``, what is done; ``OUT.errors.jsonl``, bad conversations; and, until the end,
    ``OUT.parts``. Run again with the same arguments, it goes on where it was; the outputs are the same bytes as if nothing had
    happened.

    Args:
        inputs: Files and directories: JSONL, plain, gzip or zstd, and Parquet.
        output: A directory, or one file if its name ends in ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst`` or ``.parquet``.
        strategy: What compacts each conversation.
        counter: Counts tokens: a name, or an object that can be sent to another process.
        format: The wire format; ``None`` to look at each conversation: one whose messages are of different formats is bad.
        budget: Tokens a result is judged by.
        window: Tokens of the model's window, for triggers that ask.
        column: The column of a Parquet file that holds the messages.
        to: How to store the output: ``"jsonl"``, ``"jsonl.gz"``, ``"jsonl.zst"`` or ``"parquet"``; by default what the output's
            name says, else as the input is stored.
        workers: How many processes; by default one for each processor. Where the strategy asks a summarizer, one process does
            all, with many conversations under way. A function makes workers of another kind.
        limits: What may be asked of the strategy's summarizers.
        strict: Whether a conversation that breaks a rule of its format, comes out degraded, or is over its target is bad too;
            the first bad one then ends the batch.
        max_errors: How many bad conversations there may be before the batch ends; ``None`` for any number.
        max_bytes: The longest conversation that is read, in bytes.
        slice_bytes: Bytes of text a worker does at a time, >= 1: what is done again after a crash.
        restart: Whether to forget what an earlier run did, and to replace outputs that are there.
        on_progress: Told how far it is, each time a slice is done.
        stop: Asked now and then whether to stop: what is under way is finished, then the report says ``"interrupted"``.
        clock: Seconds, for the report only.

    Raises:
        UnreadableFile: If no input can be read.
        UnwritableFile: If an output is there that is not this batch's, or cannot be written.
        StateError: If what was begun was another batch, or another process is at work on it.
        ConfigurationError: If an argument is out of range, or the strategy cannot work.
        SummarizerDown: If a summarizer failed too often in a row.
    """
    given = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    job = Job.of(
        strategy,
        counter=counter,
        format=format,
        budget=budget,
        window=window,
        column=column,
        max_bytes=max_bytes,
        strict=strict,
    )
    batch = Batch(
        inputs=[Path(path) for path in given],
        output=Path(output),
        job=job,
        to=to,
        slice_bytes=slice_bytes,
        max_errors=0 if strict and max_errors is None else max_errors,
    )
    return batch.run(workers, limits or Limits(), restart=restart, on_progress=on_progress, stop=stop, clock=clock)


@attrs.frozen(kw_only=True)
class Batch:
    """One batch: the arguments of `compact_files` that say what is to be done."""

    inputs: list[Path]
    output: Path
    job: Job
    to: str | None
    slice_bytes: int = attrs.field(validator=count(1))
    max_errors: int | None = attrs.field(validator=attrs.validators.optional(count()))

    def beside(self, suffix: str) -> Path:
        """A path next to the output."""
        return self.output.with_name(f"{self.output.name}.{suffix}")

    def run(
        self,
        workers: int | MakeWorkers | None,
        limits: Limits,
        *,
        restart: bool,
        on_progress: Callable[[Progress], object] | None,
        stop: Callable[[], bool],
        clock: Callable[[], float],
    ) -> BatchReport:
        """Do it, or what is left of it."""
        sources, foreign = find_sources(self.inputs)
        targets = place_targets(sources, self.output, self.to, self.inputs)
        plan = Plan(
            self.job.described(), self.slice_bytes, [each.to_dict() for each in sources], [each.to_dict() for each in targets]
        )
        path, parts = self.beside("manifest.jsonl"), self.beside("parts")
        if not restart and not path.exists():
            _refuse_existing([*(Path(target.path) for target in targets), self.beside("errors.jsonl")])
        manifest = Manifest(path, parts, plan, restart=restart)
        try:
            made, gate = self._workers(workers, limits, parts, stop)
            running = Running(
                batch=self,
                manifest=manifest,
                sources=sources,
                targets=targets,
                parts=parts,
                gate=gate,
                on_progress=on_progress,
                stop=stop,
                clock=clock,
            )
            return running.report(running.run(made), foreign, made)
        except OSError as error:
            raise UnwritableFile(f"{self.output}: it cannot be written ({error.strerror or error}); see to it") from error
        finally:
            manifest.close()

    def _workers(
        self, workers: int | MakeWorkers | None, limits: Limits, parts: Path, stop: Callable[[], bool]
    ) -> tuple[Workers, Gate | None]:
        if callable(workers):
            return workers(Order(self.job, parts)), None
        if workers is not None and (isinstance(workers, bool) or workers < 1):
            raise ConfigurationError(f"workers={workers!r}: a whole number of processes >= 1")
        if summarizers_in(self.job.strategy):
            gate = Gate(limits)
            return Awaiting(Order(gated(self.job, gate, parts / "summaries.sqlite"), parts), gate, stop), gate
        processes = os.cpu_count() or 1 if workers is None else workers
        order = Order(self.job, parts)
        return Here(order) if processes == 1 else Processes(order, processes), None


def gated(job: Job, gate: Gate, cache: Path) -> Job:
    """The job with its summarizers asked through a gate, and their answers kept in a file until all is done."""

    def limited(summarizer: Summarizer) -> Summarizer:
        return CachedSummarizer(LimitedSummarizer(summarizer, gate), cache)

    return attrs.evolve(job, strategy=with_summarizers(job.strategy, limited))


def _refuse_existing(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.exists():
            raise UnwritableFile(f"{path}: it is there already; name another output, or restart to replace it (--restart)")
