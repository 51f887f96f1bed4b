"""What is replayed: a strategy of this package by name or as an object, or any function from a history to a request.

A contender starts a player for each conversation; a player is asked once for every recorded call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from .. import presets
from ..edits import Drop, Edit, Replace, Rewrite, named
from ..errors import ConfigurationError
from ..formats import MessageFormat
from ..run import Step
from ..selectors import nothing
from ..session import CompactionSession
from ..strategies import Pipeline, Strategy, StrategyLike, Truncation, as_strategy
from ..tokens import TokenCounter
from ..triggers import tokens_below, tokens_exceed

__all__ = ["BASELINES", "Contender", "Deed", "Player", "Setting", "contender", "hysteresis", "strategy_names", "truncate"]


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
        kind: ``"drop"``, ``"replace"``, ``"rewrite"`` or ``"restore"``.
        reason: Why.
        ordinals: The recorded messages it concerns, from 0.
        read_tokens: What a summary stands for, in tokens; 0 for anything else.
        written_tokens: The summary's own.
    """

    by: str
    kind: str
    reason: str
    ordinals: tuple[int, ...]
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
class _NamedStart:
    make: Callable[[int], StrategyLike]

    def __call__(self, setting: Setting) -> Player:
        return _SessionPlayer(self.make(setting.window), setting)


class _SessionPlayer:
    """A strategy in a session. Holds state: the session, and what the last view did."""

    def __init__(self, strategy: StrategyLike, setting: Setting) -> None:
        self._steps: list[Step] = []
        self._session = CompactionSession(
            strategy,
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
            read = written = 0
            if isinstance(part, Replace):
                read = sum(index.group(group).tokens for group in named(part))
                written = sum(index.measure(message)[0] for message in part.messages)
            kind = type(part).__name__.lower() if isinstance(part, Drop | Replace | Rewrite) else "restore"
            found.append(Deed(by, kind, edit.reason or part.reason, ordinals, read, written))
        return found

    def unchanged(self) -> list[Any] | None:
        return self._session.index.messages()


# ---------------------------------------------------------------- baselines and names


def truncate(window: int) -> Strategy:
    """The rule of thumb: system messages, the last user message and the newest groups that fit; cut anew whenever they do not.

    >>> truncate(8_000).trigger
    tokens_exceed(8000)
    """
    return Truncation(trigger=tokens_exceed(window), keep=nothing)


def hysteresis(window: int, *, threshold: float = 0.8, target: float = 0.5) -> Strategy:
    """The same, but past ``threshold`` of the window it cuts to ``target`` of it, and then only appends.

    The baseline to beat: about half the cost of sending everything, and never a request that is not valid.

    >>> hysteresis(8_000).target
    tokens_below(4001)
    """
    return Truncation(
        trigger=tokens_exceed(int(window * threshold)), target=tokens_below(int(window * target) + 1), keep=nothing
    )


def _none(window: int) -> Strategy:
    return Pipeline()


BASELINES: Final[Mapping[str, Callable[[int], Strategy]]] = {"none": _none, "truncate": truncate, "hysteresis": hysteresis}
"""What every strategy is compared with; ``none`` sends everything, whatever the window."""

_WINDOW_ARGUMENTS: Final = ("window", "context_length")


def strategy_names() -> list[str]:
    """The names that `contender` knows: the baselines, and the presets."""
    return [*BASELINES, *presets.__all__]


def contender(strategy: str | StrategyLike | Contender) -> Contender:
    """What is replayed under a name, or for a strategy.

    Args:
        strategy: A name of `strategy_names`; a preset gets the window of the replay if it takes one. Or a strategy, or a contender.

    Raises:
        ConfigurationError: If there is nothing of that name.

    >>> contender("hysteresis").name, contender(truncate(8_000)).name
    ('hysteresis', 'Truncation')
    """
    if isinstance(strategy, Contender):
        return strategy
    if not isinstance(strategy, str):
        lifted = as_strategy(strategy)
        return Contender(lifted.name, _StrategyStart(lifted))
    if strategy in BASELINES:
        return Contender(strategy, _NamedStart(BASELINES[strategy]))
    if strategy not in presets.__all__:
        raise ConfigurationError(f"strategy {strategy!r}: there is none of that name; use one of {', '.join(strategy_names())}")
    preset: Callable[..., Strategy] = getattr(presets, strategy)
    first = next(iter(inspect.signature(preset).parameters))
    return Contender(strategy, _NamedStart(preset) if first in _WINDOW_ARGUMENTS else _StrategyStart(preset()))
