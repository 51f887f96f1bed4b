"""``compaction compact``: make the conversations of a file fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import attrs
import typer

from .. import config, presets
from ..context import RunContext
from ..errors import ConfigurationError
from ..files import Conversation, write_text
from ..formats import MessageFormat
from ..outcome import Step
from ..run import compact as compact_async
from ..run import compact_sync
from ..strategies import Strategy
from ..tokens import TokenCounter
from .compact_report import Compacted, CompactReport
from .exits import ExitCode, naming
from .options import (
    STANDARD,
    AsJson,
    CounterName,
    FormatName,
    Input,
    Output,
    conversations_of,
    counter_named,
    format_of,
    output_of,
    parse_size,
)

__all__ = ["PRESETS", "Plan", "compact", "plan_of"]


def _hermes(window: int, *, reserve_output: int = 0) -> Strategy:
    return presets.hermes(window - reserve_output)


PRESETS: Final[Mapping[str, Callable[..., Strategy]]] = {"context_window": presets.context_window, "hermes": _hermes}
"""What ``--preset`` names: functions of a window and its reserve."""


@attrs.frozen
class Plan:
    """What is to be done to each conversation.

    Args:
        strategy: What does it.
        budget: Tokens by which the result is judged; ``None`` to judge it by the strategy's own targets.
        window: Tokens of the model's window, if known.
        awaits: Whether it may have to wait for something: a pipeline in a file may ask a model.
    """

    strategy: Strategy
    budget: int | None
    window: int | None = None
    awaits: bool = False


def compact(
    source: Input,
    *,
    output: Output = STANDARD,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"How, with --window: {', '.join(PRESETS)}.", show_default=True)
    ] = "context_window",
    pipeline: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="In place of --preset: a pipeline in TOML or YAML. --window then says what the model takes in, --budget or "
            "--window what the result is judged by.",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            parser=parse_size, metavar="SIZE", help="Tokens the model takes in and puts out: 32000, 32k, 1m. k is 1,000."
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            parser=parse_size,
            metavar="SIZE",
            help="In place of --window: tokens the result may have. Gentle steps first; if they do not do, the oldest go.",
        ),
    ] = None,
    reserve_output: Annotated[
        int | None, typer.Option(parser=parse_size, metavar="SIZE", help="Tokens of --window kept for the answer.")
    ] = None,
    counter: CounterName = "auto",
    format: FormatName = None,
    as_json: AsJson = False,
) -> int:
    """Make conversations fit a context window or a budget.

    What is not changed is written byte for byte as it was read. Exit code 1: a conversation is still too large, or breaks a
    rule of its format that it did not break before; the output is written all the same.
    """
    plan = plan_of(preset, window, budget, reserve_output, pipeline)
    counting, note = counter_named(counter)
    target, stream = output_of(output)
    compacted: list[Compacted] = []
    with write_text(target) as write:
        for conversation in conversations_of(source):
            with naming(conversation.where):
                text, done = _compacted(conversation, plan, counting, format_of(format, conversation))
            write(text)
            compacted.append(done)
    report = CompactReport(source, counting.name, counting.exact, note, repr(plan.strategy), plan.budget, compacted)
    if as_json:
        report.write_json(stream)
    else:
        report.show(stream)
    return ExitCode.DONE if all(done.is_well for done in compacted) else ExitCode.FOUND


def plan_of(preset: str, window: int | None, budget: int | None, reserve_output: int | None, pipeline: Path | None) -> Plan:
    """What the options say is to be done.

    Raises:
        ConfigurationError: If they do not go together.
    """
    if pipeline is not None:
        if reserve_output is not None:
            raise ConfigurationError("--reserve-output is for presets; with --config, name a lower --budget")
        return Plan(config.load(pipeline), window if budget is None else budget, window, awaits=True)
    if preset not in PRESETS:
        raise ConfigurationError(f"--preset {preset}: there is no such preset; use one of {', '.join(PRESETS)}")
    if window is not None and budget is None:
        reserved = reserve_output or 0
        return Plan(PRESETS[preset](window, reserve_output=reserved), window - reserved)
    if budget is None or window is not None:
        raise ConfigurationError("compact needs one of --window and --budget, for example --window 32k")
    if reserve_output is not None:
        raise ConfigurationError("--reserve-output is a part of --window; with --budget, name a lower budget")
    return Plan(presets.token_budget(budget), budget)


def _compacted(conversation: Conversation, plan: Plan, counter: TokenCounter, format: MessageFormat) -> tuple[str, Compacted]:
    """The conversation's new text, and what there is to say about it."""
    steps: list[Step] = []
    options: dict[str, Any] = {
        "counter": counter,
        "format": format,
        "context": RunContext(window=plan.window),
        "budget": plan.budget,
        "on_step": steps.append,
    }
    if plan.awaits:
        result = anyio.run(partial(compact_async, conversation.messages, plan.strategy, **options))
    else:
        result = compact_sync(conversation.messages, plan.strategy, **options)
    done = Compacted.of(conversation, result, steps, budget=plan.budget, format=format)
    return conversation.with_messages(result.messages), done
