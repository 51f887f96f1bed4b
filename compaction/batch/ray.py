"""A batch on a Ray cluster: the same slices, done by actors; and a Ray Data dataset, mapped batch by batch.

The files of a batch stand on a file system that all nodes share. What is done stands in the manifest, not in Ray, so a cluster
that goes away costs the slices that were under way, and a summary that was answered is not asked for again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Self

import anyio
import attrs

from ..errors import CompactionError, ConfigurationError
from ..strategies import StrategyLike
from ..summarizers import Summarizer
from .engine import gated
from .job import Job
from .limits import Gate, LimitedSummarizer, Limits, summarizers_in, with_summarizers
from .slices import Slice
from .sources import Kind
from .table import table_of
from .tally import Tally
from .workers import MakeWorkers
from .working import Done, Order, work, work_async

__all__ = ["compact_dataset", "ray_module", "ray_workers"]

_RETRIES: Final = 5


def ray_module() -> Any:
    """``ray``, loaded when it is first needed.

    Raises:
        ConfigurationError: If it is not installed.
    """
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigurationError(
            f"Ray cannot be imported ({error}): pip install 'compaction-toolkit[ray]', here and on every node"
        ) from error


def ray_workers(count: int | None = None, *, limits: Limits | None = None, address: str | None = None) -> MakeWorkers:
    """What `compact_files` takes as ``workers`` to run on Ray.

    Args:
        count: How many actors, of one processor each; by default as many as the cluster has processors.
        limits: What all actors together may ask of summarizers; each gets its part.
        address: The cluster, as ``ray.init`` takes it; by default the one of the environment, or one made here. If Ray runs in
            this process already, that one.

    Raises:
        ConfigurationError: If Ray is not installed.
    """
    ray_module()
    return partial(_Actors, count=count, limits=limits or Limits(), address=address)


class _Actors(contextlib.AbstractContextManager["_Actors"]):
    """Holds state: actors of a cluster, and how many slices each has."""

    def __init__(self, order: Order, *, count: int | None, limits: Limits, address: str | None) -> None:
        self._ray = ray_module()
        if not self._ray.is_initialized():
            try:
                self._ray.init(address=address, log_to_driver=False)
            except Exception as error:
                raise ConfigurationError(f"Ray: no cluster can be reached at {address or 'the default'} ({error})") from error
        self.count = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.most = 2 * self.count
        order = attrs.evolve(order, parts=order.parts.resolve())
        actor = self._ray.remote(max_restarts=-1, max_task_retries=_RETRIES, num_cpus=1)(_Actor)
        self._actors = [actor.remote(order, limits.divided(self.count)) for _ in range(self.count)]
        self._busy = [0] * self.count

    def __enter__(self) -> Self:
        return self

    def submit(self, slice: Slice, kind: Kind, ended: bool) -> Future[Done]:
        place = self._busy.index(min(self._busy))
        self._busy[place] += 1
        source = attrs.evolve(slice.source, path=str(Path(slice.source.path).resolve()))
        answer = self._actors[place].work.remote(attrs.evolve(slice, source=source), kind, ended).future()
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        answer.add_done_callback(partial(self._answered, future, place))
        return future

    def _answered(self, future: Future[Done], place: int, answer: Future[Any]) -> None:
        self._busy[place] -= 1
        lost = answer.exception()
        if lost is not None:
            says = (
                f"an actor was lost {_RETRIES + 1} times ({type(lost).__name__}); what is finished is kept: run the same again"
            )
            future.set_exception(ConfigurationError(says))
        elif isinstance(answer.result(), Exception):
            future.set_exception(answer.result())
        else:
            future.set_result(answer.result())

    def _reason(self, lost: BaseException) -> BaseException:
        if not isinstance(lost, self._ray.exceptions.RayActorError):
            return lost
        return ConfigurationError(
            f"an actor was lost {_RETRIES + 1} times ({type(lost).__name__}); what is finished is kept: run the same again"
        )

    def __exit__(self, *raised: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)


class _Actor:
    """Holds state: what a worker was told, and the gate to its summarizers. What it loads to count stays loaded."""

    def __init__(self, order: Order, limits: Limits) -> None:
        self._order = order
        self._gate = Gate(limits) if summarizers_in(order.job.strategy) else None

    def work(self, slice: Slice, kind: Kind, ended: bool) -> Done | CompactionError:
        """Do a slice; again, if another actor died over it."""
        try:
            if self._gate is None:
                return work(self._order, slice, kind, ended)
            return anyio.run(_awaiting, self._order, self._gate, slice, kind, ended)
        except CompactionError as error:
            return error


async def _awaiting(order: Order, gate: Gate, slice: Slice, kind: Kind, ended: bool) -> Done:
    """A slice whose conversations wait for summaries. No method: Ray would run all of such a class in a loop of its own."""
    before = gate.requests, gate.prompt_tokens, gate.completion_tokens
    cache = order.parts / f"{slice.source.number:06}-{slice.number:08}.sqlite"
    gated_order = attrs.evolve(order, job=gated(order.job, gate, cache))
    done = await work_async(gated_order, slice, kind, ended, anyio.CapacityLimiter(gate.limits.concurrency))
    requests, prompt, completion = gate.requests, gate.prompt_tokens, gate.completion_tokens
    done.tally.add(
        Tally(requests=requests - before[0], prompt_tokens=prompt - before[1], completion_tokens=completion - before[2])
    )
    return done


def compact_dataset(
    dataset: Any,
    strategy: StrategyLike,
    *,
    column: str = "messages",
    on_error: Literal["raise", "mark"] = "raise",
    actors: int = 2,
    limits: Limits | None = None,
    batch_rows: int = 128,
    **options: Any,
) -> Any:
    """Compact the conversations of a Ray Data dataset.

    Ray makes a batch again if an actor dies over it. What a summarizer answered is lost then, unless the strategy's summarizer
    is a `CachedSummarizer` whose file all actors reach; `compact_files` with `ray_workers` keeps answers by itself.

    Args:
        dataset: A ``ray.data.Dataset``.
        strategy: What compacts each conversation.
        column: The column that holds the messages: JSON text, or nested Arrow lists.
        on_error: As for `compact_table`.
        actors: How many; each loads the counter once and keeps what it counted.
        limits: What all of them together may ask of summarizers.
        batch_rows: Conversations at a time.
        options: Further arguments of `Job`, such as ``counter``.

    Returns:
        A dataset of as many rows; nothing runs until it is consumed.

    Raises:
        ConfigurationError: If Ray is not installed, or an argument is out of range.
    """
    ray_module()
    job = Job.of(strategy, column=column, **options)
    made = {"job": job, "on_error": on_error, "limits": (limits or Limits()).divided(actors)}
    data: Any = import_module("ray.data")
    return dataset.map_batches(
        _Mapped,
        fn_constructor_kwargs=made,
        batch_format="pyarrow",
        batch_size=batch_rows,
        compute=data.ActorPoolStrategy(size=actors),
    )


class _Mapped:
    """Holds state: a job in an actor of Ray Data."""

    def __init__(self, job: Job, on_error: Literal["raise", "mark"], limits: Limits) -> None:
        self._gate = Gate(limits) if summarizers_in(job.strategy) else None
        self._on_error: Literal["raise", "mark"] = on_error
        self._job = job
        if self._gate is not None:
            limited: Callable[[Summarizer], Summarizer] = partial(LimitedSummarizer, gate=self._gate)
            self._job = attrs.evolve(job, strategy=with_summarizers(job.strategy, limited))

    def __call__(self, table: Any) -> Any:
        return table_of(self._job, table, on_error=self._on_error, gate=self._gate)
