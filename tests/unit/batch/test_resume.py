"""Batches that were killed, stopped or failed: the repeated work and the final output."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs
import pytest

from compaction.batch import BatchProgress, BatchReport
from compaction.batch.manifest import Manifest
from compaction.batch.parts import SliceResult
from compaction.batch.pools import InlinePool
from compaction.batch.slices import Slice
from compaction.batch.workers import WorkerConfig
from compaction.errors import ConfigurationError, StateError, UnwritableFile
from compaction.strategies import Strategy
from tests.support.chats import turns, user
from tests.support.corpora import BAD, CHATS, KINDS, errors_of, expected, lines, read_rows, run, store
from tests.support.limits import WAIT_SECONDS
from tests.support.programs import ended, started

FEW = [{"id": number, "messages": turns(1)} for number in range(6)]
MESSAGES = [chat["messages"] for chat in FEW]
"""Conversations that the strategy leaves unchanged."""


def quick(inputs: Any, output: Path, **options: Any) -> BatchReport:
    """Run a batch with a slice for each conversation."""
    return run(inputs, output, **{"slice_bytes": 1, **options})


def slices_done(output: Path) -> int:
    return len(list(output.with_name(f"{output.name}.parts").glob("*.record")))


def waited_for(output: Path, slices: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until this many slices are finished; fail if the process ends earlier."""
    for _ in range(6_000):
        if slices_done(output) >= slices:
            return
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    raise AssertionError("it does not get on")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A directory of a plain and a compressed file, about 40 slices in all, with some bad lines."""
    (tmp_path / "in").mkdir()
    body = lines() * 9 + b"".join(BAD)
    (tmp_path / "in" / "a.jsonl").write_bytes(body)
    store(tmp_path / "in" / "b.jsonl.gz", "jsonl.gz", CHATS * 3)
    return tmp_path / "in"


def test_killed_twice_it_comes_out_the_same(large: Path, tmp_path: Path) -> None:
    """A batch whose parent process is killed twice writes the same outputs and errors as an uninterrupted run."""
    run(large, tmp_path / "once", slice_bytes=40_000)
    options = {"slice_bytes": 40_000, "workers": 2}
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.support.corpora import run\n"
        f"if __name__ == '__main__':\n    run(Path(sys.argv[1]), Path(sys.argv[2]), **{options!r})\n"
    )
    for slices in (3, 9):
        with started(large, tmp_path / "killed", program=program) as process:
            waited_for(tmp_path / "killed", slices, process)
            process.kill()  # the parent alone: its workers have to notice
    report = run(large, tmp_path / "killed", slice_bytes=40_000)
    assert (report.outcome, report.resumed, report.tally.conversations) == ("finished", True, 12 * len(CHATS) + len(BAD))
    for name in ("once/a.jsonl", "once/b.jsonl.gz", "once.errors.jsonl"):
        assert (tmp_path / name).read_bytes() == (tmp_path / name.replace("once", "killed")).read_bytes()
    assert not (tmp_path / "killed.parts").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_is_not_done_again(kind: str, tmp_path: Path) -> None:
    """A resumed run processes only the unfinished slices; a run after the end does nothing and reports the same."""
    source, output = store(tmp_path / f"in.{kind}", kind), tmp_path / f"out.{kind}"
    seen: list[BatchProgress] = []
    run(source, output, stop=lambda: slices_done(output) >= 2)
    parts = tmp_path / f"out.{kind}.parts"
    before = {path: path.stat().st_ino for path in parts.iterdir()}
    assert {path.suffix for path in before} == {".part", ".record"}
    assert run(source, output, stop=lambda: slices_done(output) >= 3, on_progress=seen.append).outcome == "interrupted"
    assert {path: path.stat().st_ino for path in before} == before
    done = seen[-1].bytes_done
    assert 0 < seen[-1].bytes_before <= done <= seen[-1].bytes_total
    assert kind != "jsonl" or seen[-1].bytes_before < done, "a small compressed file is read at once"
    first = run(source, output, on_progress=seen.append)
    assert (seen[-1].bytes_before, seen[-1].bytes_done) == (done, seen[-1].bytes_total)
    finished = Path(first.manifest).read_bytes()
    again = run(source, output, on_progress=seen.append)
    assert (seen[-1].bytes_before, seen[-1].bytes_done) == (seen[-1].bytes_total,) * 2
    assert Path(first.manifest).read_bytes() == finished
    assert (first.outcome, again.outcome, again.tally) == ("finished", "finished", first.tally)
    assert (first.resumed, again.resumed) == (True, False)
    assert [row["messages"] for row in read_rows(output, kind)] == expected()


def test_a_part_that_is_not_whole_is_done_again(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(BAD[0] + BAD[1] + lines(FEW))
    once = quick(source, tmp_path / "once.jsonl")
    seen: list[BatchProgress] = []
    quick(source, output, stop=lambda: slices_done(output) >= 6)
    parts = sorted((tmp_path / "out.jsonl.parts").glob("*.part"))
    parts[0].with_suffix(".record").unlink()
    parts[2].write_bytes(parts[2].read_bytes()[:-1])
    parts[3].unlink()
    record = parts[4].with_suffix(".record")
    record.write_bytes(record.read_bytes()[:-8])
    again = quick(source, output, on_progress=seen.append)
    assert seen[-1].bytes_before == len(BAD[1]) + len(lines(FEW[3:4])), "what is whole is not done again"
    assert output.read_bytes() == (tmp_path / "once.jsonl").read_bytes()
    assert errors_of(again) == errors_of(once)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": 400}, "budget was 300"),
        ({"counter": "bytes/4"}, "counter was 'chars/4'"),
        ({"slice_bytes": 2}, "slice_bytes was 1"),
        ({"strict": True}, "strict was False"),
        ({"format": "anthropic"}, "format was None and is now 'anthropic'"),
        ({"window": 1}, "window was None"),
        ({"max_bytes": 1}, "max_bytes was"),
        ({"column": "talk"}, "column was 'messages'"),
        ({"keys": ["a key of enough letters"]}, "signed was None and is now '"),
        ({"strategy": lambda index: iter(())}, "strategy was"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_batch_is_refused(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    """A batch with other settings is not resumed, and the error names the difference; with restart it starts again."""
    source = store(tmp_path / "in.jsonl", "jsonl", FEW)
    quick(source, tmp_path / "out.jsonl", stop=lambda: True)
    with pytest.raises(StateError, match="another batch") as caught:
        quick(source, tmp_path / "out.jsonl", **options)
    assert says in str(caught.value)
    assert "enough letters" not in str(caught.value)
    quick(source, tmp_path / "out.jsonl", stop=lambda: slices_done(tmp_path / "out.jsonl") >= 2)
    assert quick(source, tmp_path / "out.jsonl", stop=lambda: True, restart=True).tally.conversations == 0
    assert slices_done(tmp_path / "out.jsonl") == 0, "the finished work is discarded"
    assert quick(source, tmp_path / "out.jsonl", restart=True, **{**options, "strict": False}).outcome == "finished"


def plan(strategy: str = "", **more: Any) -> dict[str, Any]:
    return {"job": {"strategy": strategy, **more}, "slice_bytes": 1, "sources": [], "targets": []}


def test_a_folder_of_parts_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a run that ends within a second is waited for, and its file made again; without locks, nothing is locked."""
    arguments = (tmp_path / "m", tmp_path / "new" / "parts", plan())
    first = Manifest(*arguments, restart=False)
    (first.parts / "000000.joined").touch()
    slept: list[float] = []
    ends = [first.close]
    lock = fcntl.flock

    def lock_late(stream: Any, how: int) -> None:
        if slept and ends:
            ends.pop()()
        lock(stream, how)

    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(fcntl, "flock", lock_late)
    second = Manifest(*arguments, restart=True)
    assert not second.resumed
    assert [path.name for path in second.parts.iterdir()] == ["lock"]
    with pytest.raises(StateError, match="another process is running"):
        Manifest(*arguments, restart=False)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    third = Manifest(*arguments, restart=False)
    assert third.resumed
    (third.parts / ".compaction-x.part").touch()
    for manifest in (second, third):
        manifest.close()
    assert not second.parts.exists()


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    """An input that was renamed or added, or that changed after its output was written, is an error; nothing is written."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "in").mkdir(exist_ok=True)
        store(tmp_path / "in" / name, "jsonl", FEW)
    first = tmp_path / "out" / "a.jsonl"
    quick(tmp_path / "in", tmp_path / "out", stop=first.exists)
    assert list((tmp_path / "out.parts").glob("*.part")) == [], "the parts of an output that is written are deleted"
    with pytest.raises(StateError, match="the outputs were different"):
        quick(tmp_path / "in", tmp_path / "out", to="jsonl.gz")
    os.utime(tmp_path / "in" / "a.jsonl", ns=(1, 1))
    with pytest.raises(StateError, match=r"a\.jsonl has changed"):
        quick(tmp_path / "in", tmp_path / "out")
    (tmp_path / "in" / "b.jsonl").rename(tmp_path / "in" / "c.jsonl")
    with pytest.raises(StateError, match=r"c\.jsonl was not an input; .*b\.jsonl was an input"):
        quick(tmp_path / "in", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == [first]


def test_a_changed_input_is_read_again(tmp_path: Path) -> None:
    """The finished work of an input that has changed since is done again: the output is that of the new content."""
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"".join(BAD) + lines(FEW))
    first = quick(source, tmp_path / "out.jsonl", stop=lambda: slices_done(tmp_path / "out.jsonl") >= 3)
    assert len(errors_of(first)) == 3
    store(source, "jsonl", FEW[::-1])
    report = quick(source, tmp_path / "out.jsonl")
    assert (report.resumed, report.tally.conversations, report.errors) == (True, len(FEW), None)
    assert [row["id"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == [chat["id"] for chat in FEW[::-1]]


def test_an_output_that_went_is_missed(tmp_path: Path) -> None:
    source, output = store(tmp_path / "in.jsonl", "jsonl", FEW), tmp_path / "out.jsonl"
    quick(source, output)
    for spoil in (lambda: output.write_text("cut"), output.unlink):
        spoil()
        with pytest.raises(StateError, match="missing or changed"):
            quick(source, output)
    assert quick(source, output, restart=True).outcome == "finished"


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b"[]", b"[" * 9_999, b'{"compaction batch":99}']
    + [
        b'{"compaction batch":3%b}' % more
        for more in (b"", b',"joined":[]', b',"joined":{"0":NaN}', b',"tally":{"seconds":""}')
    ],
    ids=repr,
)
def test_a_manifest_that_is_none(content: bytes, tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl", FEW)
    (tmp_path / "out.jsonl.manifest.json").write_bytes(content)
    with pytest.raises(StateError, match="not a manifest"):
        quick(source, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl.manifest.json").read_bytes() == content
    assert not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.parametrize("kind", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_an_input_that_is_cut_short(kind: str, tmp_path: Path) -> None:
    """A damaged input is reported, its output is not written and the others are; once repaired, only it is read again."""
    (tmp_path / "in").mkdir()
    damaged = store(tmp_path / "in" / f"a.{kind}", kind)
    store(tmp_path / "in" / "b.jsonl", "jsonl")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-40])
    report = run(tmp_path / "in", tmp_path / "out")
    assert list(report.failed) == [str(damaged)]
    assert any(words in report.failed[str(damaged)] for words in ("complete file", "cut short"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.jsonl"]
    assert (report.outcome, report.is_well) == ("finished", False)
    damaged.write_bytes(whole)
    again = run(tmp_path / "in", tmp_path / "out")
    assert again.is_well
    assert again.tally.conversations == 2 * len(CHATS)
    assert [row["messages"] for row in read_rows(tmp_path / "out" / f"a.{kind}", kind)] == expected()


@pytest.mark.parametrize(("workers", "limit"), [(1, 30_000), (2, 2_300)], ids=["output", "part"])
def test_a_disk_that_is_full(workers: int, limit: int, tmp_path: Path) -> None:
    """A full disk is reported and leaves no output; with free space the batch resumes.

    A limit on the size of files stands for the disk: a part is over it, or the joined output alone.
    """
    source = store(tmp_path / "in.jsonl", "jsonl", CHATS * 5)
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\nfrom tests.support.corpora import run\nfrom compaction.errors import UnwritableFile\n"
        "if __name__ == '__main__':\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))\n"
        f"    try:\n        run(Path(sys.argv[1]), Path(sys.argv[2]), workers={workers})\n"
        "    except UnwritableFile as error:\n        sys.exit(str(error))\n"
    )
    code, _, said = ended(source, tmp_path / "out.jsonl", program=program)
    assert (code, str(source) in said) == (1, False)
    assert "cannot be written (File too large); free some space" in said
    assert not (tmp_path / "out.jsonl").exists()
    assert run(source, tmp_path / "out.jsonl").resumed
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected() * 5


def test_what_is_in_the_way_is_kept(tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl")
    (tmp_path / "a.jsonl.parts").mkdir()
    (tmp_path / "a.jsonl.parts" / "mine.txt").write_text("mine")
    (tmp_path / "b.jsonl.errors.jsonl").write_text("mine")
    for name, says in (("a.jsonl", "not a part file of a batch"), ("b.jsonl", "exists already")):
        with pytest.raises(UnwritableFile, match=says):
            run(source, tmp_path / name)
    assert [path.name for path in (tmp_path / "a.jsonl.parts").iterdir()] == ["mine.txt"]
    assert (tmp_path / "b.jsonl.errors.jsonl").read_text() == "mine"


@pytest.mark.parametrize("suffix", ["part", "record"])
def test_a_part_that_cannot_be_written(suffix: str, tmp_path: Path) -> None:
    """The error names the file and the remedy; when it can be written, the batch is resumed."""
    (tmp_path / "in.jsonl").write_bytes(lines(CHATS[:2]) + BAD[0])
    run(tmp_path / "in.jsonl", tmp_path / "out.jsonl", stop=lambda: True)
    blocked = tmp_path / "out.jsonl.parts" / f"000000-00000000.{suffix}"
    blocked.mkdir(parents=True)
    with pytest.raises(UnwritableFile, match=rf"0\.{suffix}: it cannot be written \(.+\); free some space .* is kept"):
        run(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    blocked.rmdir()
    assert run(tmp_path / "in.jsonl", tmp_path / "out.jsonl").resumed


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    """An output at whose place another process made a folder, or whose folder is a file, is an error that names it."""
    source = store(tmp_path / "in.jsonl", "jsonl", FEW)
    with pytest.raises(UnwritableFile, match=r"out\.jsonl: it cannot be written \([A-Z][a-z ]+\); check the folder"):
        quick(source, tmp_path / "out.jsonl", on_progress=lambda _: (tmp_path / "out.jsonl").mkdir(exist_ok=True))
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableFile, match=r"file: it cannot be written \([A-Z][a-z ]+\); check the folder"):
        quick(source, tmp_path / "file")
    with pytest.raises(UnwritableFile, match="may write to"):
        quick(source, tmp_path / "file" / "out.jsonl")


@pytest.mark.parametrize("slice_bytes", [4_000, 1_000_000])
def test_the_folder_of_parts_may_be_elsewhere(slice_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to a larger disk in the place of the folder of parts is followed, and left without files."""
    move = Path.replace

    def move_on_one_disk(source: Path, target: Path) -> Path:
        if source.resolve().parent != target.resolve().parent:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return move(source, target)

    monkeypatch.setattr(Path, "replace", move_on_one_disk)
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.jsonl.parts").symlink_to(tmp_path / "disk")
    source = store(tmp_path / "in.jsonl", "jsonl")
    assert run(source, tmp_path / "out.jsonl", slice_bytes=slice_bytes).outcome == "finished"
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == expected()
    assert list((tmp_path / "disk").iterdir()) == []


@pytest.mark.parametrize("call", [0, 1, 4, 9])
def test_a_stop_for_a_moment_stops_it(call: int, tmp_path: Path) -> None:
    """If ``stop`` returns true once, at whatever time, the batch ends interrupted and is resumed later."""
    calls = iter(range(10_000))
    source = store(tmp_path / "in.jsonl", "jsonl", FEW)
    report = quick(source, tmp_path / "out.jsonl", stop=lambda: next(calls) == call)
    assert (report.outcome, report.outputs, report.is_well) == ("interrupted", {}, False)
    assert quick(source, tmp_path / "out.jsonl").resumed


class Eager(InlinePool):
    """A pool that takes three slices at a time. Holds state: the slices it took."""

    max_pending = 3

    def __init__(self, config: WorkerConfig) -> None:
        super().__init__(config, lambda: False)
        self.taken: list[Slice] = []

    def submit(self, slice: Slice) -> Future[SliceResult]:
        self.taken.append(slice)
        return super().submit(slice)


def test_a_run_that_ends_before_it_says_so_is_resumed(tmp_path: Path) -> None:
    """A pool never has more slices than it takes; what is left after the output was written is counted again, not done."""
    inputs = [store(tmp_path / f"{name}.jsonl", "jsonl", FEW) for name in "ab"]
    pools: list[Eager] = []
    pending: list[int] = []

    def workers(config: WorkerConfig) -> Eager:
        pools.append(Eager(config))
        return pools[-1]

    def stops(now: BatchProgress) -> None:
        pending.append(len(pools[0].taken))
        if (tmp_path / "out.jsonl").exists():
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        quick(inputs, tmp_path / "out.jsonl", workers=workers, on_progress=stops)
    assert pending[0] == 3
    seen: list[BatchProgress] = []
    report = quick(inputs, tmp_path / "out.jsonl", workers=workers, on_progress=seen.append)
    assert seen[-1].bytes_before == seen[-1].bytes_total
    assert (report.outcome, report.resumed, report.tally.conversations) == ("finished", True, 2 * len(FEW))
    assert pools[1].taken == []
    assert [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")] == MESSAGES * 2


@attrs.frozen
class Deadly(Strategy):
    """A strategy that ends its process, or sleeps."""

    sleeps: bool = False

    def __call__(self, index: Any) -> Any:
        if not self.sleeps:
            os._exit(1)
        if index.included.messages > 1:
            time.sleep(10 * WAIT_SECONDS)  # longer than a test may take
        yield from ()


def test_a_worker_that_dies_ends_it(tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl", CHATS[:1])
    with pytest.raises(ConfigurationError, match="a worker process died; finished work is kept"):
        run(source, tmp_path / "out.jsonl", strategy=Deadly(), workers=2)


COLLECTIONS: list[int] = []
"""In a worker: how many full collections of garbage there were at each conversation."""


@attrs.frozen
class Inside(Strategy):
    """A strategy that fails unless its process is as a worker should be."""

    def __call__(self, index: Any) -> Any:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        warnings.warn("the parent has shown it", stacklevel=1)
        collections = gc.get_stats()[2]["collections"]
        assert collections not in COLLECTIONS
        assert not gc.isenabled()
        COLLECTIONS.append(collections)
        yield from ()


def test_a_worker_leaves_signals_to_its_parent(tmp_path: Path) -> None:
    """Neither signals nor warnings disturb it, and it collects garbage after each slice only."""
    source = store(tmp_path / "in.jsonl", "jsonl", CHATS[:4])
    report = run(source, tmp_path / "out.jsonl", strategy=Inside(), budget=None, workers=2, slice_bytes=1)
    assert (report.outcome, report.tally.bad, report.tally.conversations) == ("finished", 0, 4)


def test_an_error_ends_what_the_workers_do(tmp_path: Path) -> None:
    source = store(tmp_path / "in.jsonl", "jsonl", [{"messages": [user()]}, {"messages": turns(9)}])

    def fails(now: BatchProgress) -> None:
        raise RuntimeError("the caller's")

    with pytest.raises(RuntimeError, match="the caller's"):
        run(source, tmp_path / "out.jsonl", strategy=Deadly(sleeps=True), workers=2, slice_bytes=1, on_progress=fails)


HANGING = """
import sys, time
import compaction.batch.workers as workers
from compaction.batch.file_batch import compact_files
from compaction.cli import main

if __name__ == "__main__":
    compact_files.__kwdefaults__["slice_bytes"] = 40_000
    row = workers.compact_row
    workers.compact_row = lambda job, line, counts, **how: (
        (b'"last"' in line.text and time.sleep(300)) or row(job, line, counts, **how)
    )
    sys.argv[0] = "compaction"
    main()
"""


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_signal_stops_a_slice_that_takes_minutes(number: int, workers: int, tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM end the command within seconds and say what happens; the next run writes the same bytes."""
    source = store(tmp_path / "in.jsonl", "jsonl", [*CHATS * 10, {**CHATS[0], "id": "last"}])
    arguments = ("batch", source, "-o", tmp_path / "out.jsonl", "--budget", "300", "--counter", "chars/4")
    with started(*arguments, "--workers", str(workers), program=HANGING) as process:
        waited_for(tmp_path / "out.jsonl", 8, process)
        began = time.monotonic()
        process.send_signal(number)
        _, said = process.communicate(timeout=WAIT_SECONDS)
    assert time.monotonic() - began < 20  # about 1.5 s where nothing else runs; the slice would take five minutes
    again = "Ctrl-C" if number == signal.SIGINT else "the signal"
    assert process.returncode == 128 + number
    assert said.decode().splitlines() == [
        f"compaction: stopping: what is finished within 1 s is kept; {again} again stops at once",
        "compaction: interrupted; finished work is kept: run the same again to resume",
    ]
    assert slices_done(tmp_path / "out.jsonl") >= 8
    assert run(source, tmp_path / "out.jsonl", slice_bytes=40_000).resumed
    run(source, tmp_path / "once.jsonl", slice_bytes=40_000)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "once.jsonl").read_bytes()


HALF_STARTED = """
import concurrent.futures.process as process
from compaction.cli import main

def interrupted(executor):
    raise KeyboardInterrupt

process._ExecutorManagerThread = interrupted  # made when the processes run
main()
"""


def test_an_interrupt_while_the_workers_start(tmp_path: Path) -> None:
    """The workers that were started already end, too, so that the command does not wait for them."""
    source = store(tmp_path / "in.jsonl", "jsonl")
    options = ("-o", tmp_path / "out.jsonl", "--budget", "300", "--counter", "chars/4", "--workers", "2")
    assert ended("batch", source, *options, program=HALF_STARTED)[0] == 130


def test_the_time_left_falls_between_two_slices(tmp_path: Path) -> None:
    seen: list[BatchProgress] = []
    run(store(tmp_path / "in.jsonl", "jsonl"), tmp_path / "out.jsonl", on_progress=seen.append)
    some = attrs.evolve(seen[0], bytes_done=100, bytes_total=400, bytes_before=0, seconds_counted=10.0)
    assert [attrs.evolve(some, seconds=seconds).seconds_left for seconds in (10.0, 15.0, 90.0)] == [30.0, 25.0, 0.0]
    left = [attrs.evolve(some, seconds=10.0, bytes_before=before).seconds_left for before in (50, 99, 100)]
    assert left == [60.0, 3_000.0, None], "what an earlier run did took no time of this one"
