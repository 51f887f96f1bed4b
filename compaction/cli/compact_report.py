"""The report of ``compaction compact``: a verdict of three lines, and on request the details.

A `FileReport` is also what ``--json`` writes, field by field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

import attrs

from ..files import FileConversation
from ..formats import MessageFormat, Problem
from ..index import Metrics, named
from ..result import CompactionResult, Step
from ..strategies import QUOTES_A_PART
from .printing import Column, number_columns, open_console, percent, plural, print_table, printable, short_location

if TYPE_CHECKING:
    from rich.console import Console

_VERBS: Final = {
    "Drop": "dropped",
    "Replace": "replaced",
    "Restore": "brought back",
    "Rewrite": "shortened",
    "Together": "changed together",
}


@attrs.frozen(kw_only=True)
class EditSummary:
    """The edits of one kind that a step made for one reason."""

    edit: str  # the name of the edit's class
    reason: str
    groups: int  # the number of groups that they name


@attrs.frozen(kw_only=True)
class StepSummary:
    """One step, with the fields of `Step`; its edits are counted."""

    strategy: str
    configured: str
    why: str
    did: list[EditSummary]
    before: Metrics
    after: Metrics
    reached: bool | None

    @classmethod
    def of(cls, step: Step) -> StepSummary:
        """Return the summary of a step."""
        groups: Counter[tuple[str, str]] = Counter()
        for edit in step.edits:
            groups[type(edit).__name__, edit.reason] += len(named(edit))
        return cls(
            strategy=step.strategy,
            configured=step.configured,
            why=step.why,
            did=[EditSummary(edit=kind, reason=reason, groups=count) for (kind, reason), count in groups.items()],
            before=step.before,
            after=step.after,
            reached=step.reached,
        )


@attrs.frozen(kw_only=True)
class ConversationReport:
    """The report on one conversation."""

    where: str
    id: str
    outcome: str
    fits: bool  # with a budget, whether its tokens are within that; else whether no target was missed
    before: Metrics
    after: Metrics
    steps: list[StepSummary]
    refused: Counter[str]  # by rule
    failures: list[str]
    notes: list[str]
    problems: list[Problem]
    new_problems: list[str]  # rules that the result breaks more often than the input

    @classmethod
    def of(
        cls,
        conversation: FileConversation,
        result: CompactionResult,
        steps: Sequence[Step],
        *,
        budget: int | None,
        format: MessageFormat,
    ) -> ConversationReport:
        """Return the report on a result."""
        problems = format.validate(result.messages)
        known = Counter(problem.rule for problem in format.validate(conversation.messages))
        return cls(
            where=conversation.where,
            id=conversation.id,
            outcome=result.outcome,
            fits=result.outcome != "over_target" if budget is None else result.after.tokens <= budget,
            before=result.before,
            after=result.after,
            steps=list(map(StepSummary.of, steps)),
            refused=Counter(refusal.rule for refusal in result.refused),
            failures=[f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
            notes=list(result.notes),
            problems=problems,
            new_problems=sorted(Counter(problem.rule for problem in problems) - known),
        )

    @property
    def is_well(self) -> bool:
        """Whether the result fits and breaks no new rule."""
        return self.fits and not self.new_problems


@attrs.frozen(kw_only=True)
class Totals:
    """Sums over conversations."""

    conversations: int
    before: Metrics
    after: Metrics
    outcomes: Counter[str]
    over_budget: int
    with_problems: int
    with_new_problems: int

    @classmethod
    def of(cls, reports: Sequence[ConversationReport]) -> Totals:
        """Return the sums over the reports on conversations."""
        return cls(
            conversations=len(reports),
            before=_sum(each.before for each in reports),
            after=_sum(each.after for each in reports),
            outcomes=Counter(each.outcome for each in reports),
            over_budget=sum(not each.fits for each in reports),
            with_problems=sum(bool(each.problems) for each in reports),
            with_new_problems=sum(bool(each.new_problems) for each in reports),
        )


def _sum(sizes: Iterator[Metrics]) -> Metrics:
    return Metrics(*map(sum, zip(attrs.astuple(Metrics()), *map(attrs.astuple, sizes), strict=True)))


@attrs.frozen(kw_only=True)
class FileReport:
    """The report on a file."""

    file: str
    output: str
    counter: str
    exact: bool  # whether the counter is exact
    note: str | None  # the counter's warning
    strategy: str
    budget: int | None  # tokens of each result
    conversations: list[ConversationReport]
    totals: Totals

    @property
    def is_well(self) -> bool:
        """Whether the results of all conversations fit and break no new rule."""
        return all(each.is_well for each in self.conversations)


def show_compaction(report: FileReport, stream: TextIO, *, verbose: bool) -> None:
    """Print the verdict on a file: the sizes before and after, and the outcome. Failures and problems follow.

    With ``verbose``, one conversation is then shown in detail, and several with a line for each.
    """
    conversations = report.conversations
    with open_console(stream) as console:
        _show_verdict(console, report)
        if verbose and len(conversations) == 1:
            _show_one(console, conversations[0])
        elif verbose:
            names = [Column("conversation", if_narrow="wrapped"), Column("id", if_narrow="wrapped")]
            columns = [*names, *number_columns("tokens", "after"), Column("result", if_narrow="wrapped")]
            print_table(console, columns, [_row(report.file, one) for one in conversations])
        elif len(conversations) == 1:
            _show_remarks(console, conversations[0])
        elif not report.is_well:
            console.print("-v shows a line for each conversation")
        if report.note:
            console.print(printable(report.note))


def _show_verdict(console: Console, report: FileReport) -> None:
    conversations, totals = report.conversations, report.totals
    before, after = totals.before, totals.after
    many = "" if len(conversations) == 1 else f" of {plural(len(conversations), 'conversation')}"
    left = f" ({percent(after.tokens / before.tokens)})" if before.tokens else ""
    limit = "" if report.budget is None else f"; the limit is {report.budget:,}{' for each' if many else ''}"
    counter = report.counter if report.exact else f"{report.counter}, an estimate"
    verdict = _verdict(conversations[0]) if not many else _verdict_on_all(totals)
    messages = plural(before.messages, "message")
    console.print(printable(f"before: {before.tokens:,} tokens in {messages}{many}, counted by {counter}"))
    console.print(printable(f"after: {after.tokens:,} tokens in {plural(after.messages, 'message')}{left}{limit}"))
    style = "green" if report.is_well else "red"
    console.print(printable(f"result: {verdict}; written to {report.output}"), style=style)


def _verdict_on_all(totals: Totals) -> str:
    problems = f"{totals.with_problems:,} with problems" if totals.with_problems else "valid"
    over = f"{totals.over_budget:,} over budget; " if totals.over_budget else ""
    compacted = totals.conversations - totals.outcomes["unchanged"]
    return f"{compacted:,} of {totals.conversations:,} compacted; {over}{problems}"


def _row(file: str, one: ConversationReport) -> Sequence[str]:
    sizes = f"{one.before.tokens:,}", f"{one.after.tokens:,}"
    return short_location(file, one.where), one.id, *sizes, _verdict(one)


def _verdict(one: ConversationReport) -> str:
    """Return the outcome, and whether the result is valid, in words."""
    ended = "compacted" if any(step.did for step in one.steps) else "unchanged"
    if not one.fits:
        ended = f"{ended}, over budget"
    if one.failures:
        ended = f"{ended}, {plural(len(one.failures), 'failure')}"
    if not one.problems:
        return f"{ended}; valid"
    new = f"new: {', '.join(one.new_problems)}" if one.new_problems else "none new"
    return f"{ended}; {plural(len(one.problems), 'problem')}, {new}"


def _show_one(console: Console, one: ConversationReport) -> None:
    sizes = zip(attrs.asdict(one.before).items(), attrs.astuple(one.after), strict=True)
    rows = [
        (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
        for (name, before), after in sizes
    ]
    console.print()
    print_table(console, [Column(printable(one.where)), *number_columns("before", "after", "left")], rows)
    if one.steps:
        words = [Column("step"), Column("why", if_narrow="wrapped"), Column("groups", if_narrow="wrapped")]
        columns = [*words, *number_columns("tokens before", "after")]
        print_table(console, columns, [row for step in one.steps for row in _step_rows(step)])
    for rule, times in one.refused.items():
        console.print(printable(f"not done, {plural(times, 'time')}: {rule}"))
    _show_remarks(console, one)


def _show_remarks(console: Console, one: ConversationReport) -> None:
    """Print the failures, notes and problems of a conversation, and how much of the user's words its summaries quote."""
    failures = [f"failed: {failure}" for failure in one.failures]
    reasons = [f"{step.strategy}: {each.reason}" for step in one.steps for each in step.did]
    quoted = dict.fromkeys([reason for reason in reasons if QUOTES_A_PART in reason])
    for line in (*quoted, *failures, *one.notes, *map(str, one.problems)):
        console.print(printable(line))


def _step_rows(step: StepSummary) -> Iterator[Sequence[str]]:
    """Yield a line for each summary of a step's edits; the step's name and sizes are on the first."""
    before, after = step.before, step.after
    did = [f"{each.groups:,} {_VERBS[each.edit]}: {each.reason}" for each in step.did]
    did = did or ["nothing to do" if before == after else "all of the above"]
    yield step.strategy, step.why, did[0], f"{before.tokens:,}", f"{after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
