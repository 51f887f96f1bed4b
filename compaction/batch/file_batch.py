"""`compact_files`: compact the conversations of files in bounded memory, resumable after a crash.

Inputs are cut into slices, and workers compact each slice into a part file. A manifest records the finished slices. The parts
are joined in the order of the input, so the output does not depend on the number or the timing of the workers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from ..errors import ConfigurationError, UnwritableFile
from ..formats import MessageFormat
from ..strategies import StrategyLike
from ..tokens import TokenCounter
from .batch_run import BatchRun
from .input_files import find_input_files, plan_output_files
from .job import FileBatch, Job
from .manifest import Manifest
from .rate_limits import Limits, RateLimiter, rate_limited
from .report import BatchProgress, BatchReport
from .slice_worker import WorkerConfig
from .strategy_summarizers import find_summarizers
from .worker_pools import AsyncPool, InlinePool, ProcessPool, WorkerPool, WorkerPoolFactory

SLICE_BYTES: Final = 8_000_000
"""The default size of a slice, in bytes of text."""


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
    workers: int | WorkerPoolFactory | None = None,
    limits: Limits | None = None,
    strict: bool = False,
    max_errors: int | None = None,
    max_bytes: int = 256_000_000,
    slice_bytes: int = SLICE_BYTES,
    restart: bool = False,
    follow_links: bool = False,
    keys: Sequence[str] = (),
    on_progress: Callable[[BatchProgress], object] | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> BatchReport:
    """Compact the conversations of files in bounded memory; after a crash, the same call resumes.

    Three things are written beside the output: ``OUT.manifest.jsonl``, which lists the finished work; ``OUT.errors.jsonl``,
    the bad conversations; and, until the end, the folder ``OUT.parts``. A batch that was interrupted and resumed writes the
    same bytes as one uninterrupted run.

    Args:
        inputs: Files and directories: JSONL (plain, gzip or zstd) and Parquet.
        output: A directory, or one file if its name ends in ``.jsonl``, ``.jsonl.gz``, ``.jsonl.zst`` or ``.parquet``.
        strategy: The strategy that compacts each conversation.
        counter: The token counter: a name, or an object that can be pickled.
        format: The wire format; ``None`` to detect it for each conversation. A conversation of mixed formats is bad.
        budget: Tokens a result may have.
        window: Tokens of the model's context window, for triggers that use it.
        column: The column of a Parquet file with the messages.
        to: How to store the output: ``"jsonl"``, ``"jsonl.gz"``, ``"jsonl.zst"`` or ``"parquet"``; by default the kind in the
            output's name, else the kind of the input.
        workers: The number of processes; by default one per processor. A strategy with a summarizer runs in one process, with
            many conversations at a time. A function makes another kind of worker pool, see `ray_workers`.
        limits: The limits for requests to the strategy's summarizers.
        strict: Whether a conversation is also bad if it breaks a rule of its format, its result is degraded or it stays over
            its target; the first bad conversation then ends the batch.
        max_errors: Bad conversations after which the batch ends; ``None`` for no limit.
        max_bytes: The largest conversation that is read, in bytes.
        slice_bytes: Bytes of text that a worker compacts at a time, >= 1; after a crash, unfinished slices are repeated.
        restart: Whether to discard the work of an earlier run and replace existing outputs.
        follow_links: Whether symbolic links in input directories are followed; otherwise the report lists them as ignored.
        keys: Keys that sign summaries, so that nobody can forge one. The first key signs; signatures of all keys are accepted.
            No file contains a key.
        on_progress: Called with the progress after each slice.
        stop: Called from time to time; when it returns true, slices in progress are finished and the batch ends
            ``"interrupted"``.
        clock: Returns the time in seconds, for the report only.

    Raises:
        UnreadableFile: If no input can be read.
        UnwritableFile: If an output cannot be written, or an existing one was not written by this batch.
        StateError: If the manifest belongs to another batch, or another process is running this batch.
        ConfigurationError: If an argument is out of range, or the strategy cannot work.
        SummarizerDown: If a summarizer failed too often in a row.
    """
    paths = [Path(inputs)] if isinstance(inputs, str | os.PathLike) else [Path(path) for path in inputs]
    job = Job.of(
        strategy,
        counter=counter,
        format=format,
        budget=budget,
        window=window,
        column=column,
        max_bytes=max_bytes,
        strict=strict,
        keys=tuple(keys),
    )
    batch = FileBatch(
        output=Path(output),
        job=job,
        slice_bytes=slice_bytes,
        max_errors=0 if strict and max_errors is None else max_errors,
    )
    sources, foreign = find_input_files(paths, follow_links=follow_links)
    targets = plan_output_files(sources, batch.output, to, paths)
    plan = {
        "job": job.described(),
        "slice_bytes": slice_bytes,
        "sources": [attrs.asdict(source) for source in sources],
        "targets": [attrs.asdict(target) for target in targets],
    }
    path, parts = batch.beside("manifest.jsonl"), batch.beside("parts")
    if not restart and not path.exists():
        _refuse_existing([*(Path(target.path) for target in targets), batch.beside("errors.jsonl")])
    manifest = Manifest(path, parts, plan, restart=restart)
    try:
        pool, rate_limiter = _worker_pool(job, workers, limits or Limits(), parts, stop)
        run = BatchRun(
            batch=batch,
            manifest=manifest,
            sources=sources,
            targets=targets,
            parts=parts,
            rate_limiter=rate_limiter,
            on_progress=on_progress,
            stop=stop,
            clock=clock,
        )
        return run.report(run.run(pool), foreign, pool)
    except OSError as error:
        raise UnwritableFile(f"{output}: it cannot be written ({error.strerror or error}); check the folder") from error
    finally:
        manifest.close()


def _worker_pool(
    job: Job, workers: int | WorkerPoolFactory | None, limits: Limits, parts: Path, stop: Callable[[], bool]
) -> tuple[WorkerPool, RateLimiter | None]:
    config = WorkerConfig(job, parts)
    if callable(workers):
        return workers(config), None
    if workers is not None and (isinstance(workers, bool) or workers < 1):
        raise ConfigurationError(f"workers={workers!r}: a whole number of processes >= 1")
    if find_summarizers(job.strategy):
        rate_limiter = RateLimiter(limits)
        limited = attrs.evolve(job, strategy=rate_limited(job.strategy, rate_limiter, parts / "summaries.sqlite"))
        return AsyncPool(WorkerConfig(limited, parts), rate_limiter, stop), rate_limiter
    processes = os.cpu_count() or 1 if workers is None else workers
    return InlinePool(config) if processes == 1 else ProcessPool(config, processes), None


def _refuse_existing(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.exists():
            raise UnwritableFile(f"{path}: it exists already; choose another output, or restart to replace it (--restart)")
