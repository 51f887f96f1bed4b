"""Names of candidates: the baselines, every preset of this package, and files of your own."""

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
from .candidates import Candidate

__all__ = ["candidate_of", "candidates_of", "strategy_names"]

_WINDOW_ARGUMENTS: Final = ("window", "context_length", "budget")


def strategy_names() -> list[str]:
    """Return every name that can be replayed: the baselines and the presets."""
    return [*BASELINES, *presets.__all__]


def candidate_of(strategy: str | StrategyLike | Candidate) -> Candidate:
    """Return the candidate for a name or a strategy.

    Args:
        strategy: A name from `strategy_names`; a preset whose first argument is a window gets the replay's window. Or the
            path of a Python file that defines ``strategy``, which may be a function of the window. Or a strategy, or a
            candidate.

    Raises:
        ConfigurationError: If the name is unknown.

    >>> from compaction.strategies import SlidingWindow
    >>> candidate_of("hysteresis").name, candidate_of(SlidingWindow()).name
    ('hysteresis', 'SlidingWindow')
    """
    if isinstance(strategy, Candidate):
        return strategy
    if not isinstance(strategy, str):
        lifted = as_strategy(strategy)
        return Candidate.of_strategy(lifted.name, lifted)
    if strategy in BASELINES:
        return BASELINES[strategy]
    if strategy.endswith(".py"):
        return Candidate.of_file(Path(strategy))
    if strategy not in presets.__all__:
        raise ConfigurationError(
            f"strategy {strategy!r} is unknown; use one of {', '.join(strategy_names())}, or a Python file"
        )
    preset: Callable[..., Strategy] = getattr(presets, strategy)
    first = next(iter(inspect.signature(preset).parameters))
    if first in _WINDOW_ARGUMENTS:
        return Candidate.of_factory(strategy, preset)
    return Candidate.of_strategy(strategy, preset())


def candidates_of(strategies: Iterable[str | StrategyLike | Candidate], *, baselines: bool = True) -> list[Candidate]:
    """Return the candidates of a replay, each under a unique name.

    Args:
        strategies: The strategies asked for.
        baselines: Whether to add the baselines that were not asked for. ``"none"`` is always added: costs are relative to it.

    >>> [each.name for each in candidates_of(["context_window", "truncate"], baselines=False)]
    ['none', 'context_window', 'truncate']
    """
    wanted = [candidate_of(strategy) for strategy in strategies]
    always = list(BASELINES.values()) if baselines else [BASELINES["none"]]
    found: dict[str, Candidate] = {}
    for each in (*always, *wanted):
        if each in found.values():
            continue
        name, count = each.name, 2
        while name in found:
            name, count = f"{each.name}#{count}", count + 1
        found[name] = attrs.evolve(each, name=name)
    return list(found.values())
