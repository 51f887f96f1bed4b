"""What every strategy is: a callable that reads an index and yields edits.

A strategy may be a plain generator function::

    def drop_reasoning(index):
        for group in index.included_groups:         # a snapshot: safe while edits are applied
            if stripped := without_reasoning(group):
                yield Rewrite(group, stripped, reason="old reasoning")

The built-in ones are frozen values with ``trigger=``, ``target=`` and ``keep=``. Subclass `CompactionStrategy` and write
``edits``; the base asks the trigger first and reports what happened.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias, final

import attrs

from ..edits import Edit, Request
from ..errors import ConfigurationError, StrategyError
from ..groups import MessageGroup
from ..index import MessageIndex
from ..selectors import Selector, as_selector, nothing
from ..triggers import Trigger, always, as_trigger, never

__all__ = [
    "CompactionStrategy",
    "Failed",
    "FunctionStrategy",
    "Report",
    "StepBegan",
    "StepEnded",
    "Steps",
    "Strategy",
    "StrategyLike",
    "as_strategy",
]


@attrs.frozen
class StepBegan:
    """Reports that a strategy's trigger fired.

    Args:
        strategy: The strategy.
        why: Its trigger's explanation.
    """

    strategy: Strategy
    why: str


@attrs.frozen
class StepEnded:
    """Reports that a strategy that fired has ended.

    Args:
        strategy: The strategy.
        target: What it worked towards; ``never`` if it was to do all it can.
        reached: Whether the target holds now.
    """

    strategy: Strategy
    target: Trigger
    reached: bool


@attrs.frozen
class Failed:
    """Reports that a part failed and what a policy did instead.

    Args:
        strategy: The name of the strategy.
        error: What was raised.
        policy: What was done instead, in words.
    """

    strategy: str
    error: Exception
    policy: str


Report: TypeAlias = StepBegan | StepEnded | Failed
"""What a strategy tells an observer; it changes nothing."""

Steps: TypeAlias = Generator[Edit | Request | Report, Any, None]
"""A running strategy: it yields edits, requests and reports, and is sent whether an edit was applied, or a request's answer.

Because something is sent, ``yield from`` takes a generator, not a list: ``for edit in edits: yield edit``.
"""

StrategyLike: TypeAlias = "Strategy | Callable[[MessageIndex], Iterable[Edit | Request | Report]]"
"""A strategy, or a function that can be one."""


class Strategy(abc.ABC):
    """Anything that compacts: a built-in, a pipeline, or a lifted function. ``a >> b`` runs one after the other."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What it is called in journals and reports."""
        return type(self).__name__

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> Steps:
        """Run on an index: a generator that a driver in `compaction.run` pumps."""

    def forced(self, focus: str | None = None) -> Strategy:
        """This strategy for a run that somebody asked for: what is gentle runs whatever its trigger says; the rest is as it is.

        Args:
            focus: What a summary should give room to.
        """
        return self

    def __rshift__(self, other: StrategyLike) -> Strategy:
        from .pipeline import Pipeline

        return Pipeline(self, other)

    def __rrshift__(self, other: StrategyLike) -> Strategy:
        from .pipeline import Pipeline

        return Pipeline(other, self)


def _until_the_trigger_rests(strategy: CompactionStrategy) -> Trigger:
    return ~strategy.trigger


_UNTIL_THE_TRIGGER_RESTS: Any = attrs.Factory(_until_the_trigger_rests, takes_self=True)


@attrs.frozen
class CompactionStrategy(Strategy):
    """Base of the built-in strategies: asks the trigger, yields the edits, reports the outcome.

    Args:
        trigger: When to run; by default whenever asked.
        target: When to stop. By default as soon as the trigger no longer fires; with no trigger either, never, which asks for
            all the strategy can do. Set one below the trigger: without that distance every turn cuts again, and a provider's
            prompt cache never survives.
        keep: The groups it does not touch.
    """

    trigger: Trigger = attrs.field(default=always, converter=as_trigger, kw_only=True)
    target: Trigger = attrs.field(default=_UNTIL_THE_TRIGGER_RESTS, converter=as_trigger, kw_only=True)
    keep: Selector = attrs.field(default=nothing, converter=as_selector, kw_only=True)

    @final
    def __call__(self, index: MessageIndex) -> Steps:
        if not self.trigger(index):
            return
        yield StepBegan(self, self.trigger.explain(index))
        yield from self.edits(index)
        yield StepEnded(self, self.target, self.target == never or self.target(index))

    @abc.abstractmethod
    def edits(self, index: MessageIndex) -> Steps:
        """The edits, in order; asks ``self.target`` before each step."""

    def candidates(self, index: MessageIndex) -> list[MessageGroup]:
        """The groups that may leave the view and that ``keep`` leaves free, oldest first; O(groups)."""
        kept = self.keep(index)
        return [group for group in index.included_groups if group.id not in kept and index.is_removable(group)]

    def rewritable(self, index: MessageIndex) -> list[MessageGroup]:
        """The groups whose content may change and that ``keep`` leaves free, oldest first; O(groups)."""
        kept = self.keep(index)
        return [group for group in index.included_groups if group.id not in kept and index.is_rewritable(group)]


@attrs.frozen
class FunctionStrategy(Strategy):
    """A plain function as a strategy: it runs whenever asked.

    Args:
        function: Takes an index and yields edits and requests.
    """

    function: Callable[[MessageIndex], Iterable[Edit | Request | Report]]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, index: MessageIndex) -> Steps:
        yield StepBegan(self, "it runs whenever asked")
        steps = self.function(index)
        if isinstance(steps, Generator):
            yield from steps
        elif isinstance(steps, Iterable):
            yield from (step for step in steps)
        else:
            raise StrategyError(f"{self.name} returned {steps!r}; a strategy yields edits, or returns a list of them")
        yield StepEnded(self, never, True)


def as_strategy(strategy: StrategyLike) -> Strategy:
    """The strategy itself, or a plain function lifted to one.

    Raises:
        ConfigurationError: If it is no callable.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if not callable(strategy):
        raise ConfigurationError(f"a strategy is a callable of an index that yields edits (got {strategy!r})")
    return FunctionStrategy(strategy)
