"""The law of interruptions: a call that is interrupted anywhere leaves a session and a pool as they were, or as it wanted them.

The interruption is a ``KeyboardInterrupt``, as Ctrl-C or a notebook's stop button raises it, at calls of functions and at
bytecodes: at all of them if there are few, otherwise at random ones.
"""

from __future__ import annotations

import copy
import dis
import gc
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import attrs
import pytest

from compaction.session import CompactionSession, SessionPool
from compaction.stores import SessionStore
from tests.support.chats import Chat, assistant, tool_turns, user
from tests.support.hosts import host_strategies

STRATEGIES: Final = host_strategies(250, lambda request: f"Summary of {len(request.groups)} groups.")
CHAT: Final[Chat] = [{"role": "system", "content": "be brief"}, *tool_turns(6, words=20), user("and now?")]
EVERY: Final = 150
SOME: Final = 20
FIRST, SECOND, THIRD = CHAT[:14], CHAT[:22], [*CHAT, assistant("so"), user("really?")]
ALTERED: Final[Chat] = [*CHAT[:5], user("no, this"), *CHAT[6:22]]


def _ignored(_: object) -> None:
    pass


_CHECKED: Final = ("RESUME", "JUMP_BACKWARD", "CALL")
"""After these bytecodes, an interpreter handles signals; it handles none between a lock and the ``with`` that holds it."""


class Interruption:
    """Raises ``KeyboardInterrupt`` at one place of a run, or does something else. Holds state: the number of places so far.

    Args:
        place: The number of the place, from 1.
        bytecodes: Whether each bytecode before which signals are handled is a place; otherwise, the beginning of each function
            and the end of each function written in C.
        instead: Called at that place, as another thread could, instead of the interruption.
    """

    def __init__(self, place: int, *, bytecodes: bool = False, instead: Callable[[], object] | None = None) -> None:
        self.place = place
        self.instead = instead
        self.count = 0
        self.bytecodes = bytecodes
        self._before: dict[int, str] = {}
        self._codes: dict[CodeType, bytes] = {}

    def during(self, work: Callable[[], object]) -> bool:
        """Do the work, and return whether it was interrupted.

        An interruption while a generator or a coroutine is finalized is not raised but reported; these reports are ignored.
        """
        reporting, sys.unraisablehook = sys.unraisablehook, _ignored
        tracing = sys.gettrace()
        if self.bytecodes:
            sys.settrace(self._traced)
        else:
            sys.setprofile(self._profiled)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(tracing)
            sys.setprofile(None)
            sys.unraisablehook = reporting
        return self.count >= self.place

    def _next(self) -> None:
        self.count += 1
        if self.count == self.place:
            sys.settrace(None)
            sys.setprofile(None)
            if self.instead is None:
                raise KeyboardInterrupt
            self.instead()

    def _profiled(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename != __file__:
            self._next()

    def _traced(self, frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_code.co_filename != __file__:
            code = self._codes.setdefault(frame.f_code, frame.f_code.co_code)
            before = self._before.get(id(frame), "")
            self._before[id(frame)] = dis.opname[code[frame.f_lasti]]
            if before.startswith(_CHECKED):
                self._next()
        return self._traced


def options() -> dict[str, Any]:
    return {"counter": "chars/4", "clock": lambda: 0.0}


Law: TypeAlias = Callable[[Interruption], bool]
"""Does the same work each time, with an interruption, checks what follows, and returns whether the work was interrupted."""


def lists(second: Chat) -> list[Chat]:
    """The lists of three calls, as new objects."""
    return [copy.deepcopy(each) for each in (FIRST, second, THIRD)]


def law(make: Callable[[str], Any], lists: Callable[[Chat], list[Chat]], at: int, state: Callable[[Any], object]) -> Any:
    """Return the law that an interrupted call is as if it had not been made; then it is made again.

    Args:
        make: Makes a session or a pool with a strategy.
        lists: The lists of its calls.
        at: The number of the call that is interrupted.
        state: What is compared in the end besides all views.
    """

    def of(name: str, second: Chat) -> Law:
        whole = make(name)
        expected = [whole.view_sync(each) for each in lists(second)]

        def interrupted(interruption: Interruption) -> bool:
            one, calls = make(name), lists(second)
            views = [one.view_sync(each) for each in calls[:at]]
            found = interruption.during(lambda: one.view_sync(calls[at]))
            views += [one.view_sync(each) for each in calls[at:]]
            assert views == expected, interruption.place
            assert state(one) == state(whole), interruption.place
            return found

        return interrupted

    return of


def pool_of(name: str) -> SessionPool:
    numbers = itertools.count()
    return SessionPool(STRATEGIES[name](), new_id=lambda: f"s{next(numbers)}", **options())


def lists_of_a_pool(second: Chat) -> list[Chat]:
    """The same after the first call of another conversation with the same beginning, and before its second."""
    other = [*CHAT[:10], user("of another"), assistant("so?"), user("secret")]
    return [other, *lists(second), [*other, assistant("yes"), user("so")]]


def short_lists(_: Chat) -> list[Chat]:
    """The lists of a conversation that is so short that each place of its first call can be interrupted."""
    return [[user("hi")], [user("hi"), assistant("so?"), user("no")]]


of_a_session = law(lambda name: CompactionSession(STRATEGIES[name](), **options()), lists, 1, lambda session: session.to_dict())
of_a_pool = law(pool_of, lists_of_a_pool, 2, len)
of_a_new_conversation = law(pool_of, lists, 0, len)
of_a_short_conversation = law(pool_of, short_lists, 0, len)


def of_a_reconfiguration(name: str, second: Chat) -> Law:
    """A call of another thread at any place of `reconfigure` is recorded as a call after it."""

    def status(session: CompactionSession) -> object:
        return session.status(), session.last_result, session.revision, session.new_messages

    whole = CompactionSession(STRATEGIES[name](), **options())
    whole.view_sync(second)

    def reconfigured(interruption: Interruption) -> bool:
        session = CompactionSession(STRATEGIES[name](), **options())
        interruption.instead = lambda: session.view_sync(second)
        found = interruption.during(lambda: session.reconfigure(STRATEGIES[name]()))
        assert not found or status(session) == status(whole), interruption.place
        return found

    return reconfigured


def of_a_store(name: str, second: Chat) -> Law:
    """An interrupted call leaves the saved state of before or after it: a new process continues with the same view."""
    whole = CompactionSession(STRATEGIES[name](), **options())
    expected = [whole.view_sync(each) for each in lists(second)]

    def interrupted(interruption: Interruption) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "sessions.db")
            first, now, later = lists(second)
            session = CompactionSession(STRATEGIES[name](), store=SessionStore(path), **options())
            session.view_sync(first)
            found = interruption.during(lambda: session.view_sync(now))
            again = CompactionSession(STRATEGIES[name](), store=SessionStore(path), **options())
            assert [again.view_sync(now), again.view_sync(later)] == expected[1:], interruption.place
            assert [session.view_sync(now), session.view_sync(later)] == expected[1:], interruption.place
        return found

    return interrupted


@attrs.frozen
class Case:
    """One law, of a strategy and the list of the second call, at calls of functions or at bytecodes.

    Args:
        law: Returns the law of this strategy and list.
        name: The name of the strategy.
        second: The list of the second call.
        bytecodes: See `Interruption`.
        most: The most places in ``make test``.
    """

    law: Callable[[str, Chat], Law]
    name: str
    second: Chat
    bytecodes: bool
    most: int = SOME

    def made(self) -> Law:
        return self.law(self.name, self.second)

    def places(self, most: int, seed: int = 0) -> list[int]:
        """Return every place at which the work can be interrupted, or ``most`` random ones if there are more."""
        whole = Interruption(1 << 60, bytecodes=self.bytecodes)
        assert not self.made()(whole)
        places: Sequence[int] = range(1, whole.count + 1)
        return list(places) if len(places) <= most else sorted(random.Random(seed).sample(places, most))

    def check(self, places: Iterable[int]) -> None:
        """Interrupt the work at these places. The garbage of other tests is not collected: its finalizers would be places."""
        law = self.made()
        gc.collect()
        gc.disable()
        try:
            for place in places:
                law(Interruption(place, bytecodes=self.bytecodes))
        finally:
            gc.enable()

    def __str__(self) -> str:
        place = "bytecodes" if self.bytecodes else "calls"
        law = next(name for name, value in globals().items() if value is self.law).removeprefix("of_")
        return f"{law}-{self.name}-{'altered' if self.second is ALTERED else 'longer'}-{place}"


CASES: Final = (
    Case(of_a_session, "rewriting", ALTERED, False, EVERY),
    Case(of_a_session, "cut", SECOND, False),
    Case(of_a_session, "cut", ALTERED, True),
    Case(of_a_session, "rewriting", SECOND, True),
    Case(of_a_session, "summaries", SECOND, False),
    Case(of_a_session, "summaries", ALTERED, True),
    Case(of_a_reconfiguration, "cut", SECOND, False, EVERY),
    *(Case(of_a_store, name, SECOND, False) for name in STRATEGIES),
    Case(of_a_pool, "cut", SECOND, False, EVERY),
    Case(of_a_pool, "rewriting", ALTERED, False),
    Case(of_a_pool, "cut", ALTERED, True),
    Case(of_a_pool, "summaries", SECOND, True),
    Case(of_a_new_conversation, "cut", SECOND, False, EVERY),
    Case(of_a_short_conversation, "cut", SECOND, False, 10_000),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_torn(case: Case) -> None:
    case.check(case.places(case.most))
