"""Random edits in great number, in every format, and killed sessions: ``make soak``; docs/reliability.md has a run's figures.

    python -m benchmarks.soak --runs 100000 --seed 1

Each run asks for up to twelve random edits of one conversation, valid or damaged, and is checked against laws 1 to 4, a fresh
count and a rollback. The first run that breaks one of them ends the program, with the conversation and the edits.

Then processes that take a session's turns are killed at random moments and started again, until so many were killed: each view
is that of an undisturbed process.
"""

from __future__ import annotations

import argparse
import random
import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.tables import table
from compaction.formats import MessageFormat
from tests.support.random_edits import (
    FORMATS,
    RUNS_PER_CONVERSATION,
    RandomEdits,
    any_conversation,
    check_run,
    random_edits,
)
from tests.support.session_runs import STRATEGIES, killed_run, undisturbed

_HEADS = ["format", "conversations", "of them valid", "runs", "edits asked for", "applied", "new problems", "seconds"]


@attrs.define
class Soaked:
    """What was tried in one format. Holds state: it grows with each run."""

    conversations: int = 0
    valid: int = 0
    runs: int = 0
    asked: int = 0
    applied: int = 0
    seconds: float = 0.0


def soak(format: MessageFormat, runs: int, number: int) -> Soaked:
    """Make so many runs; a failure is raised as it is, with what led to it."""
    done = Soaked()

    @seed(number)
    @settings(
        max_examples=-(-runs // RUNS_PER_CONVERSATION),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(messages=any_conversation(format), edits=random_edits())
    def tried(messages: list[Any], edits: RandomEdits) -> None:
        done.conversations += 1
        done.valid += all(problem.rule == "pending-call" for problem in format.validate(messages))
        for _ in range(RUNS_PER_CONVERSATION):
            done.applied += check_run(format, messages, edits)
            done.asked += len(edits.asked)
            done.runs += 1

    began = time.perf_counter()
    tried()
    done.seconds = time.perf_counter() - began
    return done


def soak_sessions(kills: int, number: int) -> None:
    """Kill so many processes; a view that differs is raised with its turn."""
    chance, killed, turns = random.Random(number), 0, 0
    expected = {name: undisturbed(name) for name in STRATEGIES}
    while killed < kills:
        for name, views in expected.items():
            with tempfile.TemporaryDirectory() as folder:
                killed += killed_run(name, Path(folder, "sessions.db"), views, chance, 0.1)
                turns += len(views)
    print(f"sessions: {killed:,} processes killed, {turns:,} turns, every view as undisturbed", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Random edits in great number, in every format.")
    parser.add_argument("--runs", type=int, default=100_000, help="how many, all formats together (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the conversations and the edits; another one each time")
    parser.add_argument("--kills", type=int, default=300, help="how many processes are killed (%(default)s)")
    options = parser.parse_args()
    number = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {number}", flush=True)
    rows: list[list[str]] = []
    for format in FORMATS:
        done = soak(format, options.runs // len(FORMATS), number)
        rows.append(_cells(format.name, done))
        print("  ".join(rows[-1]), flush=True)
    print()
    print("\n".join(table(_HEADS, rows)))
    soak_sessions(options.kills, number)


def _cells(name: str, done: Soaked) -> list[str]:
    counts = (done.conversations, done.valid, done.runs, done.asked, done.applied, 0)
    return [f"`{name}`", *[f"{count:,}" for count in counts], f"{done.seconds:,.0f}"]


if __name__ == "__main__":
    main()
