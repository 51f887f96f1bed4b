"""The base classes of strategies, the reports that a running strategy yields for observers and logs, and `Pipeline`.

A strategy is a callable that reads a `MessageIndex` and yields edits, such as a generator function. The built-in strategies are
subclasses of `CompactionStrategy`; ``docs/own-strategies.md`` shows how to write either.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import operator
import re
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias, cast, final

import attrs

from ..checks import default_of, refuse_uncalled
from ..errors import ConfigurationError, SyncDriverError
from ..index import Drops, Edit, GroupKind, MarkCeiling, MessageGroup, MessageIndex, Request, RunReport, StepReport, steps_of
from ..messages import Message
from ..selectors import Selector, as_selector, nothing
from ..triggers import Trigger, TriggerLike, always, as_trigger, checked_answer, never

_logger = logging.getLogger("compaction")
_LONG_TEXT: Final = re.compile(r"""(['"])((?:(?!\1)[^\\]|\\.){40})(?:(?!\1)[^\\]|\\.){20,}\1""", re.DOTALL)


@attrs.frozen
class StepBegan(StepReport):
    """A report that a strategy's trigger fired and its run begins.

    Args:
        strategy: The strategy.
        why: The explanation of its trigger.
    """

    strategy: Strategy
    why: str


@attrs.frozen
class StepEnded(StepReport):
    """A report that the run of a strategy has ended.

    Args:
        strategy: The strategy.
        target: Its target; ``never`` if it has no condition for stopping.
        reached: Whether the target holds now; true if the target is ``never``.
    """

    is_end: ClassVar[bool] = True

    strategy: Strategy
    target: Trigger
    reached: bool


@attrs.frozen
class Failed(RunReport):
    """A report that a part of a strategy failed, such as its summarizer.

    Args:
        strategy: The name of the strategy.
        error: The exception.
        policy: The reaction in words: what was done instead.
        edit: An edit that the policy speaks of; if it is refused, the report does not count. The strategy yields it after the
            report: a budget may end the strategy with any edit.
    """

    strategy: str
    error: Exception
    policy: str
    edit: Edit | None = attrs.field(default=None, kw_only=True, repr=False)

    def __str__(self) -> str:
        return f"{self.strategy}: {self.error!r}; {self.policy}"

    def logged(self) -> Failed:
        """Write the report to the package's log, without secrets that an error may quote, and return it."""
        from ..summarizers import redact  # its patterns take long to compile

        _logger.warning("%s failed (%s): %s", self.strategy, redact(repr(self.error)), self.policy)
        return self


Report: TypeAlias = StepBegan | StepEnded | Failed
"""A report on a run, for observers and logs."""

Steps: TypeAlias = Generator[Edit | Drops | Request | Report, Any, None]
"""A running strategy: a generator of edits, requests and reports. `Drops` stands for many edits, which are applied in one loop.

``yield edit`` returns whether the edit was applied, ``yield request`` returns the answer. ``yield from`` works only with
another generator, since a list cannot be sent the answers: for a list, write ``for edit in edits: yield edit``."""


def group_tokens(groups: Iterable[MessageGroup]) -> int:
    """Return the tokens of these groups."""
    return sum(group.tokens for group in groups)


def tokens_in(index: MessageIndex, messages: Iterable[Message | None]) -> int:
    """Return how many tokens these messages have in the view; a ``None`` among them counts nothing."""
    return sum(index.measure(message)[0] for message in messages if message is not None)


def gain(index: MessageIndex, groups: Iterable[MessageGroup], messages: Iterable[Message | None]) -> int:
    """Return how many tokens fewer the view has if these messages take the place of the groups."""
    return group_tokens(groups) - tokens_in(index, messages)


StrategyLike: TypeAlias = "Strategy | Callable[[MessageIndex], Iterable[Edit | Request | Report]]"
"""A strategy, or a function that can be used as one."""


class Strategy(abc.ABC):
    """The base of all strategies. ``a >> b`` is a pipeline that runs ``a``, then ``b``. ``str`` is a shorter `repr`."""

    __slots__ = ()
    runs: ClassVar[str] = ""
    """The name of the field with the strategy, or the tuple of strategies, that this one runs, if there is one."""

    def __str__(self) -> str:
        return _short_text(self)

    @property
    def name(self) -> str:
        """The name in journals and reports."""
        return type(self).__name__

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> Steps:
        """Return a generator of edits; the functions in `compaction.run` advance it and apply the edits."""

    @property
    def children(self) -> tuple[Strategy, ...]:
        """The strategies that this one runs, in order; empty unless it is made of others."""
        inner: Strategy | tuple[Strategy, ...] | None = getattr(self, self.runs) if self.runs else None
        if inner is None:
            return ()
        return inner if isinstance(inner, tuple) else (inner,)

    @property
    def mark_ceilings(self) -> Mapping[str, MarkCeiling]:
        """The size limits of the summaries that this strategy and those inside it write, by strategy name; see `Marks`."""
        ceilings: dict[str, MarkCeiling] = {}
        for child in self.children:
            for name, one in child.mark_ceilings.items():
                ceilings[name] = one.joined(ceilings.get(name, one))
        return ceilings

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        """Return a copy with other children, as many and in the same order; the strategy itself if it has none."""
        given = tuple(children)
        if not given or not self.runs:
            return self
        several = isinstance(getattr(self, self.runs), tuple)
        return cast("Strategy", attrs.evolve(cast("Any", self), **{self.runs: given if several else given[0]}))

    def parts(self) -> Iterator[Strategy]:
        """Yield this strategy and all strategies inside it, outermost first."""
        yield self
        for child in self.children:
            yield from child.parts()

    def changed(self, change: Callable[[Strategy], Strategy]) -> Strategy:
        """Return a copy with ``change`` applied to each of the `parts`, innermost first; itself if no part changed.

        Args:
            change: Returns the part that replaces a part.
        """
        return change(self._of([child.changed(change) for child in self.children]))

    def _of(self, children: Sequence[Strategy]) -> Strategy:
        return self if all(map(operator.is_, children, self.children)) else self.with_children(children)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return the strategy for a forced run, that is, one that the user asked for.

        *Gentle* strategies, such as `ToolResult` and `Summarization`, run in it without their triggers; they override
        `CompactionStrategy.when_forced`. All others, such as `Truncation`, still run only if their triggers fire.

        Args:
            focus: The subject on which a summary should say most.
            others: A further condition for the strategies that are not gentle; ``never`` leaves them out.
        """
        if self.children:
            return self._of([child.forced(focus, others=others) for child in self.children])
        return self if others == always else Pipeline() if others == never else Pipeline(self, trigger=others)

    def waiting(self, index: MessageIndex) -> Iterator[str]:
        """Yield the name of each part whose trigger does not fire, with the trigger's explanation; O(1) for each trigger."""
        trigger: Trigger = getattr(self, "trigger", always)
        fires = trigger == always or trigger(index)
        for part in self.parts() if not fires else ():
            if not part.children:
                yield f"{part.name} ({trigger.explain(index)})"
        for child in self.children if fires else ():
            yield from child.waiting(index)

    def _as_step(self, index: MessageIndex, trigger: Trigger, target: Trigger, run: Callable[[MessageIndex], Steps]) -> Steps:
        """Evaluate the trigger; if it fires, yield what ``run`` yields, and reports before and after."""
        if checked_answer(trigger, trigger(index)):
            yield StepBegan(self, trigger.explain(index))
            yield from run(index)
            yield StepEnded(self, target, target == never or target(index))

    def __rshift__(self, other: StrategyLike) -> Strategy:
        return Pipeline(self, other)

    def __rrshift__(self, other: StrategyLike) -> Strategy:
        return Pipeline(other, self)


_OPPOSITE_OF_TRIGGER: Any = attrs.Factory(lambda strategy: ~strategy.trigger, takes_self=True)


@attrs.frozen
class CompactionStrategy(Strategy):
    """The base of the built-in strategies: evaluates the trigger, yields the edits, and reports the outcome.

    Args:
        trigger: When to run; by default always.
        target: When to stop; by default as soon as the trigger no longer fires. With neither trigger nor target, the strategy
            makes every edit that it can. Set a target well below the trigger: otherwise the strategy runs again on almost every
            turn, and each time the provider's prompt cache is lost.
        keep: The groups that must not be removed or changed.
    """

    trigger: Trigger = attrs.field(default=always, converter=as_trigger, kw_only=True)
    target: Trigger = attrs.field(default=_OPPOSITE_OF_TRIGGER, converter=as_trigger, kw_only=True)
    keep: Selector = attrs.field(default=nothing, converter=as_selector, kw_only=True)
    _unforced: CompactionStrategy | None = attrs.field(default=None, kw_only=True, eq=False, repr=False)

    @final
    def __call__(self, index: MessageIndex) -> Steps:
        """Evaluate the trigger; if it fires, yield what `edits` yields, and reports before and after."""
        return self._as_step(index, self.trigger, self.target, self.edits)

    @abc.abstractmethod
    def edits(self, index: MessageIndex) -> Steps:
        """Yield the edits, in order; stop when ``self.target`` holds."""

    # ---------------------------------------------------------------- runs that a user asks for

    def when_forced(self, focus: str | None) -> Mapping[str, Any] | None:
        """Return the options to change for a forced run; ``None`` if the strategy is not gentle, see `forced`."""
        return None

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        changes = self.when_forced(focus)
        if changes is None:
            return super().forced(focus, others=others)
        return attrs.evolve(self, **changes, unforced=self.unforced)

    @property
    def unforced(self) -> CompactionStrategy:
        """The strategy from which `forced` made this one, or this one itself: they have one history of failures."""
        return self._unforced or self

    # ---------------------------------------------------------------- failures

    @contextlib.contextmanager
    def failures(self, index: MessageIndex, *, pauses: bool = True) -> Generator[list[Exception]]:
        """Run a request. An exception goes into the yielded list, and the history of failures learns whether there was one.

        Mistakes of the caller are raised, whatever the strategy does about failures. ``pauses`` tells whether the strategy
        pauses after a failure.
        """
        failed: list[Exception] = []
        history = index.context.pauses
        try:
            yield failed
        except (ConfigurationError, SyncDriverError):
            raise
        except Exception as error:
            if pauses:
                history.record_failure(self.unforced, index.context.now)
            failed.append(error)
        else:
            history.record_success(self.unforced)

    def is_paused(self, index: MessageIndex) -> bool:
        """Return whether this strategy failed so recently that it should wait; false if the request exceeds the window."""
        return not self.is_past_window(index) and index.context.pauses.is_paused(self.unforced, index.context.now)

    def tried_alike(self, index: MessageIndex, tokens: int, share: float) -> bool:
        """Return whether the last attempt that saved nothing had about as many tokens.

        They differ by less than this share of the view's tokens.
        """
        tried = index.context.pauses.no_gain(self.unforced)
        return tried is not None and abs(tokens - tried) < max(1, share * index.included.tokens)

    @staticmethod
    def is_past_window(index: MessageIndex) -> bool:
        """Return whether a request would exceed the model's window; false if the window is unknown. O(1)."""
        window = index.context.window
        return window is not None and index.tokens > window

    # ---------------------------------------------------------------- the groups that it may change

    def free(self, index: MessageIndex) -> list[int]:
        """Return the ids of the groups that may be removed and are not in ``keep``, oldest first; O(groups)."""
        kept = self.keep(index)
        return [id for id in index.removable_ids(self.name) if id not in kept]

    def candidates(self, index: MessageIndex) -> list[MessageGroup]:
        """Return the groups that may be removed and are not in ``keep``, oldest first; O(groups)."""
        return [*index.columns.snapshots(self.free(index))]

    def rewritable(self, index: MessageIndex, kind: GroupKind | None = None) -> list[MessageGroup]:
        """Return the groups, of one kind or of any, that may be rewritten and are not in ``keep``, oldest first; O(groups)."""
        kept, kind_of = self.keep(index), index.columns.kind
        ids = [id for id in index.included_ids if id not in kept and (kind is None or kind_of(id) is kind)]
        return [index.group(id) for id in ids if index.is_rewritable(id)]

    # ---------------------------------------------------------------- edits until the target holds

    def until_reached(self, index: MessageIndex, edits: Iterable[Edit]) -> Steps:
        """Yield edits until the target holds."""
        for edit in edits:
            if self.target(index):
                return
            yield edit

    def dropped(self, index: MessageIndex, steps: Iterable[Sequence[int]], reason: str) -> Steps:
        """Drop one set of groups after the other, as `MessageIndex.steps` yields them, until the target holds."""
        yield Drops(steps, reason, partial(self.target, index))

    def rewritten(self, index: MessageIndex, change: Callable[[MessageGroup], Edit | None]) -> Steps:
        """Change the groups that may be rewritten, oldest first, until the target holds; ``change`` returns a group's edit."""
        return self.until_reached(index, (edit for group in self.rewritable(index) if (edit := change(group)) is not None))


@attrs.frozen
class FunctionStrategy(Strategy):
    """A plain function as a strategy (see ``docs/own-strategies.md``). ``Pipeline(function, trigger=...)`` gives it a trigger.

    Args:
        function: A function that takes an index and yields edits and requests.
    """

    function: Callable[[MessageIndex], Iterable[Edit | Request | Report]]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __str__(self) -> str:
        return self.name

    def __call__(self, index: MessageIndex) -> Steps:
        yield StepBegan(self, "it has no trigger")
        yield from steps_of(self.function, index, self.name)
        yield StepEnded(self, never, True)


def as_strategy(strategy: StrategyLike) -> Strategy:
    """Return the strategy; a plain function is wrapped in one.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, list | tuple):
        raise ConfigurationError("a list is not a strategy; write Pipeline(first, second), without the brackets")
    refuse_uncalled(strategy, "a strategy")
    if not callable(strategy):
        raise ConfigurationError(f"a strategy must be a callable that takes an index and yields edits (got {strategy!r})")
    return FunctionStrategy(strategy)


@attrs.frozen(init=False, repr=False)
class Pipeline(Strategy):
    """Runs strategies in order, each by its own trigger; put the gentlest first.

    A pipeline is itself a strategy; an empty one does nothing. With a trigger or a target, it is reported as one step. Its
    trigger is then evaluated once; if it fires, each strategy inside still checks its own trigger, and runs even if an earlier
    one has freed enough. Only the pipeline's ``target`` then decides the outcome.

    Args:
        steps: Strategies or plain functions; a nested pipeline without trigger and target is replaced by its strategies.
        trigger: When to run; by default always.
        target: The pipeline succeeds if this holds at the end; by default that the trigger no longer fires, but no target
            (``never``) if all steps are plain functions.

    >>> from compaction.strategies import ClearReasoning, SelectiveToolCall
    >>> ClearReasoning() >> SelectiveToolCall() == Pipeline(ClearReasoning(), SelectiveToolCall())
    True
    """

    runs: ClassVar[str] = "steps"

    steps: tuple[Strategy, ...]
    trigger: Trigger = always
    target: Trigger = attrs.field(default=attrs.Factory(lambda self: self.default_target, takes_self=True))

    def __init__(self, *steps: StrategyLike, trigger: TriggerLike = always, target: TriggerLike | None = None) -> None:
        flat: list[Strategy] = []
        for step in map(as_strategy, steps):
            flat.extend(step.steps if isinstance(step, Pipeline) and step.is_plain else (step,))
        given = () if target is None else (as_trigger(target),)
        self.__attrs_init__(tuple(flat), as_trigger(trigger), *given)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    @property
    def default_target(self) -> Trigger:
        """The target if none is given."""
        are_functions = self.steps and all(isinstance(step, FunctionStrategy) for step in self.steps)
        return never if are_functions else ~self.trigger

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self._arguments(repr))})"

    def __str__(self) -> str:
        lines = ",\n".join(self._arguments(str))
        return f"Pipeline(\n{textwrap.indent(lines, '    ')},\n)" if lines else "Pipeline()"

    def _arguments(self, written: Callable[[Strategy], str]) -> list[str]:
        trigger = [] if self.trigger == always else [f"trigger={self.trigger!r}"]
        target = [] if self.target == self.default_target else [f"target={self.target!r}"]
        return [*map(written, self.steps), *trigger, *target]

    @property
    def is_plain(self) -> bool:
        """Whether it has neither a trigger nor a target."""
        return self.trigger == always and self.target == never

    def __call__(self, index: MessageIndex) -> Steps:
        return self._all(index) if self.is_plain else self._as_step(index, self.trigger, self.target, self._all)

    def _all(self, index: MessageIndex) -> Steps:
        for step in self.steps:
            yield from step(index)

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        return Pipeline(*children, trigger=self.trigger, target=self.target)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return the forced strategies as one pipeline; those that are not gentle still need this pipeline's trigger."""
        when = self.trigger if others == always else others if self.trigger == always else others & self.trigger
        return Pipeline(*(step.forced(focus, others=when) for step in self.steps))


# -------------------------------------------------------------------- the text of a strategy for people to read


def _short_text(strategy: object) -> str:
    """Return a strategy's class and options, without default values and with long texts shortened; else its `repr`.

    >>> from compaction.strategies import Clear, ToolResult
    >>> print(ToolResult(Clear(placeholder="gone " * 99), at_least=500))
    ToolResult(style=Clear(placeholder='gone gone gone gone gone gone gone gone ...', min_chars=200, inputs=()), at_least=500)
    """
    kind = type(strategy)
    if not attrs.has(kind):
        return repr(strategy)
    given = [(field, getattr(strategy, field.name)) for field in attrs.fields(kind) if field.init and field.repr]
    options = [f"{field.alias}={_short(value)}" for field, value in given if value != default_of(field, strategy)]
    return f"{kind.__name__}({', '.join(options)})"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_short, cast('Iterable[Any]', value)))}]"
    has_own_text = type(value).__str__ is not object.__str__ and not isinstance(value, str)
    return str(value) if has_own_text else _LONG_TEXT.sub(r"\1\2...\1", repr(value))
