"""The checks that run on each fuzzed conversation, and the lists that a host may pass after it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

from compaction import MessageIndex, compact_sync, presets, repair, run_sync
from compaction.errors import InputError
from compaction.formats import FORMATS, MessageFormat
from compaction.index import Marks, RunContext
from compaction.json_data import data_of, json_of
from compaction.session import CompactionSession
from compaction.strategies import Strategy
from tests.support.conversion import convert
from tests.support.rulebook import is_valid, rules
from tests.support.wires import STRATEGIES

EVERY_STRATEGY: Final[tuple[Strategy, ...]] = (*STRATEGIES, presets.adaptive(600))


def altered(messages: list[Any], random: Random) -> list[Any]:
    """A list that a host may pass next: messages removed, moved, repeated or changed, as the same objects or copies."""
    messages = copy.deepcopy(messages) if random.random() < 0.5 else list(messages)
    for _ in range(random.randint(0, 3)):
        place, other = random.randrange(len(messages)), random.randrange(len(messages))
        what = random.choice(["remove", "move", "repeat", "cut", "field"])
        if what == "remove" and len(messages) > 1:
            del messages[place]
        elif what == "move":
            messages.insert(other, messages.pop(place))
        elif what == "repeat":
            messages.append(messages[place])
        elif what == "cut":
            del messages[place + 1 :]
        elif isinstance(messages[place], dict) and messages[place]:
            messages[place] = {**messages[place], random.choice(list(messages[place])): random.choice([None, "", "new", [], 7])}
    return messages


def check_compacting(format: MessageFormat, messages: list[Any], strategy: Strategy) -> list[Any] | None:
    """Compact and check the size and validity of the result; return ``None`` if the format cannot read the messages."""
    try:
        done = compact_sync(messages, strategy, counter="chars/4", format=format)
    except InputError:
        return None
    assert done.after.tokens <= done.before.tokens
    assert len(done.messages) <= len(messages) + 2 * len(done.edits)
    if is_valid(format, messages):
        assert is_valid(format, done.messages), f"{strategy}: now {rules(format, done.messages)}"
    return done.messages


def check_session(format: MessageFormat, messages: list[Any], strategy: Strategy, random: Random) -> None:
    """Run a session and an index with two lists in turn, store both and load them again; only an `InputError` may be raised."""
    later = altered(messages, random)
    for named in (format, None):
        session = CompactionSession(strategy, counter="chars/4", format=named, clock=None)
        for listed in (messages, later, later):
            _tried(session.view_sync, listed)
        _tried(_resumed, session, strategy, named, altered(later, random))
    index = MessageIndex(counter="chars/4", format=format, marks=Marks.of(strategy.mark_ceilings, RunContext()))
    for listed in (messages, later):
        _tried(_followed, index, strategy, listed)
    for whole in (True, False):
        _tried(_stored, index, strategy, whole)


def _resumed(session: CompactionSession, strategy: Strategy, format: MessageFormat | None, messages: list[Any]) -> None:
    stored = data_of(json_of(session.to_dict(), "a session"), "a session", dict)
    CompactionSession.from_dict(stored, strategy, counter="chars/4", format=format, clock=None).view_sync(messages)


def _followed(index: MessageIndex, strategy: Strategy, messages: list[Any]) -> None:
    index.sync(messages)
    run_sync(index, strategy)


def _stored(index: MessageIndex, strategy: Strategy, whole: bool) -> None:
    """Store an index, load it and sync it with the same messages."""
    stored = data_of(json_of(index.to_dict(messages=whole), "an index"), "an index", dict)
    marks = Marks.of(strategy.mark_ceilings, RunContext())
    again = MessageIndex.from_dict(stored, counter="chars/4", format=index.format, marks=marks)
    again.sync(index.source)
    again.messages()


def check_whole(format: MessageFormat, messages: list[Any]) -> None:
    """Check that a repair without remaining problems gives a valid list, and that conversions and their repairs end."""
    done = format.repair(messages)
    if not {problem.rule for problem in done.remaining} - {"pending-call"}:
        assert is_valid(format, done.messages), f"repaired, but {rules(format, done.messages)}"
    _tried(repair, messages)
    for to in FORMATS:
        for named in (format, None):
            _tried(_converted, messages, to, named)


def _converted(messages: list[Any], to: MessageFormat, format: MessageFormat | None) -> None:
    repair(convert(messages, to=to, format=format), format=to)


def _tried(take: Callable[..., object], *arguments: object) -> None:
    """Make the call, and ignore an `InputError`."""
    try:
        take(*arguments)
    except InputError:
        return


def check_input(format: MessageFormat, messages: list[Any], random: Random, strategies: Iterable[Strategy]) -> int:
    """Run all checks with one input, and return the number of compactions that gave a result."""
    done = 0
    for strategy in strategies:
        done += check_compacting(format, messages, strategy) is not None
    check_session(format, messages, random.choice(EVERY_STRATEGY), random)
    check_whole(format, messages)
    return done
