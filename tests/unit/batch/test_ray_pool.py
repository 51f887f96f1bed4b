"""How batches talk to Ray, with a stand-in for Ray in this process; ``tests/ray`` has the same with a real cluster."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction import last
from compaction.batch import Job, Limits, compact_dataset, compact_table, ray_workers
from compaction.batch.input_files import InputFile
from compaction.batch.slices import Slice
from compaction.batch.workers import WorkerConfig
from compaction.errors import ConfigurationError
from compaction.strategies import Summarization
from compaction.summarizers import SummaryRequest
from compaction.triggers import messages_exceed
from tests.support.chats import tool_turns, turns, user
from tests.support.corpora import BUDGET, STRATEGY, read_rows, run, store

JOB = Job(STRATEGY, counter="chars/4", budget=BUDGET)
LONG = [{"messages": [user(f"shelf {number}"), *turns(6, words=60)]} for number in range(12)]


@attrs.define(eq=False)
class Cluster:
    """A stand-in for the module ``ray``. Holds state: its calls, its actors, and the table that is its dataset.

    Args:
        answer: Makes the future of a call from the actor's method and its pickled argument; by default, it is done at once.
    """

    answer: Callable[[Any, bytes], Future[Any]] = lambda method, pickled: done(method(pickle.loads(pickled)))
    initialized: bool = False
    resources: dict[str, float] = attrs.field(factory=dict[str, float])
    inits: list[dict[str, Any]] = attrs.field(factory=list[Any])
    options: dict[str, Any] = attrs.field(factory=dict[str, Any])
    actors: list[SimpleNamespace] = attrs.field(factory=list[Any])
    killed: list[Any] = attrs.field(factory=list[Any])
    table: Any = None
    mapped: dict[str, Any] = attrs.field(factory=dict[str, Any])
    context: Any = attrs.field(factory=lambda: SimpleNamespace(execution_options=SimpleNamespace(preserve_order=False)))

    def module(self) -> Any:
        ray: Any = ModuleType("ray")
        ray.is_initialized = lambda: self.initialized
        ray.init, ray.remote, ray.kill = self.init, self.remote, self.killed.append
        ray.cluster_resources = lambda: self.resources
        return ray

    def init(self, **options: Any) -> None:
        self.inits.append(options)
        if options["address"] == "nowhere":
            raise ConnectionError("refused")

    def remote(self, **options: Any) -> Any:
        self.options = options
        return lambda kind: SimpleNamespace(remote=lambda *arguments: self.actor(kind(*pickle.loads(pickle.dumps(arguments)))))

    def actor(self, worker: Any) -> Any:
        slices: list[Slice] = []

        def call(slice: Slice) -> Any:
            slices.append(slice)
            return SimpleNamespace(future=lambda: self.answer(worker.compact_slice, pickle.dumps(slice)))

        self.actors.append(SimpleNamespace(worker=worker, slices=slices, compact_slice=SimpleNamespace(remote=call)))
        return self.actors[-1]

    def map_batches(self, kind: Any, **options: Any) -> Any:
        self.mapped = options
        mapper = kind(**pickle.loads(pickle.dumps(options["fn_constructor_kwargs"])))
        starts = range(0, self.table.num_rows, options["batch_size"])
        return pa.concat_tables(mapper(self.table.slice(at, options["batch_size"])) for at in starts)


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    data: Any = ModuleType("ray.data")
    data.ActorPoolStrategy = lambda *, size: f"{size} actors"
    monkeypatch.setitem(sys.modules, "ray", made.module())
    monkeypatch.setitem(sys.modules, "ray.data", data)
    return made


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for use in (ray_workers, lambda: compact_dataset(None, STRATEGY)):
        with pytest.raises(ConfigurationError, match=r"Ray cannot be imported .*install"):
            use()


def test_the_cluster_decides_how_many_actors(cluster: Cluster, tmp_path: Path) -> None:
    """There is an actor for each processor. A cluster that is already connected is used; one out of reach is an error."""
    config = WorkerConfig(JOB, tmp_path)
    assert ray_workers()(config).count == 1
    cluster.resources = {"CPU": 3.0}
    cluster.initialized = True
    assert ray_workers()(config).count == len(cluster.actors[1:]) == 3
    assert cluster.inits == [{"address": None, "log_to_driver": False}]
    assert cluster.options == {"max_restarts": -1, "max_task_retries": 5, "num_cpus": 1}
    cluster.initialized = False
    with pytest.raises(ConfigurationError, match=r"no cluster can be reached at nowhere \(refused\)"):
        ray_workers(address="nowhere")(config)


def test_slices_go_to_the_actor_with_the_fewest(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors get absolute paths; an actor that is lost for good ends the batch; closing the pool kills all."""
    monkeypatch.chdir(tmp_path)
    answers: list[Future[Any]] = []

    def later(method: Any, pickled: bytes) -> Future[Any]:
        answers.append(Future())
        return answers[-1]

    cluster.answer = later
    with ray_workers(2)(WorkerConfig(JOB, Path("parts"))) as pool:
        assert pool.max_pending == 4
        source = InputFile(0, "in.jsonl", "in.jsonl", "jsonl", 9, 0)
        futures: list[Future[Any]] = [pool.submit(Slice(source, number, 0, 9, 9)) for number in range(4)]
        answers[3].set_result("a result")
        answers[1].set_result(error := ConfigurationError("wrong"))
        futures += [pool.submit(Slice(source, number, 0, 9, 9)) for number in range(4, 7)]
        answers[0].set_exception(ConnectionError("gone"))
        assert [[slice.number for slice in actor.slices] for actor in cluster.actors] == [[0, 2, 6], [1, 3, 4, 5]]
        assert {slice.source.path for actor in cluster.actors for slice in actor.slices} == {str(tmp_path / "in.jsonl")}
        assert futures[3].result(0) == "a result"
        assert futures[1].exception(0) is error
        with pytest.raises(ConfigurationError, match=r"lost 6 times \(ConnectionError: gone\); finished work is kept"):
            futures[0].result(0)
        assert not futures[2].done()
        assert not futures[2].cancel(), "what an actor does is not cancelled"
        assert cluster.killed == []
    assert cluster.killed == cluster.actors


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_files_come_out_the_same(kind: str, cluster: Cluster, tmp_path: Path) -> None:
    """Actors write the bytes that one process writes, and say which input they could not read."""
    source = store(tmp_path / f"in.{kind}", kind)
    report = run(source, tmp_path / f"ray.{kind}", workers=ray_workers(2))
    run(source, tmp_path / f"here.{kind}")
    assert (tmp_path / f"ray.{kind}").read_bytes() == (tmp_path / f"here.{kind}").read_bytes()
    assert report.workers == 2
    assert report.tally.seconds > 0
    if kind == "parquet":
        assert list(run(source, tmp_path / "no.jsonl", workers=ray_workers(2), column="talk").failed) == [str(source)]


def test_an_unexpected_error_is_not_a_lost_actor(cluster: Cluster, tmp_path: Path) -> None:
    """It is raised with its own type and text."""

    def answered(method: Any, pickled: bytes) -> Future[Any]:
        try:
            return done(method(pickle.loads(pickled)))
        except Exception as error:  # as Ray does
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    cluster.answer = answered
    source = InputFile(0, "in.jsonl.gz", "in.jsonl.gz", "jsonl.gz", 9, 0)
    wrong: Any = 7
    with ray_workers(1)(WorkerConfig(JOB, tmp_path)) as pool, pytest.raises(TypeError, match="int"):
        pool.submit(Slice(source, 0, 0, 9, 9, text=wrong)).result(0)


ASKED: list[int] = []
"""The number of requests in progress, at each request to a summarizer."""
ANSWERED: list[int] = []


@attrs.frozen
class Asked:
    """A summarizer that can be pickled."""

    cache_key = "asked"

    async def summarize(self, request: SummaryRequest) -> str:
        ASKED.append(1 + len(ASKED) - len(ANSWERED))
        await anyio.sleep(0.001)
        ANSWERED.append(1)
        return f"## Goal\n{request.groups[0].messages[0].text}"


@pytest.fixture(autouse=True)
def nobody_asked() -> None:
    ASKED.clear()
    ANSWERED.clear()


SUMMARIZING = Summarization(Asked(), trigger=messages_exceed(6), keep=last(messages=2))


def test_actors_share_the_limits_and_keep_answers(cluster: Cluster, tmp_path: Path) -> None:
    """Each actor has its part of the conversations at a time; answers of a slice that is not finished are kept."""
    source, output = store(tmp_path / "in.jsonl", "jsonl", LONG), tmp_path / "out.jsonl"
    caches: set[str] = set()

    def look(now: object) -> None:
        caches.update(path.name for path in tmp_path.glob("out.jsonl.parts/*.sqlite"))

    workers = ray_workers(2, limits=Limits(concurrency=6))
    report = run(source, output, workers=workers, strategy=SUMMARIZING, slice_bytes=10_000, on_progress=look)
    rows = [row["messages"][0]["content"] for row in read_rows(output, "jsonl")]
    assert [f"shelf {number}" in text for number, text in enumerate(rows)] == [True] * len(LONG)
    assert (report.tally.requests, len(ASKED), max(ASKED)) == (len(LONG), len(LONG), 3)
    assert {"000000-00000000.sqlite", "000000-00000001.sqlite"} <= caches


def test_a_dataset_is_mapped_by_actors(cluster: Cluster) -> None:
    """Each batch of a dataset is compacted as a table; bad rows are raised or marked."""
    cluster.table = pa.table({"messages": [json.dumps(each) for each in (tool_turns(6), *[turns(1)] * 128)]})
    assert compact_dataset(cluster, JOB).equals(compact_table(cluster.table, JOB))
    names = ("batch_format", "batch_size", "compute")
    assert [cluster.mapped[name] for name in names] == ["pyarrow", 128, "2 actors"]
    assert not cluster.context.execution_options.preserve_order
    cluster.table = pa.table({"messages": ["broken"]})
    marked = compact_dataset(cluster, JOB, on_error="mark", actors=3, batch_rows=7, limits=Limits(concurrency=9))
    assert "compaction_error" in marked.column_names
    assert [cluster.mapped[name] for name in names] == ["pyarrow", 7, "3 actors"]
    assert cluster.mapped["fn_constructor_kwargs"]["limits"] == Limits(concurrency=3)


@pytest.mark.parametrize("options", [{"actors": 0}, {"batch_rows": "9"}, {"on_error": "skip"}], ids=str)
def test_arguments_that_cannot_be(options: dict[str, Any], cluster: Cluster) -> None:
    """They are refused before an actor is started."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        compact_dataset(cluster, JOB, **options)
    with pytest.raises(ConfigurationError, match="count must be a whole number >= 1"):
        ray_workers(0)


def test_a_dataset_resumes_from_checkpoints(cluster: Cluster, tmp_path: Path) -> None:
    """A finished batch is read from its part, however it is chunked; the answers for an unfinished one are kept."""
    table = pq.read_table(store(tmp_path / "in.parquet", "parquet", LONG))
    folder = tmp_path / "deep" / "parts"

    def mapped(job: Any = SUMMARIZING) -> Any:
        return compact_dataset(cluster, job, batch_rows=6, checkpoints=folder)

    cluster.table = table
    first = mapped()
    assert cluster.context.execution_options.preserve_order, "or else another run has other batches"
    parts = {path: path.stat().st_ino for path in folder.glob(f"{'?' * 32}.part")}
    cluster.table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert mapped().equals(first)
    assert {path: path.stat().st_ino for path in folder.glob("*.part")} == parts
    assert len(parts) == 2
    next(iter(parts)).unlink()
    assert mapped().equals(first)
    assert len(ASKED) == len(LONG), "each summary is asked for once"
    assert not mapped(JOB).equals(first)
    assert len(list(folder.glob("*.part"))) == 4


async def test_without_a_summarizer_no_loop_is_started(cluster: Cluster) -> None:
    """A program with a loop of its own can compact tables and datasets."""
    cluster.table = pa.table({"messages": [json.dumps(tool_turns(6))]})
    assert compact_dataset(cluster, JOB).equals(compact_table(cluster.table, JOB))
