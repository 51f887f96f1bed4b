"""The report of ``compaction compact``: a verdict of three lines, and on request the details.

A report is the dictionary that ``--json`` writes; the tables are printed from the same dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

import attrs

from ..files import FileConversation
from ..formats import MessageFormat
from ..index import Edit, Metrics, named
from ..result import CompactionResult, Step
from ..strategies import QUOTES_A_PART
from .printing import Column, number_columns, open_console, percent, plural, print_table, printable, short_location

if TYPE_CHECKING:
    from rich.console import Console

ReportData: TypeAlias = dict[str, Any]

_VERBS: Final = {
    "Drop": "dropped",
    "Replace": "replaced",
    "Restore": "brought back",
    "Rewrite": "shortened",
    "Together": "changed together",
}


def conversation_report(
    conversation: FileConversation,
    result: CompactionResult,
    steps: Sequence[Step],
    *,
    budget: int | None,
    format: MessageFormat,
) -> ReportData:
    """Return the report on one conversation; with a ``budget``, it fits if its tokens are within that."""
    problems = format.validate(result.messages)
    known = Counter(problem.rule for problem in format.validate(conversation.messages))
    return {
        "where": conversation.where,
        "id": conversation.id,
        "outcome": result.outcome,
        "fits": result.outcome != "over_target" if budget is None else result.after.tokens <= budget,
        "before": result.before,
        "after": result.after,
        "steps": list(map(_step_report, steps)),
        "refused": Counter(refusal.rule for refusal in result.refused),
        "failures": [f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
        "notes": list(result.notes),
        "problems": problems,
        "new_problems": sorted(Counter(problem.rule for problem in problems) - known),
    }


def _step_report(step: Step) -> ReportData:
    return {
        "strategy": step.strategy,
        "configured": step.configured,
        "why": step.why,
        "did": _edit_summaries(step.edits),
        "before": step.before,
        "after": step.after,
        "reached": step.reached,
    }


def _edit_summaries(edits: Sequence[Edit]) -> list[ReportData]:
    """Return the number of groups that edits of one kind name for one reason."""
    groups: Counter[tuple[str, str]] = Counter()
    for edit in edits:
        groups[type(edit).__name__, edit.reason] += len(named(edit))
    return [{"edit": kind, "reason": reason, "groups": count} for (kind, reason), count in groups.items()]


def is_well(done: ReportData) -> bool:
    """Return whether the result of a conversation fits and breaks no new rule."""
    return done["fits"] and not done["new_problems"]


def totals_of(conversations: Sequence[ReportData]) -> ReportData:
    """Return sums over the reports on conversations."""
    return {
        "conversations": len(conversations),
        "before": _sum(done["before"] for done in conversations),
        "after": _sum(done["after"] for done in conversations),
        "outcomes": Counter(done["outcome"] for done in conversations),
        "over_budget": sum(not done["fits"] for done in conversations),
        "with_problems": sum(bool(done["problems"]) for done in conversations),
        "with_new_problems": sum(bool(done["new_problems"]) for done in conversations),
    }


def _sum(sizes: Iterator[Metrics]) -> Metrics:
    return Metrics(*map(sum, zip(attrs.astuple(Metrics()), *map(attrs.astuple, sizes), strict=True)))


def show_compaction(report: ReportData, stream: TextIO, *, verbose: bool) -> None:
    """Print the verdict on a file: the sizes before and after, and the outcome. Failures and problems follow.

    With ``verbose``, one conversation is then shown in detail, and several with a line for each.
    """
    conversations = report["conversations"]
    with open_console(stream) as console:
        _show_verdict(console, report)
        if verbose and len(conversations) == 1:
            _show_one(console, conversations[0])
        elif verbose:
            names = [Column("conversation", if_narrow="wrapped"), Column("id", if_narrow="wrapped")]
            columns = [*names, *number_columns("tokens", "after"), Column("result", if_narrow="wrapped")]
            print_table(console, columns, [_row(report["file"], done) for done in conversations])
        elif len(conversations) == 1:
            _show_remarks(console, conversations[0])
        elif not all(map(is_well, conversations)):
            console.print("-v shows a line for each conversation")
        if report["note"]:
            console.print(printable(report["note"]))


def _show_verdict(console: Console, report: ReportData) -> None:
    conversations, totals = report["conversations"], report["totals"]
    before, after = totals["before"], totals["after"]
    many = "" if len(conversations) == 1 else f" of {plural(len(conversations), 'conversation')}"
    left = f" ({percent(after.tokens / before.tokens)})" if before.tokens else ""
    limit = "" if report["budget"] is None else f"; the limit is {report['budget']:,}{' for each' if many else ''}"
    counter = report["counter"] if report["exact"] else f"{report['counter']}, an estimate"
    verdict = _verdict(conversations[0]) if not many else _verdict_on_all(totals)
    messages = plural(before.messages, "message")
    console.print(printable(f"before: {before.tokens:,} tokens in {messages}{many}, counted by {counter}"))
    console.print(printable(f"after: {after.tokens:,} tokens in {plural(after.messages, 'message')}{left}{limit}"))
    style = "green" if all(map(is_well, conversations)) else "red"
    console.print(printable(f"result: {verdict}; written to {report['output']}"), style=style)


def _verdict_on_all(totals: ReportData) -> str:
    problems = f"{totals['with_problems']:,} with problems" if totals["with_problems"] else "valid"
    over = f"{totals['over_budget']:,} over budget; " if totals["over_budget"] else ""
    compacted = totals["conversations"] - totals["outcomes"]["unchanged"]
    return f"{compacted:,} of {totals['conversations']:,} compacted; {over}{problems}"


def _row(file: str, done: ReportData) -> Sequence[str]:
    sizes = (f"{done[when].tokens:,}" for when in ("before", "after"))
    return short_location(file, done["where"]), done["id"], *sizes, _verdict(done)


def _verdict(done: ReportData) -> str:
    """Return the outcome, and whether the result is valid, in words."""
    ended = "compacted" if any(step["did"] for step in done["steps"]) else "unchanged"
    if not done["fits"]:
        ended = f"{ended}, over budget"
    if done["failures"]:
        ended = f"{ended}, {plural(len(done['failures']), 'failure')}"
    if not done["problems"]:
        return f"{ended}; valid"
    new = f"new: {', '.join(done['new_problems'])}" if done["new_problems"] else "none new"
    return f"{ended}; {plural(len(done['problems']), 'problem')}, {new}"


def _show_one(console: Console, done: ReportData) -> None:
    sizes = zip(attrs.asdict(done["before"]).items(), attrs.astuple(done["after"]), strict=True)
    rows = [
        (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
        for (name, before), after in sizes
    ]
    console.print()
    print_table(console, [Column(printable(done["where"])), *number_columns("before", "after", "left")], rows)
    if done["steps"]:
        words = [Column("step"), Column("why", if_narrow="wrapped"), Column("groups", if_narrow="wrapped")]
        columns = [*words, *number_columns("tokens before", "after")]
        print_table(console, columns, [row for step in done["steps"] for row in _step_rows(step)])
    for rule, times in done["refused"].items():
        console.print(printable(f"not done, {plural(times, 'time')}: {rule}"))
    _show_remarks(console, done)


def _show_remarks(console: Console, done: ReportData) -> None:
    """Print the failures, notes and problems of a conversation, and how much of the user's words its summaries quote."""
    failures = [f"failed: {failure}" for failure in done["failures"]]
    reasons = [f"{step['strategy']}: {each['reason']}" for step in done["steps"] for each in step["did"]]
    quoted = dict.fromkeys([reason for reason in reasons if QUOTES_A_PART in reason])
    for line in (*quoted, *failures, *done["notes"], *map(str, done["problems"])):
        console.print(printable(line))


def _step_rows(step: ReportData) -> Iterator[Sequence[str]]:
    """Yield a line for each summary of a step's edits; the step's name and sizes are on the first."""
    before, after = step["before"], step["after"]
    did = [f"{each['groups']:,} {_VERBS[each['edit']]}: {each['reason']}" for each in step["did"]]
    did = did or ["nothing to do" if before == after else "all of the above"]
    yield step["strategy"], step["why"], did[0], f"{before.tokens:,}", f"{after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
