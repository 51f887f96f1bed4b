"""``compaction compact``: make the conversations of a file fit a context window or a budget."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import attrs
import typer

from .. import config
from ..errors import ConfigurationError
from ..files import FileConversation, write_text
from ..formats import MessageFormat, resolve
from ..index import RunContext
from ..result import Step
from ..run import compact, compact_sync
from ..strategies import Strategy
from ..tokens import TokenCounter
from . import options
from .compact_report import conversation_report, is_well, show_compaction, totals_of
from .exit_codes import ExitCode, error_context
from .printing import print_json


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
        "totals": totals_of(compacted),
    }
    if as_json:
        print_json(report, stream)
    else:
        show_compaction(report, stream, verbose=verbose)
    return ExitCode.DONE if is_well(report) else ExitCode.FOUND


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
    report = conversation_report(conversation, result, steps, budget=plan.budget, format=format)
    return conversation.with_messages(result.messages), report
