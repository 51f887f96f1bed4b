"""The base of strategies, and pipelines: a strategy is a callable that reads an index and yields edits.

A strategy may be a plain generator function::

    def drop_reasoning(index):
        for group in index.included_groups:         # a snapshot: safe while edits are applied
            if stripped := without_reasoning(group):
                yield Rewrite(group, stripped, reason="old reasoning")

The built-in ones are frozen values with ``trigger=``, ``target=`` and ``keep=``. To write one, subclass `CompactionStrategy`
and define ``edits``; the base class asks the trigger first and reports what happened.
"""

from __future__ import annotations

import abc
import functools
import logging
import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import attrs

from ..errors import ConfigurationError, StrategyError
from ..index import Drop, Edit, GroupKind, MarkCeiling, MessageGroup, MessageIndex, Request, Rewrite
from ..messages import Part
from ..selectors import Selector, as_selector, nothing
from ..triggers import Trigger, TriggerLike, always, as_trigger, never

_logger = logging.getLogger("compaction")


@attrs.frozen
class StepBegan:
    """Reports that a strategy's trigger fired.

    Args:
        strategy: The strategy.
        why: The explanation of its trigger.
    """

    strategy: Strategy
    why: str


@attrs.frozen
class StepEnded:
    """Reports that a strategy that fired has ended.

    Args:
        strategy: The strategy.
        target: Its target; ``never`` if it does all it can.
        reached: Whether the target holds now.
    """

    strategy: Strategy
    target: Trigger
    reached: bool


@attrs.frozen
class Failed:
    """Reports that a part failed, and how the strategy went on.

    Args:
        strategy: The name of the strategy.
        error: The exception.
        policy: What was done instead, in words.
    """

    strategy: str
    error: Exception
    policy: str

    def __str__(self) -> str:
        return f"{self.strategy}: {self.error!r}; {self.policy}"

    def logged(self) -> Failed:
        """Return the report, written to the package's log."""
        _logger.warning("%s failed (%r): %s", self.strategy, self.error, self.policy)
        return self


Report: TypeAlias = StepBegan | StepEnded | Failed
"""A report to an observer; it changes nothing."""

Steps: TypeAlias = Generator[Edit | Request | Report, Any, None]
"""A running strategy. It yields edits, requests and reports; it is sent whether an edit was applied, or a request's answer.

Because values are sent, ``yield from`` needs a generator, not a list: write ``for edit in edits: yield edit``.
"""

StrategyLike: TypeAlias = "Strategy | Callable[[MessageIndex], Iterable[Edit | Request | Report]]"
"""A strategy, or a function that can be one."""


class Strategy(abc.ABC):
    """The base of all strategies. ``a >> b`` is a pipeline that runs one after the other."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in journals and reports."""
        return type(self).__name__

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> Steps:
        """Return a generator that runs on an index; a driver in `compaction.run` advances it."""

    @property
    def children(self) -> tuple[Strategy, ...]:
        """The strategies that this one runs, in order; none unless it is made of others."""
        return ()

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        """The strategies here that write summaries, by name, each with how much its marked messages may be; see `Marks`."""
        ceilings: dict[str, MarkCeiling] = {}
        for child in self.children:
            for name, one in child.mark_ceilings.items():
                other = ceilings.get(name, one)
                ceilings[name] = MarkCeiling(max(one.tokens, other.tokens), max(one.messages, other.messages))
        return ceilings

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        """Return a copy that runs other strategies, as many and in the same order."""
        return self

    def parts(self) -> Iterator[Strategy]:
        """Yield this strategy and all that it is made of, outermost first."""
        yield self
        for child in self.children:
            yield from child.parts()

    def changed(self, change: Callable[[Strategy], Strategy]) -> Strategy:
        """Return a copy in which each part is changed, the innermost first; the strategy itself if no part was.

        Args:
            change: Returns a part as it should be.
        """
        return change(self._of([child.changed(change) for child in self.children]))

    def _of(self, children: Sequence[Strategy]) -> Strategy:
        same = all(map(operator.is_, children, self.children))
        return self if same else self.with_children(children)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return the strategy for a run that a user asked for: gentle parts run whatever their triggers say.

        Args:
            focus: The subject on which a summary should say most.
            others: When the other parts may run; each asks its own trigger too.
        """
        if self.children:
            return self._of([child.forced(focus, others=others) for child in self.children])
        return self if others == always else Pipeline() if others == never else Pipeline(self, trigger=others)

    def __rshift__(self, other: StrategyLike) -> Strategy:
        return Pipeline(self, other)

    def __rrshift__(self, other: StrategyLike) -> Strategy:
        return Pipeline(other, self)


def _opposite_of_trigger(strategy: CompactionStrategy) -> Trigger:
    return ~strategy.trigger


_OPPOSITE_OF_TRIGGER: Any = attrs.Factory(_opposite_of_trigger, takes_self=True)


@attrs.frozen
class CompactionStrategy(Strategy):
    """The base of the built-in strategies: asks the trigger, yields the edits, reports the outcome.

    Args:
        trigger: When to run; by default always.
        target: When to stop; by default as soon as the trigger no longer fires, or, without a trigger, never: the strategy does
            all it can. Set it below the trigger: without that distance every turn cuts again and breaks the provider's prompt
            cache.
        keep: Groups that stay.
    """

    trigger: Trigger = attrs.field(default=always, converter=as_trigger, kw_only=True)
    target: Trigger = attrs.field(default=_OPPOSITE_OF_TRIGGER, converter=as_trigger, kw_only=True)
    keep: Selector = attrs.field(default=nothing, converter=as_selector, kw_only=True)
    _unforced: CompactionStrategy | None = attrs.field(default=None, init=False, eq=False, repr=False)

    @final
    def __call__(self, index: MessageIndex) -> Steps:
        if not self.trigger(index):
            return
        yield StepBegan(self, self.trigger.explain(index))
        yield from self.edits(index)
        yield StepEnded(self, self.target, self.target == never or self.target(index))

    @property
    def pauses_as(self) -> CompactionStrategy:
        """The strategy whose pauses count here: in a forced run, the one that was forced."""
        return self._unforced or self

    def is_paused(self, index: MessageIndex) -> bool:
        """Return whether this strategy failed so recently that it should wait; nothing waits past the window."""
        return not self.is_past_window(index) and index.context.pauses.is_paused(self.pauses_as, index.context.now)

    @staticmethod
    def is_past_window(index: MessageIndex) -> bool:
        """Return whether a request would not fit the window, if that is known; O(1)."""
        window = index.context.window
        return window is not None and index.tokens > window

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        """Return the options that differ in a forced run; ``None`` unless the strategy is gentle."""
        return None

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        changes = self.when_forced(focus)
        if changes is None:
            return super().forced(focus, others=others)
        copy = attrs.evolve(self, **changes)
        object.__setattr__(copy, "_unforced", self.pauses_as)
        return copy

    @abc.abstractmethod
    def edits(self, index: MessageIndex) -> Steps:
        """Yield the edits, in order; ask ``self.target`` before each step."""

    def free(self, index: MessageIndex) -> list[int]:
        """Return the ids of the groups that may leave the view and that ``keep`` leaves free, oldest first.

        O(groups), and no message is read.
        """
        kept = self.keep(index)
        return [id for id in index.removable_ids(self.name) if id not in kept]

    def candidates(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups that may leave the view and that ``keep`` leaves free, oldest first; O(groups)."""
        return [index.group(id) for id in self.free(index)]

    def rewritable(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups whose content may change and that ``keep`` leaves free, oldest first; O(groups)."""
        kept = self.keep(index)
        return [index.group(id) for id in index.included_ids if id not in kept and index.is_rewritable(id)]

    def dropped(self, index: MessageIndex, steps: Iterable[Sequence[int]], reason: str) -> Steps:
        """Drop the groups of one step after the other until the target holds."""
        target = self.target
        for step in steps:
            if target(index):
                return
            yield Drop(step, reason)

    def rewritten(self, index: MessageIndex, change: Callable[[MessageGroup], Edit | None]) -> Steps:
        """Change the groups that may be rewritten, oldest first, until the target holds; ``change`` returns a group's edit."""
        for group in self.rewritable(index):
            if (edit := change(group)) is None:
                continue
            if self.target(index):
                return
            yield edit

    def drop_system_groups(self, index: MessageIndex) -> Generator[Edit, Any, bool]:
        """Drop the system groups that ``keep`` leaves free, oldest first, and return whether any went; O(groups)."""
        kept, count = self.keep(index), index.edit_count
        for id in index.included_ids:
            if self.target(index):
                break
            if index.columns.kind(id) is GroupKind.SYSTEM and id not in kept and id not in index.columns.pinned:
                yield Drop(id, "system messages go when nothing else can", allow_system=True)
        return index.edit_count > count


def rewritten_parts(group: MessageGroup, change: Callable[[Part], Part], reason: str) -> Rewrite | None:
    """Return the edit that changes the parts of a group's messages; ``None`` if none changes."""
    messages = [message.with_parts(change) for message in group.messages]
    return None if all(map(operator.is_, messages, group.messages)) else Rewrite(group, messages, reason)


@attrs.frozen
class FunctionStrategy(Strategy):
    """A plain function as a strategy that always runs.

    Args:
        function: A function that takes an index and yields edits and requests.
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
    """Return a strategy as it is, or a plain function as a strategy.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if not callable(strategy):
        raise ConfigurationError(f"a strategy is a callable of an index that yields edits (got {strategy!r})")
    return FunctionStrategy(strategy)


@attrs.frozen(init=False, repr=False)
class Pipeline(Strategy):
    """Runs every step in order, each by its own trigger; put the gentlest first.

    A pipeline is a strategy, and an empty one does nothing. With a trigger or a target it is one step: the trigger is asked
    once; if it fires, all steps run, even where the first already frees enough, and ``target`` alone decides the outcome.

    Args:
        steps: Strategies or plain functions; a nested pipeline without trigger and target is replaced by its steps.
        trigger: When to run at all.
        target: Whether the pipeline as a whole was successful; by default, that the trigger no longer fires.

    >>> from compaction.strategies import ClearReasoning, SelectiveToolCall
    >>> ClearReasoning() >> SelectiveToolCall() == Pipeline(ClearReasoning(), SelectiveToolCall())
    True
    """

    steps: tuple[Strategy, ...]
    trigger: Trigger
    target: Trigger

    def __init__(self, *steps: StrategyLike, trigger: TriggerLike = always, target: TriggerLike | None = None) -> None:
        flat: list[Strategy] = []
        for step in map(as_strategy, steps):
            flat.extend(step.steps if isinstance(step, Pipeline) and step.is_plain else (step,))
        object.__setattr__(self, "steps", tuple(flat))
        object.__setattr__(self, "trigger", as_trigger(trigger))
        object.__setattr__(self, "target", ~self.trigger if target is None else as_trigger(target))

    @property
    def children(self) -> tuple[Strategy, ...]:
        return self.steps

    def __repr__(self) -> str:
        trigger = [] if self.trigger == always else [f"trigger={self.trigger!r}"]
        target = [] if self.target == ~self.trigger else [f"target={self.target!r}"]
        return f"Pipeline({', '.join([*map(repr, self.steps), *trigger, *target])})"

    @property
    def is_plain(self) -> bool:
        """Whether it has neither a trigger nor a target of its own."""
        return self.trigger == always and self.target == never

    def __call__(self, index: MessageIndex) -> Steps:
        if self.is_plain:
            for step in self.steps:
                yield from step(index)
        elif self.trigger(index):
            yield StepBegan(self, self.trigger.explain(index))
            for step in self.steps:
                yield from step(index)
            yield StepEnded(self, self.target, self.target == never or self.target(index))

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        return Pipeline(*children, trigger=self.trigger, target=self.target)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return the steps as one pipeline; those that are not gentle run only where this one's trigger fires."""
        triggers = [each for each in (others, self.trigger) if each != always]
        when = functools.reduce(lambda one, other: one & other, triggers) if triggers else always
        return Pipeline(*(step.forced(focus, others=when) for step in self.steps))
