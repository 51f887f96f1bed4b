"""`compact_files`: compact the conversations of files in bounded memory, resumable after a crash.

Inputs are cut into slices, and workers compact each slice into a part file, which has a record when it is finished. The parts
are joined in the order of the input, so the output does not depend on the number or the timing of the workers.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final

import attrs

from ..checks import checked_count
from ..errors import ConfigurationError, UnreadableFile, UnwritableFile
from ..files import unwritable_errors
from ..json_data import json_of
from ..strategies import StrategyLike
from ..tokens import counter as resolve_counter
from .input_files import InputFile, Inputs, OutputFile, find_input_files, paths_of, plan_output_files
from .job import Job
from .manifest import Manifest
from .parts import PartFiles, SliceResult, atomic_writer, join_parts, size_or_none
from .pools import AsyncPool, InlinePool, ProcessPool, WorkerPool, WorkerPoolFactory
from .rate_limits import Limits, find_summarizers
from .report import BatchCounts, BatchOutcome, BatchProgress, BatchReport
from .slices import Slice, cut_slices
from .workers import SliceInterrupted, WorkerConfig

_POLL_SECONDS: Final = 0.5

_SLICE_BYTES: Final = 1_000_000
_SUMMARIZED_BYTES: Final = 8_000_000
"""The default sizes of a slice, in bytes of text, without and with a summarizer. If slices were smaller, some would be written
without summaries before the batch notices that the summarizer is down."""


def compact_files(
    inputs: Inputs,
    output: str | os.PathLike[str],
    job: Job | StrategyLike,
    *,
    to: str | None = None,
    workers: int | WorkerPoolFactory | None = None,
    limits: Limits | None = None,
    max_errors: int | None = None,
    follow_links: bool = False,
    slice_bytes: int | None = None,
    restart: bool = False,
    on_progress: Callable[[BatchProgress], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> BatchReport:
    """Compact the conversations of files in bounded memory; after a crash, the same call resumes.

    Three things are written beside the output: ``OUT.manifest.json``, which describes the batch; ``OUT.errors.jsonl``, the bad
    conversations; and, until the end, the folder ``OUT.parts`` with the finished work. A batch that was interrupted and
    resumed writes the same bytes as one uninterrupted run.

    Args:
        inputs: Files and directories: JSONL (plain, gzip or zstd) and Parquet.
        output: A directory, or one file if its name ends in ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst`` or ``.parquet``.
        job: The strategy and the settings for each conversation; a strategy alone has the default settings.
        to: How to store the output: ``"jsonl"``, ``"jsonl.gz"``, ``"jsonl.zst"`` or ``"parquet"``; by default the kind in the
            output's name, else the kind of the input.
        workers: The number of processes; by default one per processor. A strategy with a summarizer runs in one process, with
            many conversations at a time. A function makes another kind of worker pool, see `ray_workers`.
        limits: The limits for requests to the strategy's summarizers.
        max_errors: Bad conversations after which the batch ends; ``None`` for no limit, or 0 if the job is strict.
        follow_links: Whether symbolic links in input directories are followed.
        slice_bytes: Bytes of text that a worker compacts at a time, >= 1; by default a million, or eight with a summarizer.
            After a crash, unfinished slices are repeated.
        restart: Whether to discard the work of an earlier run and replace existing outputs.
        on_progress: Called with the progress after each slice.
        stop: Called from time to time; when it returns true, the batch ends ``"interrupted"``. Processes finish their slices;
            conversations that wait for a summarizer are finished, and their summaries kept.
        clock: Returns the time in seconds, for the report only.

    Raises:
        UnreadableFile: If no input can be read.
        UnwritableFile: If an output cannot be written, or an existing one was not written by this batch.
        StateError: If the manifest belongs to another batch, or another process is running this batch.
        ConfigurationError: If an argument is out of range, or the strategy cannot work.
        SummarizerDown: If a summarizer failed too often in a row.
    """
    paths, job = paths_of(inputs), Job.of(job)
    for name, given, least in (("slice_bytes", slice_bytes, 1), ("max_errors", max_errors, 0), ("workers", workers, 1)):
        if not (given is None or callable(given)):
            checked_count(name, given, least)
    if slice_bytes is None:
        slice_bytes = _SUMMARIZED_BYTES if find_summarizers(job.strategy) else _SLICE_BYTES
    output = Path(output)
    sources, foreign = find_input_files(paths, follow_links=follow_links)
    targets = plan_output_files(sources, output, to, paths)
    plan = {
        "job": job.described(),
        "slice_bytes": slice_bytes,
        "sources": [attrs.asdict(source) for source in sources],
        "targets": [attrs.asdict(target) for target in targets],
    }
    path, errors = _beside(output, "manifest.json"), _beside(output, "errors.jsonl")
    for existing in () if restart or path.exists() else (*(Path(target.path) for target in targets), errors):
        if existing.exists():
            raise UnwritableFile(f"{existing}: it exists already; choose another output, or restart to replace it (--restart)")
    manifest = Manifest(path, _beside(output, "parts"), plan, restart=restart)
    with contextlib.closing(manifest), unwritable_errors(output, "check the folder"):
        run = BatchRun(
            job=job,
            pool=_worker_pool(WorkerConfig(job, manifest.parts), workers, limits or Limits(), stop),
            slice_bytes=slice_bytes,
            max_errors=0 if job.strict and max_errors is None else max_errors,
            errors=errors,
            manifest=manifest,
            sources=sources,
            targets=targets,
            on_progress=on_progress,
            stop=stop,
            clock=clock,
        )
        return run.report(run.run(), foreign)


def _beside(output: Path, suffix: str) -> Path:
    return output.with_name(f"{output.name}.{suffix}")


def _worker_pool(
    config: WorkerConfig, workers: int | WorkerPoolFactory | None, limits: Limits, stop: Callable[[], bool]
) -> WorkerPool:
    if callable(workers):
        return workers(config)
    if find_summarizers(config.job.strategy):
        return AsyncPool(config, limits, stop)
    processes = os.cpu_count() or 1 if workers is None else workers
    return InlinePool(config, stop) if processes == 1 else ProcessPool(config, processes)


@attrs.define
class _Output:
    """Holds state: an output, and the result of each of its slices in order; ``None`` until it is finished."""

    target: OutputFile
    results: dict[tuple[int, int], SliceResult | None] = attrs.field(factory=dict[tuple[int, int], SliceResult | None])
    is_cut: bool = False  # whether all its inputs are cut to their ends, so that ``results`` has all slices


@attrs.define(kw_only=True, slots=False)
class BatchRun:
    """Holds state: one run of a batch. It gives slices to workers, and joins an output when its last slice is finished.

    The arguments are those of `compact_files`, checked, and what it made of them.
    """

    job: Job
    pool: WorkerPool
    slice_bytes: int
    max_errors: int | None
    errors: Path
    manifest: Manifest
    sources: Sequence[InputFile]
    targets: Sequence[OutputFile]
    on_progress: Callable[[BatchProgress], object] | None
    stop: Callable[[], bool]
    clock: Callable[[], float]

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()
        self._outputs = [_Output(target) for target in self.targets]
        self._pending: dict[Future[SliceResult], tuple[_Output, Slice]] = {}
        self._failed: dict[int, str] = {}  # by input
        self._interrupted = False
        self._counts = BatchCounts()
        total = sum(source.size for source in self.sources)
        self._progress = BatchProgress(
            tally=self._counts, bytes_done=0, bytes_total=total, bytes_before=0, seconds=0.0, seconds_counted=0.0
        )

    def run(self) -> BatchOutcome:
        """Process the slices that are not finished yet, and return the outcome."""
        if self.manifest.total is not None:
            self._counts.add(self.manifest.total)
            total = self._progress.bytes_total
            self._progress = attrs.evolve(self._progress, bytes_done=total, bytes_before=total)
            return "finished"
        try:
            with self.pool:
                for output in self._outputs:
                    if output.target.number in self.manifest.joined:
                        self._count_joined(output)
                    else:
                        self._submit_unfinished(output)
                        self._join_if_finished(output)
                while self._pending:
                    self._collect()
        except BrokenProcessPool as error:
            raise ConfigurationError(
                "a worker process died; finished work is kept. Give it more memory or fewer workers and run the same again."
                " In a script, call compact_files under: if __name__ == '__main__'"
            ) from error
        if self.pool.limiter is not None:
            self._counts.add(self.pool.limiter.take_usage())
        self._write_errors()
        outcome = self._outcome()
        if outcome == "finished" and not self._failed:  # otherwise a later run resumes from the parts
            self.manifest.record_finished(self._counts)
        return outcome

    def _outcome(self) -> BatchOutcome:
        """Return how the run would end now: ``"finished"``, unless something stops it before its work is done."""
        if self.max_errors is not None and self._counts.bad > self.max_errors:
            return "too many errors"
        self._interrupted = self._interrupted or self.stop()
        return "interrupted" if self._interrupted else "finished"

    # ---------------------------------------------------------------- slices

    def _count_joined(self, output: _Output) -> None:
        """Count the slices of an output that an earlier run has written: their records are kept."""
        for source in self._sources_of(output):
            for number in itertools.count():
                result = PartFiles(self.manifest.parts, (source.number, number)).result(source)
                if result is None:
                    break
                self._count(output, result, earlier=True)

    def _submit_unfinished(self, output: _Output) -> None:
        """Give workers the slices of an output that are not finished, until something stops the run; count the others."""
        for source in self._sources_of(output):
            try:
                for slice in cut_slices(source, self.slice_bytes, self.job.max_bytes):
                    result = self._earlier_result(slice)
                    if result is not None:
                        self._count(output, result, earlier=True)
                        continue
                    while len(self._pending) >= self.pool.max_pending:
                        self._collect()
                    if source.number in self._failed or self._outcome() != "finished":
                        return
                    output.results[slice.key] = None
                    target = output.target
                    task = attrs.evolve(slice, part_kind=target.kind, add_line_end=len(target.sources) > 1)
                    self._pending[self.pool.submit(task)] = output, slice
            except UnreadableFile as error:
                self._failed.setdefault(source.number, str(error))
        output.is_cut = not any(source.number in self._failed for source in self._sources_of(output))

    def _sources_of(self, output: _Output) -> list[InputFile]:
        return [self.sources[number] for number in output.target.sources]

    def _earlier_result(self, slice: Slice) -> SliceResult | None:
        """Return the result of an earlier run, if its part file is still there."""
        files = PartFiles(self.manifest.parts, slice.key)
        result = files.result(slice.source)
        return result if result is not None and size_or_none(files.rows) == result.size else None

    def _collect(self) -> None:
        """Count the pending slices that are finished; wait for one, but not for long."""
        finished, _ = wait(self._pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in finished:
            output, slice = self._pending.pop(future)
            try:
                self._count(output, future.result())
            except UnreadableFile as error:
                self._failed.setdefault(slice.source.number, str(error))
            except SliceInterrupted:
                self._interrupted = True
            else:
                self._progress = attrs.evolve(self._progress, seconds_counted=self.clock() - self._began)
                self._join_if_finished(output)
        self._report_progress()

    def _count(self, output: _Output, result: SliceResult, *, earlier: bool = False) -> None:
        """Count a finished slice; ``earlier`` if a run before this one finished it."""
        output.results[result.key] = result
        self._counts.add(result.tally)
        done, before = self._progress.bytes_done + result.weight, self._progress.bytes_before + earlier * result.weight
        self._progress = attrs.evolve(self._progress, bytes_done=done, bytes_before=before)

    def _report_progress(self) -> None:
        if self.on_progress is None:
            return
        counts = attrs.evolve(self._counts)
        if self.pool.limiter is not None:
            counts.add(self.pool.limiter.usage)
        self.on_progress(attrs.evolve(self._progress, tally=counts, seconds=self.clock() - self._began))

    # ---------------------------------------------------------------- outputs

    def _join_if_finished(self, output: _Output) -> None:
        """Write an output once all of its slices are finished."""
        target = output.target
        if output.is_cut and None not in output.results.values():
            parts = [PartFiles(self.manifest.parts, key).rows for key in output.results]
            self.manifest.record_joined(target.number, join_parts(target, parts, self.manifest.parts))
            for part in parts:
                part.unlink(missing_ok=True)

    def _write_errors(self) -> None:
        """Write the file of bad conversations; if there are none, remove it."""
        if not self._counts.bad:
            self.errors.unlink(missing_ok=True)
            return
        with atomic_writer(self.errors) as stream:
            for entry in self._error_entries():
                stream.write(json_of(entry, str(self.errors), escaped=False).encode() + b"\n")

    def _error_entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the finished slices in order, with the number of the line in its input."""
        lines = Counter[int]()  # of each input, before the slice
        for result in [each for output in self._outputs for each in output.results.values() if each is not None]:
            number = result.key[0]
            for entry in PartFiles(self.manifest.parts, result.key).errors if result.tally.bad else ():
                yield {"file": self.sources[number].path, **entry, "line": lines[number] + entry["line"]}
            lines[number] += result.tally.lines

    def report(self, outcome: BatchOutcome, foreign: Sequence[str]) -> BatchReport:
        """Return the report of this run."""
        joined = self.manifest.joined
        self._report_progress()
        return BatchReport(
            outcome=outcome,
            tally=attrs.evolve(self._counts),
            seconds=self.clock() - self._began,
            workers=self.pool.count,
            counter=resolve_counter(self.job.counter).name,
            outputs={target.path: joined[target.number] for target in self.targets if target.number in joined},
            errors=str(self.errors) if self.errors.exists() else None,
            failed={self.sources[number].path: reason for number, reason in self._failed.items()},
            foreign=list(foreign),
            resumed=self.manifest.resumed,
            manifest=str(self.manifest.path),
        )
