"""The check that a strategy keeps every law, by running it on conversations.

    >>> from compaction.strategies import Truncation
    >>> from compaction.triggers import tokens_exceed
    >>> check_strategy(Truncation(trigger=tokens_exceed(500)))

Messages are compared by identity, and sizes are counted again from the view; only the groups are taken from the index.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import anyio

from ..errors import ConfigurationError
from ..formats import MessageFormat, openai_chat
from ..index import Marks, MessageIndex, RunContext
from ..messages import Message
from ..result import CompactionResult
from ..run import run
from ..strategies import StrategyLike, as_strategy
from ..tokens import TokenCounter
from .laws import LawBroken
from .run_laws import CheckedRun, broken_law, described
from .samples import sample_conversations

__all__ = ["check_strategy"]

_SMALLER_TRIES: Final = 200
_RUNS_TO_SETTLE: Final = 4
"""The minimum number of runs allowed to settle if an edit may have changed how the rest is grouped."""


def check_strategy(
    strategy: StrategyLike,
    *,
    messages: Iterable[Any] | None = None,
    counter: TokenCounter | str = "chars/4",
    format: MessageFormat | str | None = None,
    context: RunContext | None = None,
    pin: Callable[[Message], bool] | None = None,
    settles_in: int = 1,
    backend: Literal["asyncio", "trio"] = "asyncio",
) -> None:
    """Check that a strategy, sync or async, keeps every law; it is run five times for each conversation.

    A strategy that calls a model needs one that always gives the same answer.

    Args:
        strategy: A strategy, a pipeline or a plain function.
        messages: One conversation, for instance from `conversations`; ``None`` for all of `sample_conversations`. Make sure
            that the strategy's trigger fires on it: a strategy that does nothing keeps every law.
        counter: A token counter or the name of one.
        format: The wire format of ``messages`` or of the samples; ``None`` to detect it, and OpenAI chat for the samples.
        context: The run context, such as the window.
        pin: Returns whether a message pins its group.
        settles_in: Number of further runs after which nothing may change, >= 1. One is the strictest; a pipeline whose steps
            work against each other may need a few.
        backend: The event loop to run it in; no event loop may be running.

    Raises:
        LawBroken: If the strategy breaks a law.
        ConfigurationError: If ``settles_in`` is below 1.
        Exception: Whatever the strategy raises.
    """
    if settles_in < 1:
        raise ConfigurationError(f"check_strategy(settles_in={settles_in}): it must be an integer >= 1")

    def read(given: Sequence[Any]) -> MessageIndex:
        marks = Marks.of(as_strategy(strategy).mark_ceilings, context or RunContext())
        return MessageIndex(given, counter=counter, format=format, context=context, pin=pin, marks=marks)

    def broken(given: list[Any]) -> _Found | None:
        return anyio.run(_first_broken, strategy, read, given, settles_in, backend=backend)

    for conversation in sample_conversations(format or openai_chat) if messages is None else [list(messages)]:
        if found := broken(conversation):
            raise _smallest(conversation, found, broken)


_Read: TypeAlias = Callable[[Sequence[Any]], MessageIndex]
_Found: TypeAlias = tuple[int, str]
"""A law's number, and how it is broken."""


async def _first_broken(strategy: StrategyLike, read: _Read, messages: list[Any], settles_in: int) -> _Found | None:
    """Return the first law that a strategy breaks on a conversation, and how; ``None`` if it keeps them all."""
    original = copy.deepcopy(messages)
    index = read(messages)
    said = _said(index, original)
    before = index.included_groups
    result = await run(index, strategy)
    outcome = CheckedRun(list(messages), before, index, result, read)
    if _said(index, messages) != said:
        return 7, "it changed the caller's messages"
    return (
        broken_law(outcome)
        or await _settles(strategy, outcome, settles_in)
        or await _repeats(strategy, outcome, original)
        or _returns(outcome)
    )


def _said(index: MessageIndex, messages: Sequence[Any]) -> list[Any]:
    """Return the messages as data, as a framework's objects with equal contents may not be equal."""
    return [index.format.to_wire(message) for message in messages]


async def _settles(strategy: StrategyLike, outcome: CheckedRun, settles_in: int) -> _Found | None:
    """Check law 5."""
    if outcome.result.failures:
        return None
    problems = outcome.index.format.validate(outcome.source)
    runs = settles_in if all(problem.rule == "pending-call" for problem in problems) else max(settles_in, _RUNS_TO_SETTLE)
    if more := await _more(strategy, lambda _: outcome.index, outcome.result, runs):
        return 5, f"run again on the same index, it made more edits: {more}"
    if _parting(outcome.read(outcome.result.messages)) != _parting(outcome.index):
        runs = max(runs, _RUNS_TO_SETTLE)
    if more := await _more(strategy, outcome.read, outcome.result, runs):
        return 5, f"run on its own output, it made more edits: {more}"
    return None


async def _more(strategy: StrategyLike, index_of: _Read, result: CompactionResult, runs: int) -> list[str]:
    """Return the edits of the last of several further runs; none as soon as a run makes none."""
    for _ in range(runs):
        result = await run(index_of(result.messages), strategy)
        if not result.edits:
            break
    return described(result.edits)


def _parting(index: MessageIndex) -> list[list[int]]:
    """Return the groups of the view as the identities of their messages."""
    return [[id(message.raw) for message in group.messages] for group in index.included_groups]


async def _repeats(strategy: StrategyLike, outcome: CheckedRun, original: list[Any]) -> _Found | None:
    """Check law 7."""
    other = await run(outcome.read(original), strategy)
    if described(other.edits) != described(outcome.result.edits):
        return 7, f"on equal messages it made the edits {described(outcome.result.edits)}, then {described(other.edits)}"
    if _said(outcome.index, other.messages) != _said(outcome.index, outcome.result.messages):
        return 7, f"on equal messages it gave {outcome.result.messages!r}, then {other.messages!r}"
    return None


def _returns(outcome: CheckedRun) -> _Found | None:
    """Check law 9."""
    index, source = outcome.index, outcome.source
    index.rollback(0)
    view = index.messages()
    if len(view) != len(source) or any(one is not other for one, other in zip(view, source, strict=True)):
        return 9, f"after the rollback the view has {len(view)} messages, not the same {len(source)} as before"
    fresh = outcome.read(source).included
    if not index.included == index.total == fresh:
        return 9, f"after the rollback the metrics are {index.included} of {index.total}, not {fresh}"
    return None


def _smallest(messages: list[Any], found: _Found, broken: Callable[[list[Any]], _Found | None]) -> LawBroken:
    """Return the error for the smallest conversation, found by removing messages, that breaks the same law."""
    tries, size = _SMALLER_TRIES, len(messages) // 2
    while size and tries:
        start = 0
        while start < len(messages) and tries:
            tries -= 1
            smaller = messages[:start] + messages[start + size :]
            again = _attempted(broken, smaller)
            if again is not None and again[0] == found[0]:
                messages, found = smaller, again
            else:
                start += size
        size //= 2
    return LawBroken(*found, messages)


def _attempted(broken: Callable[[list[Any]], _Found | None], messages: list[Any]) -> _Found | None:
    """Return the law a smaller conversation breaks; one that raises an exception does not count."""
    try:
        return broken(messages)
    except Exception:
        return None
