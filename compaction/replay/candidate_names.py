"""The candidates that names, files and strategies stand for."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from .. import config
from ..config import FILE_SUFFIXES
from ..errors import ConfigurationError
from ..presets import PRESETS
from ..strategies import Strategy, StrategyLike, as_strategy
from .baselines import BASELINES
from .candidates import Candidate, CandidateSetting

_FILES: Final = (*FILE_SUFFIXES, ".py")


def _same(strategy: Strategy, setting: CandidateSetting) -> Strategy:
    return strategy


def _for_window(make: Callable[[int], StrategyLike], setting: CandidateSetting) -> Strategy:
    return as_strategy(make(setting.window))


def _in_file(path: Path) -> Candidate:
    """Return the candidate of a pipeline file, or of a Python file, which is run again for each conversation."""
    if path.suffix != ".py":
        return Candidate(path.stem, partial(_same, config.load(path)), file=path)
    _strategy_in(path, 1_000_000)  # so that a bad file fails before anything is replayed
    return Candidate(path.stem, partial(_for_window, partial(_strategy_in, path)))


def _strategy_in(path: Path, window: int) -> Strategy:
    """Return the ``strategy`` of a file; if it is a function of ``window``, what the function returns."""
    try:
        found = runpy.run_path(str(path)).get("strategy")
        if inspect.isfunction(found) and next(iter(inspect.signature(found).parameters), "") == "window":
            found = found(window)
    except Exception as error:
        raise ConfigurationError(f"{path}: cannot read a strategy from it ({error!r}); see docs/own-strategies.md") from error
    if found is None:
        raise ConfigurationError(f"{path}: it does not define 'strategy'; assign one, or define strategy(window)")
    return as_strategy(found)


def strategy_names() -> list[str]:
    """Return every name that can be replayed: the baselines and the presets."""
    return [*BASELINES, *PRESETS]


def candidate_of(strategy: str | StrategyLike | Candidate) -> Candidate:
    """Return the candidate for a name or a strategy.

    Args:
        strategy: A name from `strategy_names`; a preset gets the replay's window as its window or budget. Or the
            path of a pipeline in TOML or YAML, or of a Python file that defines ``strategy``, which may be a function of the
            window; it is run with all the user's rights. Or a strategy, or a candidate.

    >>> from compaction.strategies import SlidingWindow
    >>> candidate_of("hysteresis").name, candidate_of(SlidingWindow()).name
    ('hysteresis', 'SlidingWindow')
    """
    if isinstance(strategy, Candidate):
        return strategy
    if not isinstance(strategy, str):
        lifted = as_strategy(strategy)
        return Candidate(lifted.name, partial(_same, lifted))
    if strategy in BASELINES:
        return BASELINES[strategy]
    if strategy.endswith(_FILES):
        return _in_file(Path(strategy))
    if (preset := PRESETS.get(strategy)) is None:
        raise ConfigurationError(
            f"strategy {strategy!r} is unknown; use one of {', '.join(strategy_names())}, or a file ({', '.join(_FILES)})"
        )
    start = partial(_same, preset.make()) if preset.size is None else partial(_for_window, preset.make)
    return Candidate(strategy, start, "preset")


def candidates_of(strategies: Iterable[str | StrategyLike | Candidate]) -> list[Candidate]:
    """Return the candidates of a replay, each under a unique name: the baselines, and the strategies asked for.

    >>> [each.name for each in candidates_of(["context_window", "truncate"])]
    ['none', 'truncate', 'hysteresis', 'context_window']
    """
    wanted: list[str | StrategyLike | Candidate] = list(BASELINES)
    for strategy in strategies:
        if strategy not in wanted:
            wanted.append(strategy)
    names: set[str] = set()
    return [attrs.evolve(each, name=unique_name(each.name, names)) for each in map(candidate_of, wanted)]


def unique_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken; the result is added to ``taken``.

    >>> taken = {"a"}
    >>> unique_name("a", taken), unique_name("a", taken)
    ('a#2', 'a#3')
    """
    found, count = name, 2
    while found in taken:
        found, count = f"{name}#{count}", count + 1
    taken.add(found)
    return found
