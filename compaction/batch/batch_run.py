"""One run of a batch: slices go to workers, results to the manifest, and an output is joined when its last slice is done."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

import attrs

from ..errors import ConfigurationError, UnreadableFile
from ..tokens import counter as resolve_counter
from .input_files import InputFile, OutputFile
from .job import FileBatch
from .manifest import Manifest
from .part_files import PartFiles, join_errors, join_parts
from .rate_limits import RateLimiter
from .report import BatchCounts, BatchOutcome, BatchProgress, BatchReport
from .slice_worker import SliceInterrupted, SliceResult
from .slices import Slice, cut_slices
from .worker_pools import WorkerPool

_POLL_SECONDS: Final = 0.5


class BatchRun:
    """Holds state: a run of a batch.

    Args:
        batch: What is to be done.
        manifest: What has been done.
        sources: The inputs.
        targets: The outputs.
        parts: The folder of the part files.
        rate_limiter: The rate limiter of the summarizers, if there are any.
        on_progress: Called with the progress.
        stop: Returns true to end the run.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        *,
        batch: FileBatch,
        manifest: Manifest,
        sources: Sequence[InputFile],
        targets: Sequence[OutputFile],
        parts: Path,
        rate_limiter: RateLimiter | None,
        on_progress: Callable[[BatchProgress], object] | None,
        stop: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._batch = batch
        self._manifest = manifest
        self._sources = sources
        self._targets = targets
        self._parts = parts
        self._rate_limiter = rate_limiter
        self._on_progress = on_progress
        self._stop = stop
        self._clock = clock
        self._began = clock()
        self._counts = BatchCounts()
        self._pending: dict[Future[SliceResult], Slice] = {}
        self._unfinished: dict[int, int] = {}  # by input: slices that are not done
        self._slice_counts: dict[int, int] = {}  # by input, once it is cut to its end: the number of its slices
        self._bytes = 0
        self._bytes_before = 0
        self._interrupted = False

    def run(self, pool: WorkerPool) -> BatchOutcome:
        """Do what is left to do."""
        outcome: BatchOutcome = "finished"
        try:
            with pool, self._results_kept_on_error():
                for slice in self._slices():
                    if self._is_over:
                        break
                    self._submit(slice, pool)
                while self._pending:
                    self._collect()
        except BrokenProcessPool as error:
            raise ConfigurationError(
                "a worker process died; what is finished is kept. Give it more memory or fewer workers and run the same again."
                " In a script, call compact_files under: if __name__ == '__main__'"
            ) from error
        if self._is_over:
            outcome = "too many errors" if self._has_too_many_errors else "interrupted"
        self._join_errors()
        if outcome == "finished":
            self._finish()
        return outcome

    def _finish(self) -> None:
        """Remove the parts, unless an input could not be read: a later run resumes from them."""
        if not self._manifest.failed:
            if not self._manifest.finished:
                self._manifest.record_finished()
            shutil.rmtree(self._parts, ignore_errors=True)

    @contextlib.contextmanager
    def _results_kept_on_error(self) -> Generator[None]:
        """After an error, record the pending slices that still get done."""
        try:
            yield
        except BaseException:
            for future in self._pending:
                future.cancel()
            for future in list(self._pending):
                if not future.cancelled() and future.done() and future.exception() is None:
                    self._manifest.record_slice(future.result())
            raise

    @property
    def _has_too_many_errors(self) -> bool:
        max_errors = self._batch.max_errors
        return max_errors is not None and self._counts.bad > max_errors

    @property
    def _is_over(self) -> bool:
        return self._has_too_many_errors or self._interrupted or self._stop()

    # ---------------------------------------------------------------- slices

    def _slices(self) -> Iterator[Slice]:
        """Yield the slices that are not done, output by output; none of an output that is finished."""
        for target in self._targets:
            for number in target.sources:
                yield from self._slices_of(self._sources[number], target)
            self._join_if_done(target)

    def _slices_of(self, source: InputFile, target: OutputFile) -> Iterator[Slice]:
        finished = self._manifest.joined.get(target.number) is not None
        self._unfinished[source.number] = 0
        number = -1
        try:
            for slice in (
                self._recorded_slices(source)
                if finished
                else cut_slices(source, self._batch.slice_bytes, self._batch.job.max_bytes)
            ):
                number = slice.number
                result = self._manifest.done.get(slice.key)
                if result is not None and (
                    finished or PartFiles(self._parts, slice.key).have_sizes(result.size, result.errors)
                ):
                    self._count(result)
                    self._bytes_before += result.weight
                    continue
                self._unfinished[source.number] += 1
                yield slice
        except UnreadableFile as error:
            self._record_failure(source, error)
        self._slice_counts[source.number] = number + 1

    def _recorded_slices(self, source: InputFile) -> Iterator[Slice]:
        """Yield the slices of an input whose output is finished."""
        for key, result in self._manifest.done.items():
            if key[0] == source.number:
                yield Slice(source, key[1], 0, 0, result.weight)

    def _submit(self, slice: Slice, pool: WorkerPool) -> None:
        while len(self._pending) >= pool.max_pending:
            self._collect()
        if slice.source.number in self._manifest.failed or self._is_over:
            return
        target = self._target_of(slice.source)
        self._pending[pool.submit(slice, target.kind, len(target.sources) > 1)] = slice
        if pool.max_pending == 1:
            self._collect()

    def _target_of(self, source: InputFile) -> OutputFile:
        if len(self._targets) == 1:
            return self._targets[0]
        return self._targets[source.number]

    def _collect(self) -> None:
        """Record the slices that are done by now, if any."""
        finished, _ = wait(self._pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in finished:
            slice = self._pending[future]
            try:
                result = future.result()
            except UnreadableFile as error:
                del self._pending[future]
                self._record_failure(slice.source, error)
                continue
            except SliceInterrupted:
                del self._pending[future]
                self._interrupted = True
                continue
            del self._pending[future]
            result.tally.add(self._new_usage())
            self._manifest.record_slice(result)
            self._count(result)
            self._unfinished[slice.source.number] -= 1
            self._join_if_done(self._target_of(slice.source))
        self._report_progress()

    def _record_failure(self, source: InputFile, error: UnreadableFile) -> None:
        if source.number not in self._manifest.failed:
            self._manifest.record_failure(source.number, str(error))

    def _count(self, result: SliceResult) -> None:
        self._counts.add(result.tally)
        self._bytes += result.weight

    def _report_progress(self) -> None:
        if self._on_progress is None:
            return
        counts = attrs.evolve(self._counts)
        counts.add(self._new_usage(keep=True))
        self._on_progress(
            BatchProgress(
                tally=counts,
                bytes_done=self._bytes,
                bytes_total=sum(source.size for source in self._sources),
                bytes_before=self._bytes_before,
                seconds=self._clock() - self._began,
            )
        )

    def _new_usage(self, *, keep: bool = False) -> BatchCounts:
        """Return the summarizers' usage that is not counted yet; with ``keep`` it stays uncounted."""
        return BatchCounts() if self._rate_limiter is None else self._rate_limiter.take_usage(keep=keep)

    # ---------------------------------------------------------------- outputs

    def _join_if_done(self, target: OutputFile) -> None:
        """Write an output once all of its slices are done."""
        if target.number in self._manifest.joined:
            return
        if any(
            number not in self._slice_counts or self._unfinished[number] or number in self._manifest.failed
            for number in target.sources
        ):
            return
        parts = [files.rows for number in target.sources for files in self._part_files(number)]
        self._manifest.record_joined(target.number, join_parts(target, parts, self._parts))
        for part in parts:
            part.unlink(missing_ok=True)

    def _part_files(self, source: int) -> Iterator[PartFiles]:
        return (PartFiles(self._parts, (source, number)) for number in range(self._slice_counts[source]))

    def _join_errors(self) -> None:
        if not self._manifest.finished:
            join_errors(self._batch.beside("errors.jsonl"), self._error_files())

    def _error_files(self) -> Iterator[tuple[str, int, Path]]:
        keys = sorted(self._manifest.done)
        before, last = 0, -1
        for key in keys:
            before = 0 if key[0] != last else before
            last = key[0]
            yield self._sources[key[0]].path, before, PartFiles(self._parts, key).errors
            before += self._manifest.done[key].tally.lines

    def report(self, outcome: BatchOutcome, foreign: Sequence[str], pool: WorkerPool) -> BatchReport:
        """Return the report of this run."""
        self._counts.add(self._new_usage())
        self._report_progress()
        errors = self._batch.beside("errors.jsonl")
        joined = self._manifest.joined
        return BatchReport(
            outcome=outcome,
            tally=attrs.evolve(self._counts),
            seconds=self._clock() - self._began,
            workers=pool.count,
            counter=resolve_counter(self._batch.job.counter).name,
            outputs={target.path: joined[target.number] for target in self._targets if target.number in joined},
            errors=str(errors) if errors.exists() else None,
            failed={self._sources[number].path: reason for number, reason in self._manifest.failed.items()},
            foreign=list(foreign),
            resumed=self._manifest.resumed,
            manifest=str(self._manifest.path),
        )
