"""From a name to a contender: the baselines, and every preset of this package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import attrs

from .. import presets
from ..errors import ConfigurationError
from ..strategies import Strategy, StrategyLike, as_strategy
from .baselines import BASELINES
from .contenders import Contender, FileStart, NamedStart

__all__ = ["contender_of", "contenders_of", "strategy_names"]

_WINDOW_ARGUMENTS: Final = ("window", "context_length", "budget")


def strategy_names() -> list[str]:
    """Every name that `contender_of` knows."""
    return [*BASELINES, *presets.__all__]


def contender_of(strategy: str | StrategyLike | Contender) -> Contender:
    """What is replayed under a name, or for a strategy.

    Args:
        strategy: A name of `strategy_names`; a preset is made for the replay's window if its first argument is one. Or the
            path of a Python file that names a ``strategy``, or a function from a window to one. Or a strategy, or a contender.

    Raises:
        ConfigurationError: If there is nothing of that name.

    >>> from compaction.strategies import SlidingWindow
    >>> contender_of("hysteresis").name, contender_of(SlidingWindow()).name
    ('hysteresis', 'SlidingWindow')
    """
    if isinstance(strategy, Contender):
        return strategy
    if not isinstance(strategy, str):
        lifted = as_strategy(strategy)
        return Contender.of_strategy(lifted.name, lifted)
    if strategy in BASELINES:
        return BASELINES[strategy]
    if strategy.endswith(".py"):
        start = FileStart(Path(strategy))
        start.strategy(1_000_000)  # a file that cannot be used is told of before anything is played
        return Contender(Path(strategy).stem, start)
    if strategy not in presets.__all__:
        raise ConfigurationError(
            f"strategy {strategy!r}: there is none of that name; use one of {', '.join(strategy_names())}, or a Python file"
        )
    preset: Callable[..., Strategy] = getattr(presets, strategy)
    first = next(iter(inspect.signature(preset).parameters))
    return Contender(strategy, NamedStart(preset)) if first in _WINDOW_ARGUMENTS else Contender.of_strategy(strategy, preset())


def contenders_of(strategies: Iterable[str | StrategyLike | Contender], *, baselines: bool = True) -> list[Contender]:
    """The contenders of a replay, each under a name of its own.

    Args:
        strategies: What to replay.
        baselines: Whether all baselines are among them, named or not. Sending everything always is: costs are told as shares
            of it.

    >>> [each.name for each in contenders_of(["context_window", "truncate"], baselines=False)]
    ['none', 'context_window', 'truncate']
    """
    wanted = [contender_of(strategy) for strategy in strategies]
    always = list(BASELINES.values()) if baselines else [BASELINES["none"]]
    found: dict[str, Contender] = {}
    for each in (*always, *wanted):
        if each in found.values():
            continue
        name, count = each.name, 2
        while name in found:
            name, count = f"{each.name}#{count}", count + 1
        found[name] = attrs.evolve(each, name=name)
    return list(found.values())
