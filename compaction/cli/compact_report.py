"""What ``compaction compact`` says it did: sizes, each step with its reason, the outcome, and whether the result is valid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import attrs

from ..edits import Edit, named
from ..files import Conversation
from ..formats import Problem
from ..metrics import Metrics
from ..run import CompactionResult, Outcome, Step
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
        why: Why it began.
        did: What it did, but for what a step within it did and told before.
        before: Sizes when it began.
        after: Sizes when it ended.
        reached: Whether its target held then.
    """

    strategy: str
    why: str
    did: list[Deed]
    before: Metrics
    after: Metrics
    reached: bool

    @classmethod
    def all_of(cls, steps: Sequence[Step]) -> list[StepTaken]:
        """What there is to say about the steps of a run."""
        told: set[int] = set()
        taken: list[StepTaken] = []
        for step in steps:
            own = [edit for edit in step.edits if id(edit) not in told]
            told.update(map(id, own))
            taken.append(cls(step.strategy, step.why, _deeds(own), step.before, step.after, step.reached))
        return taken


@attrs.frozen
class Compacted:
    """What became of one conversation.

    Args:
        where: Its file, and its line where the file holds several.
        id: Its id.
        outcome: How the run ended.
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
        problems: tuple[Sequence[Problem], Sequence[Problem]],
    ) -> Compacted:
        """What there is to say about a run, and about the problems before and after it."""
        before, after = (Counter(problem.rule for problem in found) for found in problems)
        return cls(
            where=conversation.where,
            id=conversation.id,
            outcome=result.outcome,
            before=result.before,
            after=result.after,
            steps=StepTaken.all_of(steps),
            refused=dict(Counter(refusal.rule for refusal in result.refused)),
            failures=[f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
            problems=list(problems[1]),
            new_problems=sorted(after - before),
        )

    @property
    def is_well(self) -> bool:
        """Whether it is small enough and breaks no rule that it did not break before."""
        return self.outcome != "over_target" and not self.new_problems

    @property
    def validity(self) -> str:
        """In words, whether the result breaks rules."""
        if not self.problems:
            return "valid"
        count = counted(len(self.problems), "problem")
        return f"{count}, new: {', '.join(self.new_problems)}" if self.new_problems else f"{count}, none new"


@attrs.frozen
class CompactReport:
    """What became of all conversations of a file.

    Args:
        file: Its name as given.
        counter: What counted.
        exact: Whether its counts are those of its encoding.
        note: What has to be said about it, if anything.
        strategy: The strategy, as the expression that builds it.
        budget: Tokens by which each result was judged.
        conversations: What became of each.
    """

    file: str
    counter: str
    exact: bool
    note: str | None
    strategy: str
    budget: int
    conversations: list[Compacted]

    def totals(self) -> dict[str, Any]:
        """Sums over the conversations."""
        return {
            "conversations": len(self.conversations),
            "before": _sum(done.before for done in self.conversations),
            "after": _sum(done.after for done in self.conversations),
            "outcomes": dict(Counter(done.outcome for done in self.conversations)),
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
                self._show_one(console, self.conversations[0])
            else:
                self._show_all(console)
            if self.note:
                console.print(safe(self.note))

    def _show_one(self, console: Console, done: Compacted) -> None:
        sizes = zip(attrs.asdict(done.before).items(), attrs.asdict(done.after).values(), strict=True)
        rows = [
            (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
            for (name, before), after in sizes
        ]
        show_table(console, [done.where, ">before", ">after", ">left"], rows)
        if done.steps:
            columns = ["step", "~why", "~groups", ">tokens before", ">after"]
            show_table(console, columns, [row for step in done.steps for row in _step_rows(step)])
        for rule, times in done.refused.items():
            console.print(safe(f"not done, {times:,} times: {rule}"))
        for failure in done.failures:
            console.print(safe(f"failed: {failure}"))
        for problem in done.problems:
            console.print(safe(str(problem)))
        console.print(
            f"{_in_words(done.outcome)}; {done.validity}; budget {self.budget:,} tokens, counted by {self._counted_by}"
        )

    def _show_all(self, console: Console) -> None:
        rows = [
            _line(place_in(self.file, done.where), done.id, done.before, done.after, _in_words(done.outcome), done.validity)
            for done in self.conversations
        ]
        totals = self.totals()
        outcomes = ", ".join(f"{count:,} {_in_words(outcome)}" for outcome, count in totals["outcomes"].items())
        problems = f"{totals['with_problems']:,} with problems" if totals["with_problems"] else "all valid"
        before, after = Metrics(**totals["before"]), Metrics(**totals["after"])
        rows.append(_line("all", f"{len(rows):,}", before, after, outcomes, problems))
        columns = ["conversation", "id", ">tokens", ">after", ">left", ">messages", ">after", "outcome", "validity"]
        show_table(console, columns, rows)
        console.print(f"budget {self.budget:,} tokens each, counted by {self._counted_by}")

    @property
    def _counted_by(self) -> str:
        return safe(f"{self.counter}{'' if self.exact else ', an estimate'}")


def _sum(sizes: Iterator[Metrics]) -> dict[str, int]:
    totals = attrs.asdict(Metrics())
    for size in sizes:
        for name, value in attrs.asdict(size).items():
            totals[name] += value
    return totals


def _in_words(outcome: str) -> str:
    return outcome.replace("_", " ")


def _line(where: str, id: str, before: Metrics, after: Metrics, *ended: str) -> Sequence[str]:
    left = percent(after.tokens / before.tokens) if before.tokens else ""
    sizes = (f"{before.tokens:,}", f"{after.tokens:,}", left, f"{before.messages:,}", f"{after.messages:,}")
    return where, id, *sizes, *ended


def _step_rows(step: StepTaken) -> Iterator[Sequence[str]]:
    """A line for each thing a step did, the step's own on the first."""
    did = [str(deed) for deed in step.did] or ["nothing to do" if step.before == step.after else "all of the above"]
    yield step.strategy, step.why, did[0], f"{step.before.tokens:,}", f"{step.after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
