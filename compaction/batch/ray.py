"""Batches on a Ray cluster: `ray_workers` for `compact_files`, and `compact_dataset` for Ray Data.

`ray_workers` needs a file system that all nodes share. The manifest records the progress, so losing the cluster costs only the
slices in progress, and the summaries of these are cached.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from concurrent.futures import Future
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import attrs

from ..checks import checked_count
from ..errors import ConfigurationError
from ..index import unawaited
from ..installation import install_line
from ..strategies import StrategyLike
from .job import Job
from .parts import SliceResult, atomic_writer, open_tables, write_table
from .pools import WorkerPool, WorkerPoolFactory
from .rate_limits import Limits, limiter_for
from .slices import Slice
from .table import check_on_error, table_of
from .workers import WorkerConfig, compact_slice

_RETRIES: Final = 5


def ray_module() -> Any:
    """Import ``ray``."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigurationError(f"Ray cannot be imported ({error}): {install_line('ray')}, here and on every node") from error


def ray_workers(count: int | None = None, *, limits: Limits | None = None, address: str | None = None) -> WorkerPoolFactory:
    """Return the ``workers`` argument that makes `compact_files` run on Ray.

    Args:
        count: The number of actors, >= 1, each on one processor; by default the number of processors of the cluster.
        limits: The limits for the summarizers of all actors together; each actor gets an equal share.
        address: The cluster's address for ``ray.init``; by default the one in the environment, or a new local cluster. If this
            process is already connected to Ray, that cluster is used.

    Raises:
        ConfigurationError: If Ray is not installed.
    """
    ray_module()
    if count is not None:
        checked_count("count", count, 1)
    return partial(_RayPool, count=count, limits=limits or Limits(), address=address)


class _RayPool(WorkerPool):
    """Holds state: the actors of a batch, and the number of pending slices of each."""

    def __init__(self, config: WorkerConfig, *, count: int | None, limits: Limits, address: str | None) -> None:
        self._ray = ray_module()
        if not self._ray.is_initialized():
            try:
                self._ray.init(address=address, log_to_driver=False)
            except Exception as error:
                raise ConfigurationError(f"Ray: no cluster can be reached at {address or 'the default'} ({error})") from error
        self.count = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.max_pending = 2 * self.count
        config = attrs.evolve(config, parts=config.parts.resolve())
        actor = self._ray.remote(max_restarts=-1, max_task_retries=_RETRIES, num_cpus=1)(_RayWorker)
        self._actors = [actor.remote(config, limits.divided(self.count)) for _ in range(self.count)]
        self._pending = Counter[int]()

    def submit(self, slice: Slice) -> Future[SliceResult]:
        place = min(range(self.count), key=self._pending.__getitem__)
        self._pending[place] += 1
        source = attrs.evolve(slice.source, path=str(Path(slice.source.path).resolve()))
        answer = self._actors[place].compact_slice.remote(attrs.evolve(slice, source=source)).future()
        future: Future[SliceResult] = Future()
        future.set_running_or_notify_cancel()
        answer.add_done_callback(partial(self._answered, future, place))
        return future

    def _answered(self, future: Future[SliceResult], place: int, answer: Future[Any]) -> None:
        self._pending[place] -= 1
        error = answer.exception()
        if error is not None:
            future.set_exception(
                ConfigurationError(
                    f"an actor was lost {_RETRIES + 1} times ({type(error).__name__}: {error}); finished work is kept: run"
                    " the same command again"
                )
            )
        elif isinstance(answer.result(), Exception):
            future.set_exception(answer.result())
        else:
            future.set_result(answer.result())

    def __exit__(self, *raised: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)


class _RayWorker:
    """Holds state: an actor's configuration and rate limiter."""

    def __init__(self, config: WorkerConfig, limits: Limits) -> None:
        self._config = config
        self._limiter = limiter_for(config.job.strategy, limits)

    def compact_slice(self, slice: Slice) -> SliceResult | Exception:
        """Compact a slice, or return the error, whatever it is; Ray calls it again if the actor dies."""
        try:
            if self._limiter is None:
                return unawaited(compact_slice(self._config, slice))
            cache = f"{slice.source.number:06}-{slice.number:08}.sqlite"
            config = self._config.limited(self._limiter, cache)
            return anyio.run(partial(compact_slice, config, slice, limiter=self._limiter))
        except Exception as error:
            return error


def compact_dataset(
    dataset: Any,
    job: Job | StrategyLike,
    *,
    on_error: Literal["raise", "mark"] = "raise",
    actors: int = 2,
    limits: Limits | None = None,
    batch_rows: int = 128,
    checkpoints: str | os.PathLike[str] | None = None,
) -> Any:
    """Compact the conversations of a Ray Data dataset.

    If an actor dies, Ray runs its batch again. With ``checkpoints``, a program that was killed resumes when it is run again:
    each finished batch is read from its part file, and the summaries of unfinished batches are cached.

    Args:
        dataset: A ``ray.data.Dataset``.
        job: The strategy and the settings for each conversation, as for `compact_files`. For ``ray.data.read_text``, its column
            is ``"text"``.
        on_error: As in `compact_table`.
        actors: The number of actors, >= 1; each loads the token counter once.
        limits: The limits for the summarizers of all actors together.
        batch_rows: Conversations in a batch, >= 1.
        checkpoints: A folder that all nodes share, for a part file of each finished batch. The file's name is a digest of the
            batch and of the job, so a part is used only for the same rows, strategy and options; of a plain function, the
            digest has only the name. So that each run has the same batches, the order of the dataset is kept: its
            ``preserve_order`` is set. Delete the folder when the dataset is written.

    Returns:
        A dataset with the same number of rows; Ray computes it when it is consumed.

    Raises:
        ConfigurationError: If Ray is not installed, or an argument is out of range.
    """
    ray_module()
    job = Job.of(job)
    check_on_error(on_error)
    checked_count("actors", actors, 1)
    checked_count("batch_rows", batch_rows, 1)
    folder = None if checkpoints is None else Path(checkpoints).resolve()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        dataset.context.execution_options.preserve_order = True  # so that the next run has the same batches
    arguments = {"job": job, "on_error": on_error, "limits": (limits or Limits()).divided(actors), "checkpoints": folder}
    data: Any = import_module("ray.data")
    return dataset.map_batches(
        _DatasetMapper,
        fn_constructor_kwargs=arguments,
        batch_format="pyarrow",
        batch_size=batch_rows,
        compute=data.ActorPoolStrategy(size=actors),
    )


class _DatasetMapper:
    """Holds state: the job and the rate limiter of a Ray Data actor."""

    def __init__(self, job: Job, on_error: Literal["raise", "mark"], limits: Limits, checkpoints: Path | None) -> None:
        self._limiter = limiter_for(job.strategy, limits)
        self._on_error: Literal["raise", "mark"] = on_error
        self._job = job
        self._checkpoints = checkpoints

    def __call__(self, table: Any) -> Any:
        if self._checkpoints is None:
            return table_of(self._job, table, on_error=self._on_error, limiter=self._limiter)
        rows = io.BytesIO()
        write_table(table.combine_chunks(), rows, compression=None)
        digest = hashlib.blake2b(rows.getbuffer(), digest_size=16)
        digest.update(json.dumps([self._job.described(), self._on_error], sort_keys=True).encode())
        part = self._checkpoints / f"{digest.hexdigest()}.part"
        if part.exists():
            with open_tables(part) as tables:
                return tables.read_all()
        cache = part.with_suffix(".sqlite")
        compacted = table_of(self._job, table, on_error=self._on_error, limiter=self._limiter, cache=cache)
        with atomic_writer(part) as stream:
            write_table(compacted, stream)
        return compacted
