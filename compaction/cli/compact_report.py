"""The report of ``compaction compact``: sizes, each step with its reason, the outcome, and whether the result is valid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

import attrs

from ..files import FileConversation
from ..formats import MessageFormat, Problem
from ..index import Edit, Metrics, named
from ..result import CompactionResult, Outcome, Step
from .printing import open_console, percent, plural, print_table, printable, short_location

if TYPE_CHECKING:
    from rich.console import Console

_VERBS: Final = {
    "Drop": "dropped",
    "Replace": "replaced",
    "Restore": "brought back",
    "Rewrite": "shortened",
    "Together": "changed together",
}


@attrs.frozen
class EditSummary:
    """The edits of one kind that a step made for one reason.

    Args:
        edit: The kind of edit.
        reason: The reason.
        groups: The number of groups they name.
    """

    edit: str
    reason: str
    groups: int

    def __str__(self) -> str:
        return f"{self.groups:,} {_VERBS[self.edit]}: {self.reason}"


def _summaries(edits: Sequence[Edit]) -> list[EditSummary]:
    groups: Counter[tuple[str, str]] = Counter()
    for edit in edits:
        groups[type(edit).__name__, edit.reason] += len(named(edit))
    return [EditSummary(kind, reason, count) for (kind, reason), count in groups.items()]


@attrs.frozen
class StepReport:
    """One step of a run, without messages.

    Args:
        strategy: The strategy's name.
        configured: The expression that builds it.
        why: Why it ran.
        did: Its edits, without those of a step inside it that was reported before.
        before: Sizes before it.
        after: Sizes after it.
        reached: Whether its target held at the end; ``None`` if it was closed before that was known.
    """

    strategy: str
    configured: str
    why: str
    did: list[EditSummary]
    before: Metrics
    after: Metrics
    reached: bool | None

    @classmethod
    def all_of(cls, steps: Sequence[Step]) -> list[StepReport]:
        """Return the reports of a run's steps."""
        reported: set[int] = set()
        reports: list[StepReport] = []
        for step in steps:
            own = [edit for edit in step.edits if id(edit) not in reported]
            reported.update(map(id, own))
            reports.append(
                cls(step.strategy, step.configured, step.why, _summaries(own), step.before, step.after, step.reached)
            )
        return reports


@attrs.frozen
class CompactedConversation:
    """The report on one conversation.

    Args:
        where: Its file, and its line if the file holds several conversations.
        id: Its id.
        outcome: The run's outcome; ``over_target`` also if a step missed its own target.
        fits: Whether the result is within the budget, or within the strategy's targets if there is no budget.
        before: Sizes before.
        after: Sizes after.
        steps: The steps, in the order in which they ended.
        refused: The rules by which edits were refused, and how often.
        failures: What failed, and what was done instead.
        notes: What a strict reader may refuse in the result.
        problems: The rules of the format that the result breaks.
        new_problems: The names of rules that were not broken as often before.
    """

    where: str
    id: str
    outcome: Outcome
    fits: bool
    before: Metrics
    after: Metrics
    steps: list[StepReport]
    refused: dict[str, int]
    failures: list[str]
    notes: list[str]
    problems: list[Problem]
    new_problems: list[str]

    @classmethod
    def of(
        cls,
        conversation: FileConversation,
        result: CompactionResult,
        steps: Sequence[Step],
        *,
        budget: int | None,
        format: MessageFormat,
    ) -> CompactedConversation:
        """Return the report on a run.

        Args:
            conversation: The conversation.
            result: The run's result.
            steps: The run's steps.
            budget: Tokens the result may have; ``None`` for the strategy's own targets.
            format: The wire format.
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
            steps=StepReport.all_of(steps),
            refused=dict(Counter(refusal.rule for refusal in result.refused)),
            failures=[f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
            notes=list(result.notes),
            problems=problems,
            new_problems=sorted(new),
        )

    @property
    def is_well(self) -> bool:
        """Whether the result fits and breaks no new rule."""
        return self.fits and not self.new_problems

    @property
    def verdict(self) -> str:
        """The outcome, and whether the result is valid, in words."""
        ended = "compacted" if any(step.did for step in self.steps) else "unchanged"
        if not self.fits:
            ended = f"{ended}, over budget"
        if self.failures:
            ended = f"{ended}, {plural(len(self.failures), 'failure')}"
        if not self.problems:
            return f"{ended}; valid"
        new = f"new: {', '.join(self.new_problems)}" if self.new_problems else "none new"
        return f"{ended}; {plural(len(self.problems), 'problem')}, {new}"


@attrs.frozen
class CompactReport:
    """The report on all conversations of a file.

    Args:
        file: Its name as given.
        counter: The token counter's name.
        exact: Whether its counts are exact.
        note: The counter's warning, if it has one.
        strategy: The strategy, as the expression that builds it.
        budget: Tokens a result may have, if there is a budget.
        conversations: The report on each conversation.
    """

    file: str
    counter: str
    exact: bool
    note: str | None
    strategy: str
    budget: int | None
    conversations: list[CompactedConversation]

    def totals(self) -> dict[str, Any]:
        """Return sums over the conversations."""
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
        """Write the report as one line of JSON."""
        stream.write(json.dumps({**attrs.asdict(self), "totals": self.totals()}) + "\n")

    def show(self, stream: TextIO) -> None:
        """Print the report: one conversation in detail, several with a line for each."""
        with open_console(stream) as console:
            if len(self.conversations) == 1:
                _show_one(console, self.conversations[0])
            else:
                self._show_all(console)
            precision = "" if self.exact else ", an estimate"
            judged = "no budget, tokens" if self.budget is None else f"budget {self.budget:,} tokens,"
            console.print(printable(f"{judged} counted by {self.counter}{precision}"))
            if self.note:
                console.print(printable(self.note))

    def _show_all(self, console: Console) -> None:
        rows = [
            _line(short_location(self.file, done.where), done.id, done.before, done.after, done.verdict)
            for done in self.conversations
        ]
        totals = self.totals()
        before, after = Metrics(**totals["before"]), Metrics(**totals["after"])
        verdict = f"{totals['over_budget']:,} over budget; {totals['with_problems']:,} with problems"
        rows.append(_line("all", f"{len(rows):,}", before, after, verdict))
        print_table(console, ["~conversation", "~id", ">tokens", ">after", ">left", ">messages", ">after", "~result"], rows)


def _sum(sizes: Iterator[Metrics]) -> dict[str, int]:
    totals = attrs.asdict(Metrics())
    for size in sizes:
        for name, value in attrs.asdict(size).items():
            totals[name] += value
    return totals


def _line(where: str, id: str, before: Metrics, after: Metrics, verdict: str) -> Sequence[str]:
    left = percent(after.tokens / before.tokens) if before.tokens else ""
    return where, id, f"{before.tokens:,}", f"{after.tokens:,}", left, f"{before.messages:,}", f"{after.messages:,}", verdict


def _show_one(console: Console, done: CompactedConversation) -> None:
    sizes = zip(attrs.asdict(done.before).items(), attrs.asdict(done.after).values(), strict=True)
    rows = [
        (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
        for (name, before), after in sizes
    ]
    print_table(console, [printable(done.where), ">before", ">after", ">left"], rows)
    if done.steps:
        columns = ["step", "~why", "~groups", ">tokens before", ">after"]
        print_table(console, columns, [row for step in done.steps for row in _step_rows(step)])
    for rule, times in done.refused.items():
        console.print(printable(f"not done, {plural(times, 'time')}: {rule}"))
    for failure in done.failures:
        console.print(printable(f"failed: {failure}"))
    for note in done.notes:
        console.print(printable(note))
    for problem in done.problems:
        console.print(printable(str(problem)))
    console.print(printable(done.verdict))


def _step_rows(step: StepReport) -> Iterator[Sequence[str]]:
    """Yield a line for each summary of a step's edits; the step's name and sizes are on the first."""
    did = [str(summary) for summary in step.did] or ["nothing to do" if step.before == step.after else "all of the above"]
    yield step.strategy, step.why, did[0], f"{step.before.tokens:,}", f"{step.after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
