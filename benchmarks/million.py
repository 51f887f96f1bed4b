"""A batch of a million conversations, run once without interruption and once killed three times; the outputs are compared.

    python -m benchmarks.million --corpus FOLDER --work FOLDER --count 1000000

The conversations are drawn from recorded ones so that their mean is about 5 kB, and each gets a number. ``--work`` needs three
times their size. With ``--engine ray``, actors on a Ray cluster of this machine do the run that is killed. Memory is measured
twice a second over the process and its workers; memory they share counts once.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MEAN_BYTES = 5_000
PROGRAM = """
import sys
from compaction import presets
from compaction.batch import Job, compact_files
if __name__ == "__main__":
    workers = int(sys.argv[4])
    if sys.argv[5] == "ray":
        from compaction.batch import ray_workers
        workers = ray_workers(workers)
    done = compact_files(sys.argv[1], sys.argv[2], Job(presets.context_window(2_000), counter=sys.argv[3]), workers=workers)
    tally = done.tally
    print(done.outcome, f"{tally.conversations:,} conversations, {tally.changed:,} changed, {tally.bad} bad,",
          f"{tally.messages_before:,} messages, {tally.tokens_before:,} to {tally.tokens_after:,} tokens,",
          f"{tally.seconds:.0f} CPU s in conversations")
"""


def generate(corpus: Path, path: Path, count: int) -> None:
    """Write conversations, drawing shorter ones more often so that they have the given mean size."""
    bodies: list[bytes] = []
    for file in sorted(corpus.glob("*.jsonl.gz")):
        with gzip.open(file) as lines:
            bodies += [json.dumps(json.loads(line)["messages"]).encode() for line in lines]
    draw = random.Random(0)
    power = power_for(bodies)
    weights = [1 / len(body) ** power for body in bodies]
    with path.open("wb") as out:
        for number, body in enumerate(draw.choices(bodies, weights, k=count)):
            out.write(b'{"id": "chat-%d", "messages": %b, "score": %d}\n' % (number, body, number % 7))


def power_for(bodies: list[bytes]) -> float:
    """Return the power of the size by which long conversations are drawn less often, for this mean size."""
    low, high = 0.0, 3.0
    for _ in range(40):
        power = (low + high) / 2
        weights = [1 / len(body) ** power for body in bodies]
        mean = sum(len(body) * weight for body, weight in zip(bodies, weights, strict=True)) / sum(weights)
        low, high = (power, high) if mean > MEAN_BYTES else (low, power)
    return low


def family(root: int) -> Iterator[int]:
    """Return a process and its descendants."""
    yield root
    try:
        children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def memory(root: int) -> int:
    """Return the bytes of memory of a process and its descendants; a shared page is divided among those that share it."""
    total = 0
    for process in family(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def run(source: Path, output: Path, arguments: argparse.Namespace, engine: str, kill_at: float | None) -> tuple[float, int]:
    """Run the batch, or kill it after this share of its slices; return the seconds and the peak of memory."""
    parts = output.with_name(f"{output.name}.parts")
    slices = source.stat().st_size / 1_000_000
    command = [sys.executable, "-c", PROGRAM, str(source), str(output), arguments.counter, str(arguments.workers), engine]
    start, peak = time.monotonic(), 0
    with subprocess.Popen(command, start_new_session=True) as process:
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            done = len(list(parts.glob("*.record")))
            if kill_at is not None and done >= kill_at * slices:
                os.killpg(process.pid, signal.SIGKILL)
                say(f"killed with {done} slices of {slices:.0f} done")
                break
            time.sleep(0.5)
    if kill_at is None and process.returncode:
        raise SystemExit(f"it ended with {process.returncode}")
    return time.monotonic() - start, peak


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def say(what: str) -> None:
    print(what, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of recorded conversations")
    parser.add_argument("--work", type=Path, required=True, help="folder for the files; created if missing, and emptied first")
    parser.add_argument("--count", type=int, default=1_000_000, help="number of conversations")
    parser.add_argument("--counter", default="chars/4", help="token counter")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help="engine of the run that is killed")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    source = arguments.work / "in.jsonl"
    start = time.monotonic()
    generate(arguments.corpus, source, arguments.count)
    size = source.stat().st_size
    say(f"{arguments.count:,} conversations, {size:,} bytes, written in {time.monotonic() - start:.0f} s")
    seconds, peak = run(source, arguments.work / "once.jsonl", arguments, "local", None)
    say(f"undisturbed: {seconds:.0f} s, {size / seconds / 1e6:.1f} MB/s, peak {peak / 1e6:.0f} MB")
    first = digest(arguments.work / "once.jsonl")
    for share in (0.2, 0.5, 0.8):
        seconds, peak = run(source, arguments.work / "killed.jsonl", arguments, arguments.engine, share)
        say(f"killed after {seconds:.0f} s, peak {peak / 1e6:.0f} MB")
    seconds, peak = run(source, arguments.work / "killed.jsonl", arguments, arguments.engine, None)
    say(f"resumed: {seconds:.0f} s, peak {peak / 1e6:.0f} MB")
    second = digest(arguments.work / "killed.jsonl")
    say(f"sha256 {first[:16]}... and {second[:16]}...: {'the same' if first == second else 'DIFFERENT'}")
    raise SystemExit(first != second)


if __name__ == "__main__":
    main()
