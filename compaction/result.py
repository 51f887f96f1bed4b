"""`CompactionResult`, the result of a run, and `RunRecorder`, which collects it while a strategy runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import attrs

from .errors import BudgetUnsatisfiable, SpaceUse
from .index import Edit, GroupKind, MessageGroup, MessageIndex, Metrics, Refusal, opening
from .messages import Message
from .selectors import Selector, nothing
from .strategies import Failed, Report, StepBegan, StepEnded, Strategy
from .triggers import Trigger, always, never

__all__ = ["WORSE_OPENING", "CompactionResult", "Observer", "Outcome", "RunRecorder", "Step", "space_report"]

_logger = logging.getLogger("compaction")

WORSE_OPENING: Final = "the shortened list does not begin with a user message; strict chat templates refuse such a list"
"""The note about a run after which the list no longer begins as its format prefers."""

Outcome: TypeAlias = Literal["unchanged", "compacted", "degraded", "over_target"]
"""The outcome of a run.

- ``unchanged``: no edit was made.
- ``compacted``: edits were made, and nothing failed.
- ``degraded``: something failed, see ``failures``: a part, such as a summarizer, whose strategy's fallback was used; or the
  saving of a session, or its ``on_event``.
- ``over_target``: the budget is exceeded, or a strategy that ran missed its target. A missed target does not count

  - if it holds at the end of the run, or
  - if a later strategy reached its target, and the earlier one, if it has a trigger, would not run again.
"""


@attrs.frozen(kw_only=True)
class Step:
    """The run of one strategy whose trigger fired.

    Args:
        strategy: The strategy's name.
        configured: The ``repr`` of the strategy.
        why: Its trigger's explanation.
        before: Sizes of the view when it began.
        after: Sizes of the view when it ended.
        edits: Its own edits, in order. The edits of a strategy inside it are only in the inner `Step`.
        seconds: Its duration, including the time spent waiting.
        reached: Whether its target held at the end; ``None`` if an enclosing strategy stopped it.
    """

    strategy: str
    configured: str
    why: str
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    seconds: float
    reached: bool | None


@attrs.frozen(kw_only=True, repr=False)
class CompactionResult:
    """The result of a run.

    Args:
        messages: The compacted list; unchanged messages are the caller's own objects.
        before: Sizes before the run.
        after: Sizes after the run.
        edits: The edits that were applied, in order, each with its reason.
        refused: The edits that were not applied, each with the rule that forbids it.
        failures: The parts that failed, and what was done instead.
        outcome: The outcome of the run.
        notes: Warnings in words, such as which strategy missed its target, with the target's value.
        triggered: The steps that made edits, each with the explanation of its trigger; a step comes after those inside it.
    """

    messages: list[Any]
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    refused: tuple[Refusal, ...]
    failures: tuple[Failed, ...]
    outcome: Outcome
    notes: tuple[str, ...] = ()
    triggered: tuple[str, ...] = ()

    def __repr__(self) -> str:
        before, after = self.before, self.after
        sizes = f"tokens {before.tokens:,} to {after.tokens:,}, messages {before.messages:,} to {after.messages:,}"
        counts = f"edits {len(self.edits):,}, refused {len(self.refused):,}, failures {len(self.failures):,}"
        notes = f", notes {len(self.notes):,}" if self.notes else ""
        return f"<CompactionResult {self.outcome}: {sizes}, {counts}{notes}>"

    def with_failures(self, *failures: Failed) -> CompactionResult:
        """Return the result with more failures, such as that the session could not be saved."""
        if not failures:
            return self
        outcome: Outcome = "over_target" if self.outcome == "over_target" else "degraded"
        return attrs.evolve(self, failures=(*self.failures, *failures), outcome=outcome)


Observer: TypeAlias = Callable[[Step], object]
"""A function that is called after each strategy that ran, with its `Step`."""


@attrs.frozen(eq=False)
class _OpenStep:
    """A step that has begun, and where it began."""

    began: StepBegan
    before: Metrics
    edits: int  # the number of edits before it
    start: float  # seconds


class RunRecorder:
    """Collects the reports of a running strategy, and tells the index when a step begins and ends.

    Holds state: the open steps, the failures and the missed targets.

    Args:
        index: The index of the run.
        on_step: Called with each step as it ends.

    Attributes:
        before: Sizes before the run.
        checkpoint: The position in the journal where the run began, for `MessageIndex.rollback`.
        failures: The failures so far.
        missed: Each strategy that missed its target, with the target.
        triggered: Each strategy that made edits, with the explanation of its trigger.
    """

    def __init__(self, index: MessageIndex, on_step: Observer | None) -> None:
        self.before = index.included
        self.checkpoint = index.checkpoint()
        self.failures: list[Failed] = []
        self.missed: list[tuple[Strategy, Trigger]] = []
        self.triggered: list[str] = []
        self._index = index
        self._opening_before = self._opening()
        self._on_step = on_step
        self._is_watched = on_step is not None or _logger.isEnabledFor(logging.INFO)
        self._open: list[_OpenStep] = []
        self._announced: dict[int, Edit] = {}  # the edits of the steps that ended, by identity

    def note(self, report: Report) -> None:
        """Record a strategy's report."""
        if isinstance(report, StepBegan):
            self._index.begin_step(report.strategy)
            self._open.append(_OpenStep(report, self._index.included, self._index.edit_count, time.perf_counter()))
        elif isinstance(report, StepEnded):
            self._close(report)
        else:
            self.failures.append(report if report.edit is not None else report.logged())

    def _close(self, ended: StepEnded) -> None:
        """End a step, and those inside it that were stopped and so could not report their end."""
        reached = ended.reached
        if self._index.end_step(ended.strategy) and not reached:  # refused drops were applied
            reached = ended.target != never and ended.target(self._index)
        is_own = False
        while self._open and not is_own:
            step = self._open.pop()
            is_own = step.began.strategy is ended.strategy
            if self._index.edit_count > step.edits:
                self.triggered.append(f"{step.began.strategy.name}: {step.began.why}")
            if self._is_watched:
                self._announce(step, reached=reached if is_own else None)
        if not self._open:
            self._account_for(ended, reached=reached)

    def _account_for(self, ended: StepEnded, *, reached: bool) -> None:
        """Note that a step missed its target, or which earlier ones it makes up for; see `Outcome`.

        A step inside another one counts only with that one.
        """
        if not reached:
            self.missed.append((ended.strategy, ended.target))
        elif ended.target != never:  # the later strategy reached its own target
            self.missed = [each for each in self.missed if self._fires(each[0])]

    def _announce(self, ended: _OpenStep, *, reached: bool | None) -> None:
        """Log a step that ended, and pass it to ``on_step``, with the edits that no step inside it made."""
        own = {id(edit): edit for edit in self._index.edits_since(ended.edits) if id(edit) not in self._announced}
        self._announced |= own
        step = Step(
            strategy=ended.began.strategy.name,
            configured=repr(ended.began.strategy),
            why=ended.began.why,
            before=ended.before,
            after=self._index.included,
            edits=tuple(own.values()),
            seconds=time.perf_counter() - ended.start,
            reached=reached,
        )
        sizes = (step.before.tokens, step.after.tokens, step.before.messages, step.after.messages)
        _logger.info("%s: %d edits, tokens %d to %d, messages %d to %d (%s)", step.strategy, len(step.edits), *sizes, step.why)
        if self._on_step is not None:
            self._on_step(step)

    def _fires(self, strategy: Strategy) -> bool:
        """Return whether a strategy's trigger still fires; if so, a later step's target does not make up for the missed one."""
        trigger = getattr(strategy, "trigger", always)
        return trigger != always and trigger(self._index)

    def result(self, budget: int | None, *, hard: bool) -> CompactionResult:
        """Return the result of the run.

        Args:
            budget: The most tokens of the next request.
            hard: Whether to raise an error if the budget or a target is missed.

        Raises:
            BudgetUnsatisfiable: If ``hard`` is true, and the budget or a target is missed.
        """
        index = self._index
        edits = index.edits_since(self.checkpoint)
        missed = [
            (repr(target), _missed_note(strategy, target, index)) for strategy, target in self.missed if not target(index)
        ]
        if budget is not None and index.tokens > budget:
            missed.append((f"budget={budget}", f"the budget is {budget:,} tokens; {index.tokens:,} are left"))
        if missed and hard:
            raise BudgetUnsatisfiable(index.tokens, tuple([wanted for wanted, _ in missed]), space_report(index))
        failures = [each if each.edit is None else each.logged() for each in self.failures if each.edit in (None, *edits)]
        return CompactionResult(
            messages=index.messages(),
            before=self.before,
            after=index.included,
            edits=edits,
            refused=index.refused,
            failures=tuple(failures),
            outcome="over_target" if missed else "degraded" if failures else "compacted" if edits else "unchanged",
            notes=(*[note for _, note in missed], *((WORSE_OPENING,) if edits and self._opens_worse() else ())),
            triggered=tuple(self.triggered),
        )

    def _opens_worse(self) -> bool:
        """Return whether the view began as its format prefers and no longer does; O(leading system messages)."""
        prefers = self._index.format.prefers
        return not prefers(None, self._opening()) and prefers(None, self._opening_before)

    def _opening(self) -> Message | None:
        """Return the first message of the view after the instructions."""
        columns = self._index.columns
        place = opening(columns)
        return None if place is None else columns.at(place, end=False)


_TARGET_CHARS: Final = 100  # of a target in a note; that of a preset may have a whole strategy in it


def _missed_note(strategy: Strategy, target: Trigger, index: MessageIndex) -> str:
    positive: Trigger = getattr(target, "part", target)  # "tokens 90 > 50" says more than "not (tokens 90 > 50)"
    written = repr(target)
    short = written if len(written) <= _TARGET_CHARS else f"{written[:_TARGET_CHARS]}..."
    return f"{strategy.name} missed its target {short}: {positive.explain(index)}; {_what_is_left(strategy, index)}"


def _what_is_left(strategy: Strategy, index: MessageIndex) -> str:
    """Return in words what fills the view; O(groups).

    That is the ``keep`` of the strategy's last part, which runs if the others were not enough, if it keeps most of the request
    from being removed; otherwise the largest group.
    """
    keeps = [getattr(part, "keep", None) for part in strategy.parts()]
    keep = next((each for each in reversed(keeps) if isinstance(each, Selector)), nothing)
    kept, size_of = keep(index), index.columns.tokens
    keeps_most = 2 * sum(map(size_of, kept.intersection(index.removable_ids()))) > index.tokens
    if not keeps_most:
        return f"the largest part is {next(iter(space_report(index)), 'nothing: the view is empty')}"
    tokens, groups = sum(map(size_of, kept)), len(kept)
    return f"keep={keep!r} keeps {tokens:,} tokens in {groups:,} groups: choose fewer, such as keep=last(groups=2)"


_MOST_USES: Final = 5
_KEEP_LESS: Final = "let the strategies keep less"
_SHORTEN: Final = "add ToolResult(HeadTail(), keep=nothing) or Offload(..., keep=nothing) as the last strategy"
_REMEDIES: Final = {
    GroupKind.SYSTEM: "shorten the instructions, or pass drop_system=True to Truncation",
    GroupKind.USER: "shorten or split user messages before you add them",
    GroupKind.ASSISTANT: _KEEP_LESS,
    GroupKind.TOOL_CALL: _SHORTEN,
    GroupKind.SUMMARY: "ask for a shorter summary",
}


def space_report(index: MessageIndex) -> tuple[SpaceUse, ...]:
    """Return the five largest parts of the request (groups of the view, and the overhead); O(groups log groups).

    >>> index = MessageIndex([{"role": "user", "content": "word " * 400}], counter="chars/4")
    >>> print(space_report(index)[0])
    group 0 (user): 504 tokens, the newest group must be kept; shorten or split user messages before you add them
    """
    uses = [_use(index, group) for group in index.included_groups]
    overhead = index.context.overhead_tokens
    if overhead > 0:
        remedy = "send fewer or shorter tool schemas"
        uses.append(SpaceUse(group=None, kind="overhead", tokens=overhead, why="it is sent beside the messages", remedy=remedy))
    return tuple(sorted(uses, key=lambda use: use.tokens, reverse=True)[:_MOST_USES])


def _use(index: MessageIndex, group: MessageGroup) -> SpaceUse:
    rule = index.protection(group)
    remedy = _REMEDIES[group.kind]
    if group.pinned:
        remedy = "pin less"
    elif group.pending:
        remedy = "shorten results before you add them, or compact again after the last result has arrived"
    elif rule is None and group.kind is not GroupKind.TOOL_CALL:
        remedy = _KEEP_LESS
    why = "no strategy removed it" if rule is None else rule
    return SpaceUse(group=group.id, kind=group.kind.value, tokens=group.tokens, why=why, remedy=remedy)
