"""Batches on a Ray cluster give the same rows as on one machine, even if a worker dies."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from typer.testing import CliRunner

from compaction import presets
from compaction.batch import Job, compact_dataset, compact_table, ray_workers
from compaction.cli.app import app
from tests.ray.strategies_for_ray import Deadly
from tests.support.corpora import BUDGET, CHATS, STRATEGY, expected, read_rows, run, store

ROOT = Path(__file__).resolve().parents[2]
OPTIONS: dict[str, Any] = {"counter": "chars/4", "budget": BUDGET}


def test_a_killed_worker_is_made_up_for(tmp_path: Path) -> None:
    """Workers killed during a slice are restarted, and no conversation is lost or doubled."""
    (tmp_path / "deaths").mkdir()
    source = store(tmp_path / "in.jsonl", "jsonl", CHATS * 3)
    report = run(source, tmp_path / "out.jsonl", strategy=Deadly(str(tmp_path / "deaths"), 3), workers=ray_workers(2))
    assert len(list((tmp_path / "deaths").iterdir())) == 3
    assert (report.outcome, report.tally.bad) == ("finished", 0)
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected() * 3


@pytest.mark.parametrize("nested", [False, True], ids=["text", "nested"])
def test_a_dataset_is_the_same_row_for_row(nested: bool, tmp_path: Path) -> None:
    table = pq.read_table(store(tmp_path / "in.parquet", "parquet", CHATS * 3, nested=nested))
    here = compact_table(table, Job(STRATEGY, **OPTIONS))
    made = compact_dataset(ray.data.from_arrow(table).repartition(5), Job(STRATEGY, **OPTIONS), actors=2, batch_rows=16)
    rows = sorted(made.take_all(), key=lambda row: (row["id"], json.dumps(row["messages"], sort_keys=True)))
    mine = sorted(here.to_pylist(), key=lambda row: (row["id"], json.dumps(row["messages"], sort_keys=True)))
    assert rows == mine


def test_a_dataset_survives_a_killed_worker(tmp_path: Path) -> None:
    """An actor of Ray Data that is killed is restarted, and every row is in the output once."""
    (tmp_path / "deaths").mkdir()
    table = pq.read_table(store(tmp_path / "in.parquet", "parquet"))
    job = Job(Deadly(str(tmp_path / "deaths"), 1), **OPTIONS)
    made = compact_dataset(ray.data.from_arrow(table), job, actors=2, batch_rows=8)
    rows = {row["id"]: json.loads(row["messages"]) for row in made.take_all()}
    assert rows == {chat["id"]: messages for chat, messages in zip(CHATS, expected(), strict=True)}
    assert len(list((tmp_path / "deaths").iterdir())) == 1


RESUMED = """
import json, sys
import ray
from compaction.batch import Job, compact_dataset
from tests.ray.strategies_for_ray import Slow
from tests.ray.test_ray import OPTIONS

kind, source, notes, checkpoints, target, actors, address = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
read, column = (ray.data.read_text, "text") if kind == "jsonl" else (ray.data.read_parquet, "messages")
made = compact_dataset(
    read(source), Job(Slow(notes), column=column, **OPTIONS), actors=int(actors), batch_rows=10, checkpoints=checkpoints
)
rows = sorted(row[column] for row in made.iter_rows())
with open(target, "w") as out:
    json.dump(rows, out)
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("kind", "actors"), [("jsonl", 2), ("parquet", 1)])
def test_a_killed_program_resumes_from_its_checkpoints(kind: str, actors: int, tmp_path: Path) -> None:
    """After a kill, the same program gives the rows of an uninterrupted run, and compacts finished batches only once."""
    for name in ("in", "notes"):
        (tmp_path / name).mkdir()
    chats = [{**chat, "id": f"{place}-{chat['id']}"} for place in range(3) for chat in CHATS]
    for place in range(0, len(chats), 20):
        store(tmp_path / "in" / f"{place:03}.{kind}", kind, chats[place : place + 20])
    checkpoints = tmp_path / "parts"
    arguments = [str(tmp_path / name) for name in ("notes", "parts", "out.json")]
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", RESUMED, kind, str(tmp_path / "in"), *arguments, str(actors), address]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment) as process:
        while len(list(checkpoints.glob("*.part"))) < 3:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.kill()
    assert not (tmp_path / "out.json").exists()
    subprocess.run(command, env=environment, check=True)
    if kind == "jsonl":
        run(tmp_path / "in", tmp_path / "once.jsonl")
        wanted = (tmp_path / "once.jsonl").read_text().splitlines()
    else:
        wanted = [json.dumps(messages) for messages in expected() * 3]
    assert [*map(json.loads, json.loads((tmp_path / "out.json").read_text()))] == [*map(json.loads, sorted(wanted))]
    repeated = len(list((tmp_path / "notes").iterdir())) - len(chats)
    assert 0 <= repeated <= len(chats) - 3 * 10


def test_the_command_line_takes_the_engine(tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl")
    shared = ["--budget", str(BUDGET), "--counter", "chars/4"]
    for name, more in (("a.jsonl", ["--workers", "1"]), ("b.jsonl", ["--engine", "ray", "--workers", "2"])):
        done = CliRunner().invoke(app, ["batch", str(source), "-o", str(tmp_path / name), *shared, *more])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize("recipe", ["batch_datasets", "batch_daft"])
def test_the_recipes_run(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example programs for other engines give the same rows as `compact_table`."""
    pytest.importorskip(recipe.partition("_")[2])
    source, target = ROOT / "examples" / "service_chats.jsonl", tmp_path / "out.parquet"
    monkeypatch.setattr(sys, "argv", [recipe, str(source), str(target)])
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    runpy.run_path(str(ROOT / "examples" / f"{recipe}.py"), run_name="__main__")
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    table = pa.table({"id": [row["id"] for row in rows], "messages": [json.dumps(row["messages"]) for row in rows]})
    wanted = compact_table(table, presets.token_budget(600))
    assert pq.read_table(target).select(["id", "messages"]).to_pylist() == wanted.to_pylist()
    assert wanted.to_pylist() != table.to_pylist()
