"""Whole runs of a session: undisturbed, with a failing store, killed and restarted, and from many threads and event loops.

Each view must equal the view of an undisturbed session at that turn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from compaction import last, presets
from compaction.errors import StateError
from compaction.session import CompactionSession
from compaction.stores import SessionStore
from compaction.strategies import Strategy, Summarization, Truncation
from compaction.summarizers import DigestSummarizer, SummaryBudget
from compaction.triggers import tokens_below, tokens_exceed

from .chats import system, tool_turns
from .limits import WAIT_SECONDS

Views = dict[int, str]
"""A digest of the view at each turn, by the number of messages in the list."""


_SIZES: Final[dict[str, Any]] = {"trigger": tokens_exceed(900), "target": tokens_below(500)}
_BUDGET: Final = SummaryBudget(floor=50, ceiling=80)
STRATEGIES: Final[dict[str, Callable[[], Strategy]]] = {
    "truncation": lambda: Truncation(keep=last(groups=2), **_SIZES),
    "digest": lambda: Summarization(DigestSummarizer(), keep=last(messages=4), budget=_BUDGET, **_SIZES),
    "adaptive": lambda: presets.adaptive(2_000),
}


def source(turns: int = 24) -> list[dict[str, Any]]:
    """A conversation of questions, calls, results and answers, about 130 tokens a turn, new objects each time."""
    return [system("You keep a store."), *tool_turns(turns)]


def turns_of(messages: list[dict[str, Any]]) -> list[int]:
    """The lengths of the list at which the agent requests an answer."""
    return [place for place, message in enumerate(messages) if message["role"] == "assistant"]


def new_session(name: str, store: SessionStore | None = None) -> CompactionSession:
    """A session with one of the strategies."""
    return CompactionSession(STRATEGIES[name](), counter="chars/4", clock=lambda: 0.0, window=2_000, store=store)


def take_turn(session: CompactionSession, messages: list[dict[str, Any]]) -> str:
    """Take a view, report its usage, whose overhead differs from turn to turn, and return the digest of the view."""
    view = session.view_sync(messages)
    overhead = 100 + len(messages) // 2 % 2
    session.record_usage({"prompt_tokens": session.index.included.tokens + overhead, "completion_tokens": 1})
    return digest(view)


def digest(view: list[Any]) -> str:
    """Return a short digest of a view."""
    return hashlib.blake2b(json.dumps(view, sort_keys=True).encode(), digest_size=8).hexdigest()


def undisturbed(name: str, turns: int = 24) -> Views:
    """Return the views of an undisturbed session that compacts several times."""
    session, messages = new_session(name), source(turns)
    views = {place: take_turn(session, messages[:place]) for place in turns_of(messages)}
    assert session.status().compactions > 1
    return views


class FailingStore(SessionStore):
    """A store in memory that fails at the calls with these numbers, from 0. Holds state: the saved states, and its calls."""

    def __init__(self, *failing: int) -> None:
        self.calls: list[str] = []
        self._failing = failing
        self._saved: dict[str, str] = {}

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) - 1 in self._failing:
            raise StateError("the disk is full")

    def load(self, id: str) -> dict[str, Any] | None:
        return json.loads(self._saved[id]) if id in self._saved else None

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        self._called("save")
        self._saved[id] = json.dumps(state)

    def save_anchor(self, id: str, anchor: int) -> bool:
        self._called("anchor")
        if id in self._saved:
            self._saved[id] = json.dumps({**json.loads(self._saved[id]), "anchor": anchor})
        return id in self._saved


def failing_run(name: str, failing: Collection[int], expected: Views, *, restart: bool) -> int:
    """Run a session whose store fails at these calls; with ``restart`` the session is loaded again after each saved turn.

    Returns:
        The number of calls of the store that save.
    """
    store, messages = FailingStore(*failing), source()
    session = new_session(name, store)
    for place in turns_of(messages)[: len(expected)]:
        assert take_turn(session, messages[:place]) == expected[place], f"{name}, calls {failing} fail, turn {place}"
        if restart and not session.status().failures:
            session = new_session(name, store)
    return len(store.calls)


_KILLED: Final = 0.4  # of the turns


def killed_run(name: str, path: Path, expected: Views, chance: random.Random, seconds: float) -> int:
    """Kill a process at random moments, and restart it until all turns are done.

    The process takes a turn only when it is told to, so it cannot finish before it is killed, however fast it is. It is forked
    from a server that has loaded everything, so that starting it takes no time.

    Returns:
        How often it was killed.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    left, killed = sorted(expected), 0
    while left:
        ours, theirs = processes.Pipe()
        process = processes.Process(target=_take_turns, args=(theirs, path, name, left[0]), daemon=True)
        process.start()
        theirs.close()
        answers = [ours.recv()]  # the process is ready
        for _ in left:
            ours.send("go")
            if chance.random() < _KILLED:
                break
            answers.append(ours.recv())
        time.sleep(chance.uniform(0, seconds))
        process.kill()
        process.join()
        with contextlib.suppress(EOFError, OSError):  # the end, perhaps within an answer
            while True:
                answers.append(ours.recv())
        killed += process.exitcode == -signal.SIGKILL
        for place, view in answers[1:]:
            assert (place, view) == (left[0], expected[place]), f"{name}, turn {place} after {killed} kills"
            left.pop(0)
    return killed


def _take_turns(parent: Connection, path: Path, name: str, first: int) -> None:
    """Take the turns from a place on, each when the parent says so, and answer with a digest of each view."""
    messages = source()
    session = new_session(name, SessionStore(path))
    parent.send("ready")
    for place in turns_of(messages):
        if place >= first:
            parent.recv()
            parent.send((place, take_turn(session, messages[:place])))


def shared_run(name: str, kinds: list[str], expected: Views, turns: int = 24) -> None:
    """Call a session from several threads at once for each view.

    Args:
        name: The strategy.
        kinds: What each thread has: an event loop of ``asyncio`` or ``trio``, or ``none``.
        expected: The views of an undisturbed run.
        turns: The turns of the conversation.
    """
    shared = _Shared(new_session(name), source(turns), expected, threading.Barrier(len(kinds), timeout=WAIT_SECONDS))
    threads = [threading.Thread(target=shared.run, args=[kind], daemon=True) for kind in kinds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not any(thread.is_alive() for thread in threads), f"{name}: a turn hangs"
    assert shared.wrong == [], name


@attrs.define
class _Shared:
    """A session that several threads call. Holds state: the errors."""

    session: CompactionSession
    messages: list[dict[str, Any]]
    expected: Views
    together: threading.Barrier
    wrong: list[object] = attrs.field(factory=list[object])

    def run(self, kind: str) -> None:
        """Take every turn in this thread."""
        try:
            if kind == "none":
                for place in turns_of(self.messages):
                    self._check(place, self.session.view_sync(self.messages[:place]))
            else:
                anyio.run(self._awaited, backend=kind)
        except BaseException as error:
            self.together.abort()
            self.wrong.append(error)

    async def _awaited(self) -> None:
        for place in turns_of(self.messages):
            self._check(place, await self.session.view(self.messages[:place]))

    def _check(self, place: int, view: list[Any]) -> None:
        """Compare a view; when all threads have their views, one of them reports usage."""
        if digest(view) != self.expected[place]:
            self.wrong.append(place)
        if self.together.wait() == 0:
            self.session.record_usage({"prompt_tokens": self.session.index.included.tokens + 100, "completion_tokens": 1})
        self.together.wait()
