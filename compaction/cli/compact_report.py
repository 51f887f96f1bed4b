"""What ``compaction compact`` says it did: sizes, each step with its reason, the outcome, and whether the result is valid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import attrs

from ..edits import Edit, named
from ..files import Conversation
from ..formats import MessageFormat, Problem
from ..metrics import Metrics
from ..outcome import CompactionResult, Outcome, Step
from .terminal import console_on, counted, percent, place_in, safe, show_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["CompactReport", "Compacted", "Deed", "StepTaken"]

_DONE: Final = {
    "Drop": "dropped",
    "Replace": "replaced",
    "Restore": "brought back",
    "Rewrite": "shortened",
    "Together": "changed together",
}


@attrs.frozen
class Deed:
    """Edits of one kind that a step made for one reason.

    Args:
        edit: Their kind.
        reason: Why.
        groups: How many groups they named.
    """

    edit: str
    reason: str
    groups: int

    def __str__(self) -> str:
        return f"{self.groups:,} {_DONE[self.edit]}: {self.reason}"


def _deeds(edits: Sequence[Edit]) -> list[Deed]:
    groups: Counter[tuple[str, str]] = Counter()
    for edit in edits:
        groups[type(edit).__name__, edit.reason] += len(named(edit))
    return [Deed(kind, reason, count) for (kind, reason), count in groups.items()]


@attrs.frozen
class StepTaken:
    """One step, without the messages it held.

    Args:
        strategy: Which strategy it was.
        configured: The expression that builds it.
        why: Why it began.
        did: What it did, but for what a step within it did and told before.
        before: Sizes when it began.
        after: Sizes when it ended.
        reached: Whether its target held then; ``None`` if it was closed before it could say.
    """

    strategy: str
    configured: str
    why: str
    did: list[Deed]
    before: Metrics
    after: Metrics
    reached: bool | None

    @classmethod
    def all_of(cls, steps: Sequence[Step]) -> list[StepTaken]:
        """What there is to say about the steps of a run."""
        told: set[int] = set()
        taken: list[StepTaken] = []
        for step in steps:
            own = [edit for edit in step.edits if id(edit) not in told]
            told.update(map(id, own))
            taken.append(cls(step.strategy, step.configured, step.why, _deeds(own), step.before, step.after, step.reached))
        return taken


@attrs.frozen
class Compacted:
    """What became of one conversation.

    Args:
        where: Its file, and its line where the file holds several.
        id: Its id.
        outcome: How the run ended, in the library's words: ``over_target`` also if a step fell short of its own target.
        fits: Whether the result is within the budget, or reached the strategy's targets if there is none.
        before: Sizes before.
        after: Sizes after.
        steps: What was done, in the order in which steps ended.
        refused: Rules of this package that forbade an edit, and how often.
        failures: What failed, and what was done instead.
        problems: Rules of the format that the result breaks.
        new_problems: Names of those that were not broken as often before.
    """

    where: str
    id: str
    outcome: Outcome
    fits: bool
    before: Metrics
    after: Metrics
    steps: list[StepTaken]
    refused: dict[str, int]
    failures: list[str]
    problems: list[Problem]
    new_problems: list[str]

    @classmethod
    def of(
        cls,
        conversation: Conversation,
        result: CompactionResult,
        steps: Sequence[Step],
        *,
        budget: int | None,
        format: MessageFormat,
    ) -> Compacted:
        """What there is to say about a run.

        Args:
            conversation: What was compacted.
            result: What came of it.
            steps: What was done.
            budget: Tokens by which the result is judged; ``None`` to judge it by the strategy's own targets.
            format: Its wire format.
        """
        problems = format.validate(result.messages)
        known = Counter(problem.rule for problem in format.validate(conversation.messages))
        new = Counter(problem.rule for problem in problems) - known
        return cls(
            where=conversation.where,
            id=conversation.id,
            outcome=result.outcome,
            fits=result.outcome != "over_target" if budget is None else result.after.tokens <= budget,
            before=result.before,
            after=result.after,
            steps=StepTaken.all_of(steps),
            refused=dict(Counter(refusal.rule for refusal in result.refused)),
            failures=[f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
            problems=problems,
            new_problems=sorted(new),
        )

    @property
    def is_well(self) -> bool:
        """Whether it fits and breaks no rule that it did not break before."""
        return self.fits and not self.new_problems

    @property
    def verdict(self) -> str:
        """In words, how it ended, and whether the result is valid."""
        ended = "compacted" if any(step.did for step in self.steps) else "unchanged"
        if not self.fits:
            ended = f"{ended}, over budget"
        if self.failures:
            ended = f"{ended}, {counted(len(self.failures), 'failure')}"
        if not self.problems:
            return f"{ended}; valid"
        new = f"new: {', '.join(self.new_problems)}" if self.new_problems else "none new"
        return f"{ended}; {counted(len(self.problems), 'problem')}, {new}"


@attrs.frozen
class CompactReport:
    """What became of all conversations of a file.

    Args:
        file: Its name as given.
        counter: What counted.
        exact: Whether its counts are those of its encoding.
        note: What has to be said about it, if anything.
        strategy: The strategy, as the expression that builds it.
        budget: Tokens by which each result was judged, if there is a budget.
        conversations: What became of each.
    """

    file: str
    counter: str
    exact: bool
    note: str | None
    strategy: str
    budget: int | None
    conversations: list[Compacted]

    def totals(self) -> dict[str, Any]:
        """Sums over the conversations."""
        return {
            "conversations": len(self.conversations),
            "before": _sum(done.before for done in self.conversations),
            "after": _sum(done.after for done in self.conversations),
            "outcomes": dict(Counter(done.outcome for done in self.conversations)),
            "over_budget": sum(not done.fits for done in self.conversations),
            "with_problems": sum(bool(done.problems) for done in self.conversations),
            "with_new_problems": sum(bool(done.new_problems) for done in self.conversations),
        }

    def write_json(self, stream: TextIO) -> None:
        """Write it as one line of JSON."""
        stream.write(json.dumps({**attrs.asdict(self), "totals": self.totals()}) + "\n")

    def show(self, stream: TextIO) -> None:
        """Show it to a person: one conversation at length, several with a line for each."""
        with console_on(stream) as console:
            if len(self.conversations) == 1:
                _show_one(console, self.conversations[0])
            else:
                self._show_all(console)
            precision = "" if self.exact else ", an estimate"
            judged = "no budget, tokens" if self.budget is None else f"budget {self.budget:,} tokens,"
            console.print(safe(f"{judged} counted by {self.counter}{precision}"))
            if self.note:
                console.print(safe(self.note))

    def _show_all(self, console: Console) -> None:
        rows = [
            _line(place_in(self.file, done.where), done.id, done.before, done.after, done.verdict)
            for done in self.conversations
        ]
        totals = self.totals()
        before, after = Metrics(**totals["before"]), Metrics(**totals["after"])
        verdict = f"{totals['over_budget']:,} over budget; {totals['with_problems']:,} with problems"
        rows.append(_line("all", f"{len(rows):,}", before, after, verdict))
        show_table(console, ["~conversation", "~id", ">tokens", ">after", ">left", ">messages", ">after", "~result"], rows)


def _sum(sizes: Iterator[Metrics]) -> dict[str, int]:
    totals = attrs.asdict(Metrics())
    for size in sizes:
        for name, value in attrs.asdict(size).items():
            totals[name] += value
    return totals


def _line(where: str, id: str, before: Metrics, after: Metrics, verdict: str) -> Sequence[str]:
    left = percent(after.tokens / before.tokens) if before.tokens else ""
    return where, id, f"{before.tokens:,}", f"{after.tokens:,}", left, f"{before.messages:,}", f"{after.messages:,}", verdict


def _show_one(console: Console, done: Compacted) -> None:
    sizes = zip(attrs.asdict(done.before).items(), attrs.asdict(done.after).values(), strict=True)
    rows = [
        (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
        for (name, before), after in sizes
    ]
    show_table(console, [safe(done.where), ">before", ">after", ">left"], rows)
    if done.steps:
        columns = ["step", "~why", "~groups", ">tokens before", ">after"]
        show_table(console, columns, [row for step in done.steps for row in _step_rows(step)])
    for rule, times in done.refused.items():
        console.print(safe(f"not done, {counted(times, 'time')}: {rule}"))
    for failure in done.failures:
        console.print(safe(f"failed: {failure}"))
    for problem in done.problems:
        console.print(safe(str(problem)))
    console.print(safe(done.verdict))


def _step_rows(step: StepTaken) -> Iterator[Sequence[str]]:
    """A line for each thing a step did, the step's own on the first."""
    did = [str(deed) for deed in step.did] or ["nothing to do" if step.before == step.after else "all of the above"]
    yield step.strategy, step.why, did[0], f"{step.before.tokens:,}", f"{step.after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
