"""One run of a batch: it gives slices to workers, records the results, and joins an output when its last slice is finished."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from operator import itemgetter
from pathlib import Path
from typing import Final

import attrs

from ..errors import ConfigurationError, UnreadableFile
from ..tokens import counter as resolve_counter
from .async_worker import SliceInterrupted
from .input_files import InputFile, OutputFile
from .job import FileBatch
from .manifest import Manifest
from .part_files import PartFiles, join_errors, join_parts
from .rate_limits import RateLimiter
from .report import BatchCounts, BatchOutcome, BatchProgress, BatchReport
from .slice_worker import SliceResult
from .slices import Slice, cut_slices
from .worker_pools import WorkerPool

_POLL_SECONDS: Final = 0.5


@attrs.define(kw_only=True)
class BatchRun:
    """Holds state: a run of a batch.

    Args:
        batch: The batch.
        manifest: The finished work of this batch.
        sources: The inputs.
        targets: The outputs.
        parts: The folder of the part files.
        rate_limiter: The rate limiter of the summarizers, if there are any.
        on_progress: Called with the progress.
        stop: Returns true to end the run.
        clock: Returns the time in seconds.
    """

    batch: FileBatch
    manifest: Manifest
    sources: Sequence[InputFile]
    targets: Sequence[OutputFile]
    parts: Path
    rate_limiter: RateLimiter | None
    on_progress: Callable[[BatchProgress], object] | None
    stop: Callable[[], bool]
    clock: Callable[[], float]
    _counts: BatchCounts = attrs.field(factory=BatchCounts, init=False)
    _pending: dict[Future[SliceResult], Slice] = attrs.field(factory=dict[Future[SliceResult], Slice], init=False)
    _unfinished: dict[int, int] = attrs.field(factory=dict[int, int], init=False)  # by input: slices that are not finished
    _slice_counts: dict[int, int] = attrs.field(factory=dict[int, int], init=False)  # by input, once it is cut to its end
    _bytes: int = attrs.field(default=0, init=False)
    _bytes_before: int = attrs.field(default=0, init=False)
    _interrupted: bool = attrs.field(default=False, init=False)
    _began: float = attrs.field(init=False)
    _target_of: dict[int, OutputFile] = attrs.field(init=False)  # by input

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()
        self._target_of = {number: target for target in self.targets for number in target.sources}

    def run(self, pool: WorkerPool) -> BatchOutcome:
        """Process the slices that are not finished yet, and return the outcome."""
        try:
            with pool, self._results_kept_on_error():
                for slice in self._slices():
                    if self._outcome() != "finished":
                        break
                    self._submit(slice, pool)
                while self._pending:
                    self._collect()
        except BrokenProcessPool as error:
            raise ConfigurationError(
                "a worker process died; finished work is kept. Give it more memory or fewer workers and run the same again."
                " In a script, call compact_files under: if __name__ == '__main__'"
            ) from error
        outcome = self._outcome()
        self._join_errors()
        if outcome == "finished" and not self.manifest.failed:  # otherwise a later run resumes from the parts
            self.manifest.record_finished()
            shutil.rmtree(self.parts, ignore_errors=True)
        return outcome

    @contextlib.contextmanager
    def _results_kept_on_error(self) -> Generator[None]:
        """After an error, record the pending slices that are finished nevertheless."""
        try:
            yield
        except BaseException:
            for future in self._pending:
                future.cancel()
            for future in list(self._pending):
                if not future.cancelled() and future.done() and future.exception() is None:
                    self.manifest.record_slice(future.result())
            raise

    def _outcome(self) -> BatchOutcome:
        """Return how the run would end now: ``"finished"``, unless something stops it before its work is done."""
        if self.batch.max_errors is not None and self._counts.bad > self.batch.max_errors:
            return "too many errors"
        return "interrupted" if self._interrupted or self.stop() else "finished"

    # ---------------------------------------------------------------- slices

    def _slices(self) -> Iterator[Slice]:
        """Yield the slices that are not finished, output by output."""
        joined = {number for number, target in self._target_of.items() if target.number in self.manifest.joined}
        for result in self.manifest.done.values():
            if result.key[0] in joined:
                self._count_earlier(result)
        for number, target in self._target_of.items():
            if number not in joined:
                yield from self._slices_of(self.sources[number])
                self._join_if_finished(target)

    def _slices_of(self, source: InputFile) -> Iterator[Slice]:
        number = source.number
        self._unfinished[number] = count = 0
        try:
            for slice in cut_slices(source, self.batch.slice_bytes, self.batch.job.max_bytes):
                count += 1
                result = self.manifest.done.get(slice.key)
                if result is not None and PartFiles(self.parts, slice.key).have_sizes(result.size, result.errors):
                    self._count_earlier(result)
                    continue
                self._unfinished[number] += 1
                yield slice
        except UnreadableFile as error:
            self.manifest.record_failure(number, str(error))
        self._slice_counts[number] = count

    def _submit(self, slice: Slice, pool: WorkerPool) -> None:
        while len(self._pending) >= pool.max_pending:
            self._collect()
        if slice.source.number in self.manifest.failed or self._outcome() != "finished":
            return
        target = self._target_of[slice.source.number]
        self._pending[pool.submit(slice, target.kind, len(target.sources) > 1)] = slice
        if pool.max_pending == 1:
            self._collect()

    def _collect(self) -> None:
        """Record the pending slices that are finished; wait for one, but not for long."""
        finished, _ = wait(self._pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in finished:
            source = self._pending.pop(future).source.number
            try:
                result = future.result()
            except UnreadableFile as error:
                self.manifest.record_failure(source, str(error))
            except SliceInterrupted:
                self._interrupted = True
            else:
                result.tally.add(self._new_usage())
                self.manifest.record_slice(result)
                self._count(result)
                self._unfinished[source] -= 1
                self._join_if_finished(self._target_of[source])
        self._report_progress()

    def _count(self, result: SliceResult) -> None:
        self._counts.add(result.tally)
        self._bytes += result.weight

    def _count_earlier(self, result: SliceResult) -> None:
        """Count a slice that an earlier run finished."""
        self._count(result)
        self._bytes_before += result.weight

    def _report_progress(self) -> None:
        if self.on_progress is None:
            return
        counts = attrs.evolve(self._counts)
        counts.add(self._new_usage(keep=True))
        self.on_progress(
            BatchProgress(
                tally=counts,
                bytes_done=self._bytes,
                bytes_total=sum(source.size for source in self.sources),
                bytes_before=self._bytes_before,
                seconds=self.clock() - self._began,
            )
        )

    def _new_usage(self, *, keep: bool = False) -> BatchCounts:
        """Return the summarizers' usage that is not counted yet; with ``keep``, the next call returns it again."""
        return BatchCounts() if self.rate_limiter is None else self.rate_limiter.take_usage(keep=keep)

    # ---------------------------------------------------------------- outputs

    def _join_if_finished(self, target: OutputFile) -> None:
        """Write an output once all of its slices are finished."""
        finished = all(
            number in self._slice_counts and not self._unfinished[number] and number not in self.manifest.failed
            for number in target.sources
        )
        if not finished or target.number in self.manifest.joined:
            return
        keys = [(number, place) for number in target.sources for place in range(self._slice_counts[number])]
        parts = [PartFiles(self.parts, key).rows for key in keys]
        self.manifest.record_joined(target.number, join_parts(target, parts, self.parts))
        for part in parts:
            part.unlink(missing_ok=True)

    def _join_errors(self) -> None:
        if not self.manifest.finished:
            join_errors(self.batch.beside("errors.jsonl"), self._error_files())

    def _error_files(self) -> Iterator[tuple[str, int, Path]]:
        """Yield, for each finished slice in order, the input, the number of lines before it, and its error file."""
        before, last = 0, -1
        for key, result in sorted(self.manifest.done.items(), key=itemgetter(0)):
            before = 0 if key[0] != last else before
            last = key[0]
            yield self.sources[last].path, before, PartFiles(self.parts, key).errors
            before += result.tally.lines

    def report(self, outcome: BatchOutcome, foreign: Sequence[str], pool: WorkerPool) -> BatchReport:
        """Return the report of this run."""
        self._counts.add(self._new_usage())
        self._report_progress()
        errors = self.batch.beside("errors.jsonl")
        joined = self.manifest.joined
        return BatchReport(
            outcome=outcome,
            tally=attrs.evolve(self._counts),
            seconds=self.clock() - self._began,
            workers=pool.count,
            counter=resolve_counter(self.batch.job.counter).name,
            outputs={target.path: joined[target.number] for target in self.targets if target.number in joined},
            errors=str(errors) if errors.exists() else None,
            failed={self.sources[number].path: reason for number, reason in self.manifest.failed.items()},
            foreign=list(foreign),
            resumed=self.manifest.resumed,
            manifest=str(self.manifest.path),
        )
