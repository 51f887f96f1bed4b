"""What is replayed: a strategy of this package by name or as an object, or any function from a history to a request.

A contender starts a player for each conversation; a player is asked once for every recorded call.
"""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from ..edits import Edit, Replace, Rewrite, named
from ..errors import ConfigurationError
from ..formats import MessageFormat
from ..marks import COLLAPSED_BY
from ..outcome import Step
from ..session import CompactionSession
from ..strategies import FunctionStrategy, Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter

__all__ = ["Contender", "Deed", "FileStart", "NamedStart", "Player", "Setting"]


@attrs.frozen(kw_only=True)
class Setting:
    """What a player is told when a conversation starts.

    Args:
        window: Tokens a request may have.
        counter: Counts them.
        format: The wire format of the messages.
        overhead_tokens: Tokens of every request outside the messages.
        clock: Seconds: recorded times where there are some, else one second a call.
    """

    window: int
    counter: TokenCounter
    format: MessageFormat
    overhead_tokens: int
    clock: Callable[[], float]


@attrs.frozen
class Deed:
    """What a player did to the messages at one call.

    Args:
        by: The strategy's name.
        kind: ``"drop"``, ``"summarize"``, ``"collapse"`` (a tool call shortened to a line), ``"replace"`` (by anything else),
            ``"rewrite"`` or ``"restore"``.
        reason: Why.
        ordinals: The recorded messages it concerns, from 0.
        texts: What the messages say that stand there now, if any.
        read_tokens: What a summary stands for, in tokens; 0 for anything else.
        written_tokens: The summary's own.
    """

    by: str
    kind: str
    reason: str
    ordinals: tuple[int, ...]
    texts: tuple[str, ...] = ()
    read_tokens: int = 0
    written_tokens: int = 0


class Player(Protocol):
    """Plays one conversation."""

    def view(self, messages: list[Any]) -> list[Any]:
        """What is sent for this history, which grew since the last call."""
        ...

    def deeds(self) -> Sequence[Deed]:
        """What the last `view` did; nothing if that cannot be told."""
        ...

    def unchanged(self) -> list[Any] | None:
        """What is sent after `view` raised; ``None``: the last view with what came since."""
        ...


@attrs.frozen
class Contender:
    """Something to replay.

    Args:
        name: What it is called in the output.
        start: Makes its player for a conversation. To be replayed in several processes it must be picklable.
    """

    name: str
    start: Callable[[Setting], Player]

    @classmethod
    def of_function(cls, name: str, start: Callable[[Setting], Callable[[list[Any]], list[Any]]]) -> Contender:
        """A contender whose player is a plain function from a history to what is sent; ``start`` makes it.

        >>> last_nine = Contender.of_function("last nine", lambda setting: lambda messages: messages[-9:])
        """
        return cls(name, _FunctionStart(start))

    @classmethod
    def of_strategy(cls, name: str, strategy: StrategyLike) -> Contender:
        """A contender that runs a strategy in a session of its own for each conversation."""
        return cls(name, _StrategyStart(as_strategy(strategy)))


@attrs.frozen
class _FunctionStart:
    start: Callable[[Setting], Callable[[list[Any]], list[Any]]]

    def __call__(self, setting: Setting) -> Player:
        return _FunctionPlayer(self.start(setting))


@attrs.frozen
class _FunctionPlayer:
    function: Callable[[list[Any]], list[Any]]

    def view(self, messages: list[Any]) -> list[Any]:
        return self.function(messages)

    def deeds(self) -> Sequence[Deed]:
        return ()

    def unchanged(self) -> list[Any] | None:
        return None


@attrs.frozen
class _StrategyStart:
    strategy: Strategy

    def __call__(self, setting: Setting) -> Player:
        return _SessionPlayer(self.strategy, setting)


@attrs.frozen
class NamedStart:
    """Starts a session with the strategy that is made for the replay's window.

    Args:
        make: From tokens to a strategy.
    """

    make: Callable[[int], StrategyLike]

    def __call__(self, setting: Setting) -> Player:
        return _SessionPlayer(self.make(setting.window), setting)


@attrs.frozen
class FileStart:
    """Starts a session with the strategy that a Python file names, read anew for each conversation and in each process.

    Args:
        path: The file. It runs as a program of the user's own: with all the user's rights.

    Raises:
        ConfigurationError: When called, if the file cannot be run or names no ``strategy``.
    """

    path: Path

    def __call__(self, setting: Setting) -> Player:
        return _SessionPlayer(self.strategy(setting.window), setting)

    def strategy(self, window: int) -> Strategy:
        """The strategy; if the file names a function of ``window``, what that returns."""
        try:
            found = runpy.run_path(str(self.path)).get("strategy")
            if inspect.isfunction(found) and next(iter(inspect.signature(found).parameters), "") == "window":
                found = found(window)
        except Exception as error:
            raise ConfigurationError(f"{self.path}: no strategy can be read there ({error!r}); see CONTRIBUTING.md") from error
        if found is None:
            raise ConfigurationError(f"{self.path}: it names no 'strategy'; assign one, or define strategy(window)")
        return as_strategy(found)


def _summarizing(strategy: Strategy) -> Iterator[str]:
    """The names of the strategies within a strategy that write summaries; a plain function may."""
    if hasattr(strategy, "summarizer") or isinstance(strategy, FunctionStrategy):
        yield strategy.name
    inner: Sequence[Strategy] = (*getattr(strategy, "steps", ()), *getattr(strategy, "strategies", ()))
    for each in inner:
        yield from _summarizing(each)


class _SessionPlayer:
    """A strategy in a session. Holds state: the session, and what the last view did."""

    def __init__(self, strategy: StrategyLike, setting: Setting) -> None:
        self._steps: list[Step] = []
        lifted = as_strategy(strategy)
        self._summarizing = set(_summarizing(lifted))
        self._session = CompactionSession(
            lifted,
            counter=setting.counter,
            format=setting.format,
            window=setting.window,
            overhead_tokens=setting.overhead_tokens,
            clock=setting.clock,
            on_step=self._steps.append,
        )

    def view(self, messages: list[Any]) -> list[Any]:
        self._steps.clear()
        return self._session.view_sync(messages)

    def deeds(self) -> Sequence[Deed]:
        told: set[int] = set()
        found: list[Deed] = []
        for step in self._steps:
            for edit in step.edits:
                if id(edit) not in told:
                    told.add(id(edit))
                    found.extend(self._deeds(edit, step.strategy))
        return found

    def _deeds(self, edit: Edit, by: str) -> list[Deed]:
        index = self._session.index
        parts: Sequence[Edit] = getattr(edit, "edits", (edit,))
        found: list[Deed] = []
        for part in parts:
            ordinals = tuple(sorted({at for group in named(part) for at in index.ordinals(group)}))
            messages = part.messages if isinstance(part, Replace | Rewrite) else ()
            texts = tuple(["" if message is None else message.text for message in messages])
            kind = self._kind(part, by)
            read = written = 0
            if isinstance(part, Replace) and kind == "summarize":
                read = sum(index.group(group).tokens for group in part.groups)
                written = sum(index.measure(message)[0] for message in part.messages)
            found.append(Deed(by, kind, edit.reason or part.reason, ordinals, texts, read, written))
        return found

    def _kind(self, edit: Edit, by: str) -> str:
        if not isinstance(edit, Replace):
            return type(edit).__name__.lower()
        if by in self._summarizing:
            return "summarize"
        return "collapse" if by == COLLAPSED_BY else "replace"

    def unchanged(self) -> list[Any] | None:
        return self._session.index.messages()
