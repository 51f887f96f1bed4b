"""The result of a run: each step that fired, each failure, and the outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import attrs

from .errors import BudgetUnsatisfiable, SpaceUse
from .index import Edit, GroupKind, MessageGroup, MessageIndex, Metrics, Refusal, opening
from .strategies import Failed, Report, StepBegan, StepEnded, Strategy
from .triggers import Trigger, always, never

__all__ = ["CompactionResult", "Observer", "Outcome", "RunRecorder", "Step", "space_report"]

_logger = logging.getLogger("compaction")

_OPENING: Final = "no user message opens the view, and strict chat templates refuse such a list"

Outcome: TypeAlias = Literal["unchanged", "compacted", "degraded", "over_target"]
"""The outcome of a run.

``degraded``: a part failed and its policy took over. ``over_target``: the budget is exceeded, or a step that fired
ended short of its target, the target is still false, and no later step reached its own."""


@attrs.frozen(kw_only=True)
class Step:
    """One strategy that fired, as an observer sees it.

    Args:
        strategy: The strategy's name.
        configured: The expression that builds it.
        why: Its trigger's explanation.
        before: Sizes of the view when it began.
        after: Sizes of the view when it ended.
        edits: Its edits, in order.
        seconds: How long it took, awaiting included.
        reached: Whether its target held at the end; ``None`` if it was closed before its end.
    """

    strategy: str
    configured: str
    why: str
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    seconds: float
    reached: bool | None


@attrs.frozen(kw_only=True)
class CompactionResult:
    """The result of a run.

    Args:
        messages: The view: the caller's own objects where nothing changed.
        before: Sizes before the run.
        after: Sizes after the run.
        edits: The edits, in order, each with its reason.
        refused: Edits that a strategy asked for and a rule refused.
        failures: What failed, and what was done instead.
        outcome: How the run ended.
        notes: What a strict reader may refuse in the view and would have taken before the run, in words.
    """

    messages: list[Any]
    before: Metrics
    after: Metrics
    edits: tuple[Edit, ...]
    refused: tuple[Refusal, ...]
    failures: tuple[Failed, ...]
    outcome: Outcome
    notes: tuple[str, ...] = ()

    def with_failures(self, *failures: Failed) -> CompactionResult:
        """Return the result with failures of what ran beside the strategy."""
        if not failures:
            return self
        outcome: Outcome = "over_target" if self.outcome == "over_target" else "degraded"
        return attrs.evolve(self, failures=(*self.failures, *failures), outcome=outcome)


Observer: TypeAlias = Callable[[Step], object]
"""A function that is called with each step that fired, as it ends."""


class RunRecorder:
    """Records a run as it happens. Holds state: the steps now running, outermost first, and the targets that were missed.

    Args:
        index: The index of the run.
        on_step: Called with each step.
        clock: Returns seconds, for the durations of steps only.

    Attributes:
        before: Sizes before the run.
        mark: The place in the journal where the run began.
        failures: The failures so far.
        missed: Each strategy that missed its target, with the target.
    """

    def __init__(self, index: MessageIndex, on_step: Observer | None, clock: Callable[[], float]) -> None:
        self.before = index.included
        self._opened_well = _opens_well(index)
        self.mark = index.mark()
        self.failures: list[Failed] = []
        self.missed: list[tuple[Strategy, Trigger]] = []
        self._index = index
        self._on_step = on_step
        self._clock = clock
        self._open: list[tuple[StepBegan, Metrics, int, float]] = []

    @property
    def running(self) -> str:
        """The name of the strategy that is running."""
        return self._open[-1][0].strategy.name if self._open else ""

    def note(self, report: Report) -> None:
        """Record a strategy's report."""
        if isinstance(report, StepBegan):
            self._index.begin_step()
            self._open.append((report, self._index.included, self._index.edit_count, self._clock()))
        elif isinstance(report, StepEnded):
            self._close(report)
        else:
            self.failures.append(report.logged())

    def _close(self, ended: StepEnded) -> None:
        """End a step, and first the steps inside it that were closed without a report."""
        if self._index.end_step() and not ended.reached:
            ended = attrs.evolve(ended, reached=ended.target != never and ended.target(self._index))
        while self._open:
            began, before, mark, start = self._open.pop()
            mine = began.strategy is ended.strategy
            step = Step(
                strategy=began.strategy.name,
                configured=repr(began.strategy),
                why=began.why,
                before=before,
                after=self._index.included,
                edits=self._index.edits_since(mark),
                seconds=self._clock() - start,
                reached=ended.reached if mine else None,
            )
            self._tell(step)
            if mine:
                break
        if self._open:
            return
        if not ended.reached:
            self.missed.append((ended.strategy, ended.target))
        elif ended.target != never:
            self.missed = [each for each in self.missed if self._fires(each[0])]

    def _fires(self, strategy: Strategy) -> bool:
        """Return whether a strategy would run again at once: then a later target does not make up for the one it missed."""
        trigger = getattr(strategy, "trigger", always)
        return trigger != always and trigger(self._index)

    def _tell(self, step: Step) -> None:
        sizes = (step.before.tokens, step.after.tokens, step.before.messages, step.after.messages)
        _logger.info("%s: %d edits, tokens %d to %d, messages %d to %d (%s)", step.strategy, len(step.edits), *sizes, step.why)
        if self._on_step is not None:
            self._on_step(step)

    def result(self, budget: int | None, *, hard: bool) -> CompactionResult:
        """Return the result of the run.

        Args:
            budget: Tokens that a request may send.
            hard: Whether to raise if the budget or a target is missed.

        Raises:
            BudgetUnsatisfiable: If ``hard``, and the budget or a target is missed.
        """
        index = self._index
        edits = index.edits_since(self.mark)
        missed = [repr(target) for _, target in self.missed if not target(index)]
        if budget is not None and index.tokens > budget:
            missed.append(f"budget={budget}")
        if missed and hard:
            raise BudgetUnsatisfiable(index.tokens, missed, space_report(index))
        return CompactionResult(
            messages=index.messages(),
            before=self.before,
            after=index.included,
            edits=edits,
            refused=index.refused,
            failures=tuple(self.failures),
            outcome="over_target" if missed else "degraded" if self.failures else "compacted" if edits else "unchanged",
            notes=(_OPENING,) if self._opened_well and edits and not _opens_well(index) else (),
        )


def _opens_well(index: MessageIndex) -> bool:
    """Return whether the view begins as its format prefers; O(instructions that lead it)."""
    return index.format.prefers(None, opening(index.columns))


_MOST: Final = 5
_SHORTEN: Final = "end with ToolResult(HeadTail(), keep=nothing) or Offload(..., keep=nothing), which shorten results in place"
_REMEDIES: Final = {
    GroupKind.SYSTEM: "shorten the instructions, or allow drop_system=True",
    GroupKind.USER: "shorten or split what the user sends before it is added",
    GroupKind.ASSISTANT: "let its strategies keep less",
    GroupKind.TOOL_CALL: _SHORTEN,
    GroupKind.SUMMARY: "ask for a shorter summary",
}


def space_report(index: MessageIndex, *, most: int = _MOST) -> tuple[SpaceUse, ...]:
    """Return the largest groups of the view and the overhead of a request, largest first; O(groups log groups).

    Args:
        index: The conversation.
        most: The number of entries, >= 1.

    >>> index = MessageIndex([{"role": "user", "content": "word " * 400}], counter="chars/4")
    >>> print(space_report(index)[0])
    group 0 (user): 504 tokens, the newest group stays; shorten or split what the user sends before it is added
    """
    uses = [_use(index, group) for group in index.included_groups]
    overhead = index.context.overhead_tokens
    if overhead > 0:
        remedy = "send fewer or shorter tool schemas"
        uses.append(SpaceUse(group=None, kind="overhead", tokens=overhead, why="it is sent beside the messages", remedy=remedy))
    return tuple(sorted(uses, key=lambda use: use.tokens, reverse=True)[:most])


def _use(index: MessageIndex, group: MessageGroup) -> SpaceUse:
    rule = index.protection(group)
    remedy = _REMEDIES[group.kind]
    if group.pinned:
        remedy = "pin less"
    elif group.pending:
        remedy = "shorten the result before it is added, or wait for the last one"
    elif rule is None and group.kind is not GroupKind.TOOL_CALL:
        remedy = "let its strategies keep less"
    why = "no strategy took it" if rule is None else rule
    return SpaceUse(group=group.id, kind=group.kind.value, tokens=group.tokens, why=why, remedy=remedy)
