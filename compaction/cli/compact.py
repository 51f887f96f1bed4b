"""``compaction compact``: make the conversations of a file fit a context window or a budget.

The report is a verdict of three lines, and on request the details; as a dictionary, ``--json`` writes it as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TextIO

import anyio
import attrs
import typer

from .. import config
from ..errors import ConfigurationError
from ..files import FileConversation, write_text
from ..formats import MessageFormat, resolve
from ..index import Metrics, RunContext, named
from ..result import Step
from ..run import compact, compact_sync
from ..strategies import QUOTES_A_PART, Strategy
from ..tokens import TokenCounter
from . import options
from .exit_codes import ExitCode, error_context
from .printing import Column, number_columns, open_console, percent, plural, print_json, print_lines, print_table, printable

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
class CompactionPlan:
    """The strategy and limits of a command."""

    strategy: Strategy
    budget: int | None  # tokens a result may have; ``None`` for the strategy's own targets
    window: int | None = None  # tokens of the model's context window, if known
    awaits: bool = False  # whether the strategy may await something: a pipeline in a file may ask a model


def compact_command(
    source: options.Input,
    *,
    output: options.Output = options.STANDARD,
    preset: options.PresetName = None,
    pipeline: options.PipelineFile = None,
    window: options.Window = None,
    budget: options.Budget = None,
    reserve_output: options.ReserveOutput = None,
    models: options.ModelTableFile = None,
    counter: options.CounterName = "auto",
    format: options.FormatName = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each step with its reason.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Make conversations fit a context window or a budget.

    Unchanged messages are written byte for byte as they were read. Exit code 1: a conversation is still too large, or breaks a
    rule of its format that it did not break before; the output is written all the same.
    """
    plan = plan_compaction(preset, window, budget, reserve_output, pipeline, models=models)
    counting, note = options.find_counter(counter)
    target, stream = options.open_output(output)
    compacted: list[dict[str, Any]] = []
    with write_text(target) as write:
        for conversation in options.read_input(source):
            with error_context(conversation.where):
                text, report_on_one = _compacted(conversation, plan, counting, resolve(format, conversation.messages))
            write(text)
            compacted.append(report_on_one)
    report = {
        "file": source,
        "output": "standard output" if output == options.STANDARD else output,
        "counter": counting.name,
        "exact": counting.exact,
        "note": note,
        "strategy": repr(plan.strategy),
        "budget": plan.budget,
        "conversations": compacted,
        "totals": _totals_of(compacted),
    }
    if as_json:
        print_json(report, stream)
    else:
        _show_compaction(report, stream, verbose=verbose)
    return ExitCode.DONE if _is_well(report) else ExitCode.FOUND


def plan_compaction(
    preset: str | None,
    window: str | None,
    budget: int | None,
    reserve_output: int | None,
    pipeline: Path | None,
    *,
    models: Path | None,
) -> CompactionPlan:
    """Return the plan that the options describe."""
    options.not_both("--preset", preset, "--config", pipeline)
    known = options.find_preset(preset or ("token_budget" if window is None else "context_window"))
    if pipeline is not None or known.size is None:
        if reserve_output is not None:
            raise ConfigurationError("--reserve-output is for presets of a window; name a lower --budget")
        limit = None if window is None else options.window_tokens(window, models)
        strategy = known.make() if pipeline is None else config.load(pipeline)
        return CompactionPlan(strategy, limit if budget is None else budget, limit, awaits=pipeline is not None)
    options.not_both("--window", window, "--budget", budget)
    if window is None and budget is None:
        raise ConfigurationError("give one of --window and --budget, for example --window 32k")
    if (budget is None) != (known.size == "window"):
        raise ConfigurationError(f"--preset {preset} takes --{known.size}, for example --{known.size} 32k")
    if window is not None:
        limit = options.window_tokens(window, models, reserve_output)
        return CompactionPlan(known.make(limit), limit)
    if reserve_output is not None:
        raise ConfigurationError("--reserve-output is a part of --window; with --budget, name a lower budget")
    return CompactionPlan(known.make(budget), budget)


def _compacted(
    conversation: FileConversation, plan: CompactionPlan, counter: TokenCounter, format: MessageFormat
) -> tuple[str, dict[str, Any]]:
    """Return the conversation's new text, and the report on it."""
    steps: list[Step] = []
    arguments: dict[str, Any] = {
        "counter": counter,
        "format": format,
        "context": RunContext(window=plan.window, keys=options.signing_keys()),
        "budget": plan.budget,
        "on_step": steps.append,
    }
    if plan.awaits:
        result = anyio.run(partial(compact, conversation.messages, plan.strategy, **arguments))
    else:
        result = compact_sync(conversation.messages, plan.strategy, **arguments)
    problems = format.validate(result.messages)
    known = Counter(problem.rule for problem in format.validate(conversation.messages))
    report = {
        "where": conversation.where,
        "id": conversation.id,
        "outcome": result.outcome,
        "fits": result.outcome != "over_target" if plan.budget is None else result.after.tokens <= plan.budget,
        "before": result.before,
        "after": result.after,
        "steps": [_step_report(step) for step in steps],
        "refused": Counter(refusal.rule for refusal in result.refused),
        "failures": [f"{failed.strategy}: {failed.error!r}; {failed.policy}" for failed in result.failures],
        "notes": result.notes,
        "problems": problems,
        # the rules that the result breaks more often than the input
        "new_problems": sorted(Counter(problem.rule for problem in problems) - known),
    }
    return conversation.with_messages(result.messages), report


def _step_report(step: Step) -> dict[str, Any]:
    """Return the fields of a step; in place of its edits, the number of groups for each kind and reason."""
    groups: Counter[tuple[str, str]] = Counter()
    for edit in step.edits:
        groups[type(edit).__name__, edit.reason] += len(named(edit))
    return {
        "strategy": step.strategy,
        "configured": step.configured,
        "why": step.why,
        "did": [{"edit": kind, "reason": reason, "groups": count} for (kind, reason), count in groups.items()],
        "before": step.before,
        "after": step.after,
        "reached": step.reached,
    }


def _totals_of(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "conversations": len(reports),
        "before": _sum(each["before"] for each in reports),
        "after": _sum(each["after"] for each in reports),
        "outcomes": Counter(each["outcome"] for each in reports),
        "over_budget": sum(not each["fits"] for each in reports),
        "with_problems": sum(bool(each["problems"]) for each in reports),
        "with_new_problems": sum(bool(each["new_problems"]) for each in reports),
    }


def _sum(sizes: Iterable[Metrics]) -> Metrics:
    return Metrics(*map(sum, zip(attrs.astuple(Metrics()), *map(attrs.astuple, sizes), strict=True)))


def _is_well(report: dict[str, Any]) -> bool:
    return not report["totals"]["over_budget"] and not report["totals"]["with_new_problems"]


def _show_compaction(report: dict[str, Any], stream: TextIO, *, verbose: bool) -> None:
    """Print the verdict on a file: the sizes before and after, and the outcome. Failures and problems follow.

    With ``verbose``, one conversation is then shown in detail, and several with a line for each.
    """
    conversations: list[dict[str, Any]] = report["conversations"]
    with open_console(stream) as console:
        _show_verdict(console, report)
        if verbose and len(conversations) == 1:
            _show_one(console, conversations[0])
        elif verbose:
            names = [Column("conversation", if_narrow="wrapped"), Column("id", if_narrow="wrapped")]
            columns = [*names, *number_columns("tokens", "after"), Column("result", if_narrow="wrapped")]
            print_table(console, columns, [_row(report["file"], one) for one in conversations])
        elif len(conversations) == 1:
            _show_remarks(console, conversations[0])
        elif not _is_well(report):
            console.print("-v shows a line for each conversation")
        if report["note"]:
            console.print(printable(report["note"]))


def _show_verdict(console: Console, report: dict[str, Any]) -> None:
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
    style = "green" if _is_well(report) else "red"
    console.print(printable(f"result: {verdict}; written to {report['output']}"), style=style)


def _verdict_on_all(totals: dict[str, Any]) -> str:
    problems = f"{totals['with_problems']:,} with problems" if totals["with_problems"] else "valid"
    over = f"{totals['over_budget']:,} over budget; " if totals["over_budget"] else ""
    compacted = totals["conversations"] - totals["outcomes"]["unchanged"]
    return f"{compacted:,} of {totals['conversations']:,} compacted; {over}{problems}"


def _row(file: str, one: dict[str, Any]) -> Sequence[str]:
    sizes = f"{one['before'].tokens:,}", f"{one['after'].tokens:,}"
    return one["where"].removeprefix(f"{file}, "), one["id"], *sizes, _verdict(one)


def _verdict(one: dict[str, Any]) -> str:
    """Return the outcome, and whether the result is valid, in words."""
    ended = "compacted" if any(step["did"] for step in one["steps"]) else "unchanged"
    if not one["fits"]:
        ended = f"{ended}, over budget"
    if one["failures"]:
        ended = f"{ended}, {plural(len(one['failures']), 'failure')}"
    if not one["problems"]:
        return f"{ended}; valid"
    new = f"new: {', '.join(one['new_problems'])}" if one["new_problems"] else "none new"
    return f"{ended}; {plural(len(one['problems']), 'problem')}, {new}"


def _show_one(console: Console, one: dict[str, Any]) -> None:
    sizes = zip(attrs.asdict(one["before"]).items(), attrs.astuple(one["after"]), strict=True)
    rows = [
        (name.replace("_", " "), f"{before:,}", f"{after:,}", percent(after / before) if before else "")
        for (name, before), after in sizes
    ]
    console.print()
    print_table(console, [Column(printable(one["where"])), *number_columns("before", "after", "left")], rows)
    if one["steps"]:
        words = [Column("step"), Column("why", if_narrow="wrapped"), Column("groups", if_narrow="wrapped")]
        columns = [*words, *number_columns("tokens before", "after")]
        print_table(console, columns, [row for step in one["steps"] for row in _step_rows(step)])
    print_lines(console, [f"not done, {plural(times, 'time')}: {rule}" for rule, times in one["refused"].items()])
    _show_remarks(console, one)


def _show_remarks(console: Console, one: dict[str, Any]) -> None:
    """Print the failures, notes and problems of a conversation, and how much of the user's words its summaries quote."""
    failures = [f"failed: {failure}" for failure in one["failures"]]
    reasons = [f"{step['strategy']}: {each['reason']}" for step in one["steps"] for each in step["did"]]
    quoted = dict.fromkeys([reason for reason in reasons if QUOTES_A_PART in reason])
    print_lines(console, [*quoted, *failures, *one["notes"], *map(str, one["problems"])])


def _step_rows(step: dict[str, Any]) -> Iterator[Sequence[str]]:
    """Yield a line for each summary of a step's edits; the step's name and sizes are on the first."""
    before, after = step["before"], step["after"]
    did = [f"{each['groups']:,} {_VERBS[each['edit']]}: {each['reason']}" for each in step["did"]]
    did = did or ["nothing to do" if before == after else "all of the above"]
    yield step["strategy"], step["why"], did[0], f"{before.tokens:,}", f"{after.tokens:,}"
    yield from (("", "", more, "", "") for more in did[1:])
