"""Every view of a session is the same with failing stores, killed processes, and many threads and event loops.

``make soak`` kills more processes, with any seed.
"""

from __future__ import annotations

import itertools
import random
from functools import cache
from pathlib import Path

import pytest

from tests.support.session_runs import STRATEGIES, Views, failing_run, killed_run, shared_run, undisturbed

strategies = pytest.mark.parametrize("name", STRATEGIES)
_SHORT = 5


@cache
def expected(name: str) -> Views:
    return undisturbed(name)


@strategies
@pytest.mark.parametrize("restart", [False, True])
def test_a_save_fails_at_each_call(name: str, restart: bool) -> None:
    """All views are the undisturbed ones if one call of the store fails; every fourth call is tried.

    The run keeps its session, or restarts from the store after each turn that was saved.
    """
    calls = failing_run(name, (), expected(name), restart=restart)
    assert calls > len(expected(name))
    for failing in range(0, calls, 4):
        failing_run(name, {failing}, expected(name), restart=restart)


@strategies
def test_every_subset_of_saves_fails(name: str) -> None:
    """All views of a short run are the undisturbed ones, whichever of its last five saves fail."""
    views = expected(name)
    short = dict(itertools.islice(views.items(), _first_compaction(name) + 1))
    last = failing_run(name, (), short, restart=False)
    for number in range(1 << _SHORT):
        failing = {last - 1 - bit for bit in range(_SHORT) if number >> bit & 1}
        failing_run(name, failing, short, restart=True)


def _first_compaction(name: str) -> int:
    """The number of turns before the first compaction; 24 messages are well past every trigger."""
    return next(place for place, length in enumerate(expected(name)) if length > 40)


@strategies
def test_killed_at_random_moments(name: str, tmp_path: Path) -> None:
    """After a process was killed with SIGKILL, the next process continues with the views of an undisturbed run."""
    chance = random.Random(name)
    assert killed_run(name, tmp_path / "sessions.db", expected(name), chance, 0.02) >= 1


@strategies
@pytest.mark.parametrize(
    "kinds",
    [["asyncio", "asyncio"], ["asyncio", "trio"], ["none"] * 8, ["asyncio", "trio", "none", "none"] * 2],
    ids=["two loops", "two backends", "eight threads", "mixed"],
)
def test_many_at_once(name: str, kinds: list[str]) -> None:
    """Threads and event loops that share a session all get the views of an undisturbed run."""
    shared_run(name, kinds, expected(name))
