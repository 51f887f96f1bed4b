"""Soak tests with random edits, fuzzed inputs and hosts that change lists: ``make soak``; docs/reliability.md has figures.

    python -m benchmarks.soak --seed 1 --date 2026-11-22 --write docs/reliability.md

Eight parts, all but the sessions in two processes:

- edits: up to twelve random edits of a valid or damaged conversation, checked against laws 1 to 4, a fresh count and a
  rollback;
- fuzz: conversations of arbitrary content, under every strategy and preset, in sessions, stored and read again, repaired and
  converted; each must give a result or a typed error in less than a minute;
- hosts: the laws of ``tests/laws/test_hosts.py`` with other seeds;
- sessions: processes that run the turns of a session, killed at random moments and started again;
- interruptions: the laws of ``tests/laws/test_interruptions.py`` at every place, or at so many of each case, and those of
  ``tests/laws/test_tenants.py`` with other tenants;
- words: random sessions of agents, in which nothing a person said may be lost without a summary (law 11);
- files: pipeline files with mistakes, in TOML, YAML and JSON; each is a strategy that can be written again, or a typed error;
- laws: each property in `tests/laws` and `tests/formats`, with 2,000 random examples, or pairs of one and a strategy,
  instead of 4 to 50.

A problem is printed with the seed that reproduces it, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import logging
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchmarks.tables import Section, table, written
from compaction.formats import FORMATS
from tests.laws import test_hosts, test_interruptions, test_tenants
from tests.support.fuzzed import EVERY_STRATEGY, check_file, check_input
from tests.support.random_edits import RUNS_PER_CONVERSATION, RandomEdits, check_run, random_edits
from tests.support.rulebook import is_valid
from tests.support.session_runs import STRATEGIES, killed_run, undisturbed
from tests.support.wires import SOURCES, any_conversation, wrecked
from tests.support.worded_sessions import problems as lost_in

_CHUNK: Final = 50
"""Conversations, inputs or seeds in one task."""
_EDITS_PER_CONVERSATION: Final = 6 * RUNS_PER_CONVERSATION
"""Edits per run, slightly below the mean, so that there are at least as many edits as requested."""
_SECONDS: Final = 60
"""An input that takes longer counts as a hang."""
_UNITS: Final = {
    "edits": ("conversations", "valid", "runs", "edits asked for", "applied"),
    "fuzz": ("inputs", "valid", "compactions", "with a result"),
    "hosts": ("examples",),
}
"""The unit that each part counts."""


@attrs.frozen
class Task:
    """Some conversations of one part in one format, generated from one seed."""

    part: str
    format: str
    seed: int
    count: int


@attrs.define
class Tally:
    """The counts and problems of tasks. Holds state: it grows with each task."""

    counts: dict[str, int] = attrs.field(factory=dict[str, int])
    problems: list[str] = attrs.field(factory=list[str])
    seconds: float = 0.0

    def add(self, unit: str, count: int = 1) -> None:
        self.counts[unit] = self.counts.get(unit, 0) + count

    def take(self, other: Tally) -> None:
        for unit, count in other.counts.items():
            self.add(unit, count)
        self.problems += other.problems
        self.seconds += other.seconds


def tried(task: Task) -> Tally:
    """Run a task; problems are added to the tally, not raised."""
    logging.disable(logging.CRITICAL)  # strategies warn about failed summaries, which these inputs provoke
    signal.signal(signal.SIGALRM, _hangs)
    tally, began = Tally(), time.perf_counter()
    {"edits": _edits, "fuzz": _fuzz, "hosts": _hosts}[task.part](task, tally)
    tally.seconds = time.perf_counter() - began
    return tally


def _hangs(*_: object) -> None:
    raise TimeoutError(f"it took more than {_SECONDS} seconds")


def _checked(tally: Tally, check: Callable[[], None], *about: object) -> None:
    """Run a check; any exception it raises is a problem."""
    signal.alarm(_SECONDS)
    try:
        check()
    except Exception:
        tally.problems.append("\n".join([*map(repr, about), traceback.format_exc(limit=-3)]))
    finally:
        signal.alarm(0)


def _given(task: Task, *drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Run a function on this many examples, without a database of examples and without shrinking."""

    def run(check: Callable[..., None]) -> None:
        looked = settings(
            max_examples=task.count,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )(given(*drawn)(check))
        seed(task.seed)(looked)()

    return run


def _edits(task: Task, tally: Tally) -> None:
    format = _named(task.format)

    @_given(task, any_conversation(format), random_edits())
    def run(messages: list[Any], edits: RandomEdits) -> None:
        tally.add("conversations")
        tally.add("valid", is_valid(format, messages))
        for _ in range(RUNS_PER_CONVERSATION):
            tally.add("runs")
            _checked(tally, lambda: tally.add("applied", check_run(format, messages, edits)), task, messages, edits.asked)
            tally.add("edits asked for", len(edits.asked))


def _fuzz(task: Task, tally: Tally) -> None:
    format, draw = _named(task.format), random.Random(task.seed)

    @_given(task, wrecked(SOURCES[format.name]))
    def run(messages: list[Any]) -> None:
        tally.add("inputs")
        tally.add("valid", is_valid(format, messages))
        tally.add("compactions", len(EVERY_STRATEGY))
        check = lambda: tally.add("with a result", check_input(format, messages, draw, EVERY_STRATEGY))  # noqa: E731
        _checked(tally, check, task, messages)


def _hosts(task: Task, tally: Tally) -> None:
    format = _named(task.format)
    for number in range(task.seed, task.seed + task.count):
        for strategy in test_hosts.STRATEGIES:
            for host in (*test_hosts.HOSTS, None):
                tally.add("examples")
                check = lambda: _host(strategy, host, format, number)  # noqa: B023, E731
                _checked(tally, check, task, strategy, host, number)


def _host(strategy: str, host: str | None, format: Any, number: int) -> None:
    if host is None:
        test_hosts.test_hosts_that_meddle(strategy, format, number)
        return
    try:
        test_hosts.test_every_host_gets_the_same_views(strategy, host, format, number)
    except AssertionError as error:
        if "edit_count >" not in str(traceback.extract_tb(error.__traceback__)[-1].line):
            raise  # its last line checks that the seed makes a long conversation, which not every seed does


def _named(name: str) -> Any:
    return next(format for format in FORMATS if format.name == name)


def tasks(part: str, count: int, number: int) -> Iterator[Task]:
    """Yield the tasks of one part, format by format."""
    for format in FORMATS:
        for first in range(0, count, _CHUNK):
            yield Task(part, format.name, number + first, min(_CHUNK, count - first))


def soak(part: str, count: int, number: int, workers: int) -> dict[str, Tally]:
    """Run a part in several processes, with progress on standard error; return each format's tally."""
    tallies = {format.name: Tally() for format in FORMATS}
    with ProcessPoolExecutor(workers) as pool:
        work = {pool.submit(tried, task): task for task in tasks(part, count, number)}
        for done, future in enumerate(as_completed(work), 1):
            tally = future.result()
            tallies[work[future].format].take(tally)
            for problem in tally.problems:
                print(f"PROBLEM in {part}:\n{problem}", flush=True)
            if done % max(1, len(work) // 10) == 0:
                print(f"{part}: {done * 100 // len(work)} %", flush=True)
    return tallies


def soak_sessions(kills: int, number: int) -> str:
    """Kill processes this many times; a view that differs is an error that names its turn."""
    chance, killed, turns = random.Random(number), 0, 0
    expected = {name: undisturbed(name) for name in STRATEGIES}
    while killed < kills:
        for name, views in expected.items():
            with tempfile.TemporaryDirectory() as folder:
                killed += killed_run(name, Path(folder, "sessions.db"), views, chance, 0.02)
                turns += len(views)
    return f"Sessions: {killed:,} processes were killed in {turns:,} turns; every view equals that of an undisturbed process."


def soak_interruptions(most: int, tenants: int, number: int, workers: int) -> tuple[str, int]:
    """Interrupt at up to ``most`` places of each case, and for so many tenants; return the sentence, and the failed checks."""
    checks: list[Callable[[], object]] = []
    places = 0
    for case in test_interruptions.CASES if most else ():
        chosen = case.places(most, number)
        places += len(chosen)
        checks += [partial(case.check, chosen[at : at + _CHUNK]) for at in range(0, len(chosen), _CHUNK)]
    for first in range(0, tenants, _CHUNK):
        own, rng = range(first, min(first + _CHUNK, tenants)), random.Random(number + first)
        checks += [partial(test_tenants.check_requests, each, rng, own) for each in test_tenants.SUMMARIZERS]
        checks.append(partial(test_tenants.check_sessions, rng, own))
    with ProcessPoolExecutor(workers, initializer=signal.signal, initargs=(signal.SIGALRM, _hangs)) as pool:
        broken = [found for found in pool.map(_raised, checks) if found]
    for found in broken:
        print("PROBLEM in interruptions:", found, sep="\n", flush=True)
    said = (
        f"Interruptions: calls of sessions, pools and stores were interrupted at {places:,} places, and summaries and sessions"
    )
    return f"{said} of {tenants:,} tenants at random lines; {len(broken):,} checks failed.", len(broken)


def _raised(check: Callable[[], object]) -> str:
    """Run a check of up to ``_CHUNK`` places or tenants, and return what it raises."""
    signal.alarm(_CHUNK * _SECONDS)
    try:
        check()
    except Exception:
        return f"{check}\n{traceback.format_exc(limit=-3)}"
    finally:
        signal.alarm(0)
    return ""


def soak_words(sessions: int, number: int, workers: int) -> tuple[str, int]:
    """Run random sessions against law 11; return the sentence for the page, and the number of sessions that broke it."""
    with ProcessPoolExecutor(workers, initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        broken = [found for found in pool.map(lost_in, range(number, number + sessions), chunksize=_CHUNK) if found]
    for found in broken:
        print("PROBLEM in words:", *found, sep="\n", flush=True)
    said = f"Words: in {sessions:,} sessions of agents, with summarizers that fail, are slow, empty or too long,"
    return f"{said} {len(broken):,} lost a message of the user without a summary and without a failure that says so.", len(
        broken
    )


def soak_files(files: int, number: int, workers: int) -> tuple[str, int]:
    """Read pipeline files with mistakes; return the sentence for the page, and the number of files that broke something."""
    seeds = range(number, number + files)
    with ProcessPoolExecutor(workers, initializer=signal.signal, initargs=(signal.SIGALRM, _hangs)) as pool:
        done = list(pool.map(_file, seeds, chunksize=_CHUNK))
    broken = [found for found in done if isinstance(found, str)]
    for found in broken:
        print("PROBLEM in files:", found, sep="\n", flush=True)
    strategies = sum(found is True for found in done)
    sentence = f"Files: of {files:,} pipeline files with mistakes {strategies:,} still were a strategy, which was written and"
    return f"{sentence} read again; all others but {len(broken):,} raised a typed error.", len(broken)


def soak_laws(profile: str, number: int, workers: int) -> tuple[str, int]:
    """Run the properties with a profile of Hypothesis; return the sentence for the page, and 1 if one is broken."""
    options = [f"--hypothesis-profile={profile}", f"--hypothesis-seed={number}", "--timeout=36000", "-n", str(workers)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", *options, "tests/laws", "tests/formats"]
    broken = int(subprocess.run(command, check=False).returncode != 0)
    found = "some properties fail" if broken else "every property holds"
    return f"Laws: with the profile `{profile}` of Hypothesis, {found}.", broken


def _file(number: int) -> bool | str:
    """Check the file of a seed; return the problem, or whether it is a strategy."""
    signal.alarm(_SECONDS)
    try:
        return check_file(number)
    except Exception:
        return f"seed {number}\n{traceback.format_exc(limit=-3)}"
    finally:
        signal.alarm(0)


def rows(part: str, tallies: dict[str, Tally]) -> list[str]:
    """Return the table of a part in Markdown."""
    heads = ["format", *_UNITS[part], "problems", "seconds"]
    cells = [
        [
            f"`{name}`",
            *(f"{tally.counts.get(unit, 0):,}" for unit in _UNITS[part]),
            f"{len(tally.problems):,}",
            f"{tally.seconds:,.0f}",
        ]
        for name, tally in tallies.items()
    ]
    return ["", *table(heads, cells)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=500_000, help="minimum of random edits for each format (%(default)s)")
    parser.add_argument("--inputs", type=int, default=10_000, help="fuzzed inputs for each format (%(default)s)")
    parser.add_argument("--hosts", type=int, default=81_000, help="examples of hosts over all formats (%(default)s)")
    parser.add_argument("--kills", type=int, default=300, help="number of killed processes (%(default)s)")
    parser.add_argument(
        "--words", type=int, default=12_000, help="sessions in which a person's words may be lost (%(default)s)"
    )
    parser.add_argument("--places", type=int, default=30_000, help="the most places of a case to interrupt (%(default)s)")
    parser.add_argument("--tenants", type=int, default=4_000, help="tenants whose calls are interrupted (%(default)s)")
    parser.add_argument("--files", type=int, default=200_000, help="pipeline files with mistakes (%(default)s)")
    parser.add_argument("--laws", default="nightly", help="the profile of Hypothesis for the laws, or nothing (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="the seed; use another one each time")
    parser.add_argument("--workers", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="the date that the page shows")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write the figures to")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    number = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {number}", flush=True)
    per_seed = len(FORMATS) * len(test_hosts.STRATEGIES) * (len(test_hosts.HOSTS) + 1)
    wanted = {
        "edits": -(-options.edits // _EDITS_PER_CONVERSATION),
        "fuzz": options.inputs,
        "hosts": -(-options.hosts // per_seed),
    }
    lines = ["", f"Made by `make soak` on {options.date}, with seed {number}, in {options.workers} processes."]
    found = 0
    for part, count in wanted.items():
        tallies = soak(part, count, number, options.workers)
        found += sum(len(tally.problems) for tally in tallies.values())
        lines += rows(part, tallies)
    if options.kills:
        lines += ["", soak_sessions(options.kills, number)]
    if options.places or options.tenants:
        sentence, broken = soak_interruptions(options.places, options.tenants, number, options.workers)
        found += broken
        lines += ["", sentence]
    for run, examples in ((soak_words, options.words), (soak_files, options.files), (soak_laws, options.laws)):
        sentence, broken = run(examples, number, options.workers) if examples else ("", 0)
        found += broken
        lines += ["", sentence] if examples else []
    print("\n".join(lines))
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(written(page, [Section("soak", (*lines, ""))]), encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
