"""A batch while it runs: slices out, what is done back in, each output joined as soon as its last slice is there."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from ..errors import ConfigurationError, UnreadableFile
from ..tokens import counter as resolve_counter
from .limits import Gate
from .manifest import Manifest
from .parts import PartFiles, join_errors, join_parts
from .report import BatchOutcome, BatchReport, Progress
from .slices import Slice, slices_of
from .sources import Source, Target
from .tally import Tally
from .workers import Workers
from .working import Abandoned, Done

if TYPE_CHECKING:
    from .engine import Batch

__all__ = ["Running"]

_POLL_SECONDS: Final = 0.5


class Running:
    """Holds state: a run of a batch.

    Args:
        batch: What is to be done.
        manifest: What is done.
        sources: The inputs.
        targets: The outputs.
        parts: The folder of the parts.
        gate: Where summarizers are asked through, if any are.
        on_progress: Told how far it is.
        stop: Asked whether to stop.
        clock: Seconds.
    """

    def __init__(
        self,
        *,
        batch: Batch,
        manifest: Manifest,
        sources: Sequence[Source],
        targets: Sequence[Target],
        parts: Path,
        gate: Gate | None,
        on_progress: Callable[[Progress], object] | None,
        stop: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._batch = batch
        self._manifest = manifest
        self._sources = sources
        self._targets = targets
        self._parts = parts
        self._gate = gate
        self._on_progress = on_progress
        self._stop = stop
        self._clock = clock
        self._began = clock()
        self._tally = Tally()
        self._under_way: dict[Future[Done], Slice] = {}
        self._left: dict[int, int] = {}  # of an input: slices that are not done
        self._cut: dict[int, int] = {}  # of an input that was cut to its end: how many slices it has
        self._bytes = 0
        self._bytes_before = 0
        self._abandoned = False
        self._asked = (0, 0, 0)

    def run(self, workers: Workers) -> BatchOutcome:
        """Do what is left to do."""
        outcome: BatchOutcome = "finished"
        try:
            with workers, self._tidied():
                for slice in self._slices():
                    if self._is_over:
                        break
                    self._submit(slice, workers)
                while self._under_way:
                    self._collect()
        except BrokenProcessPool as error:
            raise ConfigurationError(
                "a worker process died; what is finished is kept. Give it more memory or fewer workers and run the same again."
                " In a script, call compact_files under: if __name__ == '__main__'"
            ) from error
        if self._is_over:
            outcome = "too many errors" if self._too_many else "interrupted"
        self._join_errors()
        if outcome == "finished":
            self._end()
        return outcome

    def _end(self) -> None:
        """Take away the parts; those of a batch with an unread input are gone on with once that can be read."""
        if not self._manifest.failed:
            if not self._manifest.finished:
                self._manifest.note_finished()
            shutil.rmtree(self._parts, ignore_errors=True)

    @contextlib.contextmanager
    def _tidied(self) -> Generator[None]:
        """After an error, what is under way is written down as far as it gets done."""
        try:
            yield
        except BaseException:
            for future in self._under_way:
                future.cancel()
            for future in list(self._under_way):
                if not future.cancelled() and future.done() and future.exception() is None:
                    self._manifest.note_done(future.result())
            raise

    @property
    def _too_many(self) -> bool:
        most = self._batch.max_errors
        return most is not None and self._tally.bad > most

    @property
    def _is_over(self) -> bool:
        return self._too_many or self._abandoned or self._stop()

    # ---------------------------------------------------------------- slices

    def _slices(self) -> Iterator[Slice]:
        """The slices that are not done; of an output that stands, none."""
        for target in self._targets:
            for number in target.sources:
                yield from self._slices_of(self._sources[number], target)
            self._join_if_done(target)

    def _slices_of(self, source: Source, target: Target) -> Iterator[Slice]:
        finished = self._manifest.joined.get(target.number) is not None
        self._left[source.number] = 0
        number = -1
        try:
            for slice in (
                self._known(source) if finished else slices_of(source, self._batch.slice_bytes, self._batch.job.max_bytes)
            ):
                number = slice.number
                done = self._manifest.done.get(slice.key)
                if done is not None and (finished or PartFiles(self._parts, slice.key).stand(done.size, done.errors)):
                    self._count(done)
                    self._bytes_before += done.weight
                    continue
                self._left[source.number] += 1
                yield slice
        except UnreadableFile as error:
            self._fail(source, error)
        self._cut[source.number] = number + 1

    def _known(self, source: Source) -> Iterator[Slice]:
        """The slices of an input whose output stands."""
        for key, done in self._manifest.done.items():
            if key[0] == source.number:
                yield Slice(source, key[1], 0, 0, done.weight)

    def _submit(self, slice: Slice, workers: Workers) -> None:
        while len(self._under_way) >= workers.most:
            self._collect()
        if slice.source.number in self._manifest.failed or self._is_over:
            return
        target = self._target_of(slice.source)
        self._under_way[workers.submit(slice, target.kind, len(target.sources) > 1)] = slice
        if workers.most == 1:
            self._collect()

    def _target_of(self, source: Source) -> Target:
        if len(self._targets) == 1:
            return self._targets[0]
        return self._targets[source.number]

    def _collect(self) -> None:
        """Take in what has been done since, if anything has."""
        finished, _ = wait(self._under_way, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in finished:
            slice = self._under_way[future]
            try:
                done = future.result()
            except UnreadableFile as error:
                del self._under_way[future]
                self._fail(slice.source, error)
                continue
            except Abandoned:
                del self._under_way[future]
                self._abandoned = True
                continue
            del self._under_way[future]
            done.tally.add(self._asked_since())
            self._manifest.note_done(done)
            self._count(done)
            self._left[slice.source.number] -= 1
            self._join_if_done(self._target_of(slice.source))
        self._tell()

    def _fail(self, source: Source, error: UnreadableFile) -> None:
        if source.number not in self._manifest.failed:
            self._manifest.note_failed(source.number, str(error))

    def _count(self, done: Done) -> None:
        self._tally.add(done.tally)
        self._bytes += done.weight

    def _tell(self) -> None:
        if self._on_progress is None:
            return
        tally = attrs.evolve(self._tally)
        tally.add(self._asked_since(keep=True))
        self._on_progress(
            Progress(
                tally=tally,
                bytes_done=self._bytes,
                bytes_total=sum(source.size for source in self._sources),
                bytes_before=self._bytes_before,
                seconds=self._clock() - self._began,
            )
        )

    def _asked_since(self, *, keep: bool = False) -> Tally:
        """What summarizers were asked since it was last counted in."""
        if self._gate is None:
            return Tally()
        asked = (self._gate.requests, self._gate.prompt_tokens, self._gate.completion_tokens)
        requests, prompt, completion = (now - before for now, before in zip(asked, self._asked, strict=True))
        if not keep:
            self._asked = asked
        return Tally(requests=requests, prompt_tokens=prompt, completion_tokens=completion)

    # ---------------------------------------------------------------- outputs

    def _join_if_done(self, target: Target) -> None:
        """Make an output once all that goes into it is done."""
        if target.number in self._manifest.joined:
            return
        if any(number not in self._cut or self._left[number] or number in self._manifest.failed for number in target.sources):
            return
        parts = [files.rows for number in target.sources for files in self._files_of(number)]
        self._manifest.note_joined(target.number, join_parts(target, parts, self._parts))
        for part in parts:
            part.unlink(missing_ok=True)

    def _files_of(self, source: int) -> Iterator[PartFiles]:
        return (PartFiles(self._parts, (source, number)) for number in range(self._cut[source]))

    def _join_errors(self) -> None:
        if not self._manifest.finished:
            join_errors(self._batch.beside("errors.jsonl"), self._errors())

    def _errors(self) -> Iterator[tuple[str, int, Path]]:
        keys = sorted(self._manifest.done)
        before, last = 0, -1
        for key in keys:
            before = 0 if key[0] != last else before
            last = key[0]
            yield self._sources[key[0]].path, before, PartFiles(self._parts, key).errors
            before += self._manifest.done[key].tally.lines

    def report(self, outcome: BatchOutcome, foreign: Sequence[str], workers: Workers) -> BatchReport:
        """What there is to say at the end."""
        self._tally.add(self._asked_since())
        self._tell()
        errors = self._batch.beside("errors.jsonl")
        joined = self._manifest.joined
        return BatchReport(
            outcome=outcome,
            tally=attrs.evolve(self._tally),
            seconds=self._clock() - self._began,
            workers=workers.count,
            counter=resolve_counter(self._batch.job.counter).name,
            outputs={target.path: joined[target.number] for target in self._targets if target.number in joined},
            errors=str(errors) if errors.exists() else None,
            failed={self._sources[number].path: reason for number, reason in self._manifest.failed.items()},
            foreign=list(foreign),
            resumed=self._manifest.resumed,
            manifest=str(self._manifest.path),
        )
