"""Candidates of a replay: a strategy of this package, or any function from a history to a request, under a name."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from ..errors import ConfigurationError
from ..strategies import Strategy, StrategyLike, as_strategy
from .candidate_sessions import CandidateSession, FunctionSession, StrategySession
from .settings import CandidateSetting

__all__ = ["Candidate"]


@attrs.frozen
class Candidate:
    """Something to replay.

    Args:
        name: Its name in the output.
        start: Makes its session for a conversation. It must be picklable to be replayed in several processes.
    """

    name: str
    start: Callable[[CandidateSetting], CandidateSession]

    @classmethod
    def of_function(cls, name: str, start: Callable[[CandidateSetting], Callable[[list[Any]], list[Any]]]) -> Candidate:
        """Return a candidate that is a plain function from a history to a request; ``start`` makes the function.

        >>> last_nine = Candidate.of_function("last nine", lambda setting: lambda messages: messages[-9:])
        """
        return cls(name, _FunctionStart(start))

    @classmethod
    def of_strategy(cls, name: str, strategy: StrategyLike) -> Candidate:
        """Return a candidate that runs a strategy, in a new session for each conversation."""
        return cls(name, _StrategyStart(as_strategy(strategy)))

    @classmethod
    def of_factory(cls, name: str, make: Callable[[int], StrategyLike]) -> Candidate:
        """Return a candidate that runs the strategy ``make`` returns for the replay's window, in tokens.

        >>> from compaction.presets import adaptive
        >>> Candidate.of_factory("adaptive", adaptive).name
        'adaptive'
        """
        return cls(name, _FactoryStart(make))

    @classmethod
    def of_file(cls, path: Path) -> Candidate:
        """Return a candidate that runs the ``strategy`` a Python file defines.

        Args:
            path: The file. It is run with all the user's rights, again for each conversation and in each process.

        Raises:
            ConfigurationError: If the file cannot be run or defines no ``strategy``.
        """
        start = _FileStart(path)
        start.strategy(1_000_000)  # so that a bad file fails before anything is replayed
        return cls(path.stem, start)


@attrs.frozen
class _FunctionStart:
    start: Callable[[CandidateSetting], Callable[[list[Any]], list[Any]]]

    def __call__(self, setting: CandidateSetting) -> CandidateSession:
        return FunctionSession(self.start(setting))


@attrs.frozen
class _StrategyStart:
    strategy: Strategy

    def __call__(self, setting: CandidateSetting) -> CandidateSession:
        return StrategySession(self.strategy, setting)


@attrs.frozen
class _FactoryStart:
    make: Callable[[int], StrategyLike]

    def __call__(self, setting: CandidateSetting) -> CandidateSession:
        return StrategySession(self.make(setting.window), setting)


@attrs.frozen
class _FileStart:
    path: Path

    def __call__(self, setting: CandidateSetting) -> CandidateSession:
        return StrategySession(self.strategy(setting.window), setting)

    def strategy(self, window: int) -> Strategy:
        """Return the file's strategy; if it is a function of ``window``, what the function returns."""
        try:
            found = runpy.run_path(str(self.path)).get("strategy")
            if inspect.isfunction(found) and next(iter(inspect.signature(found).parameters), "") == "window":
                found = found(window)
        except Exception as error:
            raise ConfigurationError(f"{self.path}: cannot read a strategy from it ({error!r}); see CONTRIBUTING.md") from error
        if found is None:
            raise ConfigurationError(f"{self.path}: it does not define 'strategy'; assign one, or define strategy(window)")
        return as_strategy(found)
