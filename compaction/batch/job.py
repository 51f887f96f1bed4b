"""The settings of a batch, and the compaction of one conversation under them.

A job is a plain value: it is sent to workers as it is, and its description is written to the manifest, so that an interrupted
batch is only resumed under the same settings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from ..checks import count
from ..errors import ConfigurationError, InputError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..formats import resolve as resolve_format
from ..index import RunContext
from ..result import CompactionResult
from ..run import compact, compact_sync
from ..strategies import Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from .arrow_columns import NestedMessages
from .json_lines import JsonLine
from .report import BatchCounts

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def _counter(spec: str | TokenCounter) -> str | TokenCounter:
    resolve_counter(spec)
    return spec


@attrs.frozen(kw_only=True)
class Job:
    """How each conversation is compacted.

    Args:
        strategy: The strategy that compacts it.
        counter: The token counter: a name, or an object that can be pickled.
        format: The wire format; ``None`` to detect it for each conversation, see `compaction.formats.resolve`.
        budget: Tokens a result may have; ``None`` for the strategy's own targets alone.
        window: Tokens of the model's context window, for triggers that use it; ``None`` if unknown.
        column: The column of a table that holds the messages.
        max_bytes: The largest conversation that is read, in bytes of its text, >= 1; a larger one is bad.
        strict: Whether a conversation that breaks a rule of its format, comes out degraded or stays over its target is bad.
        keys: Keys that sign summaries, see `RunContext`; workers get them, and nothing that is written holds them.

    Raises:
        ConfigurationError: If an argument is out of range.
        UnknownCounter: If there is no such counter.
    """

    strategy: Strategy = attrs.field(converter=as_strategy)
    counter: str | TokenCounter = attrs.field(default="auto", converter=_counter)
    format: MessageFormat | None = attrs.field(default=None, converter=attrs.converters.optional(resolve_format))
    budget: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    column: str = "messages"
    max_bytes: int = attrs.field(default=256_000_000, validator=count(1))
    strict: bool = False
    keys: tuple[str, ...] = attrs.field(default=(), repr=False)

    @classmethod
    def of(cls, strategy: StrategyLike, **options: Any) -> Job:
        """Return a job for anything that can be a strategy; the options are the other arguments."""
        return cls(strategy=as_strategy(strategy), **options)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `compaction.compact` besides the messages and the strategy."""
        context = RunContext(window=self.window, keys=self.keys)
        return {"counter": self.counter, "format": self.format, "budget": self.budget, "context": context}

    def described(self) -> dict[str, Any]:
        """Return all that the result depends on, as JSON data; a plain function is described by its name alone."""
        return {
            "strategy": _ADDRESS.sub("", repr(self.strategy)),
            "counter": resolve_counter(self.counter).name,
            "format": None if self.format is None else self.format.name,
            "budget": self.budget,
            "window": self.window,
            "column": self.column,
            "max_bytes": self.max_bytes,
            "strict": self.strict,
            **({"signed": True} if self.keys else {}),
        }

    def objection(self, messages: list[Any], result: CompactionResult) -> str | None:
        """Return why a strict job rejects a result; ``None`` if it accepts it."""
        if not self.strict:
            return None
        if result.failures:
            return f"degraded: {result.failures[0].error}"
        if result.outcome == "over_target":
            return f"over target: {result.after.tokens:,} tokens are left"
        problems = resolve_format(self.format, messages).validate(messages)
        return str(problems[0]) if problems else None


@attrs.frozen(kw_only=True)
class FileBatch:
    """The arguments of `compact_files` that decide what is written."""

    inputs: list[Path]
    output: Path
    job: Job
    to: str | None
    slice_bytes: int = attrs.field(validator=count(1))
    max_errors: int | None = attrs.field(validator=attrs.validators.optional(count()))

    def beside(self, suffix: str) -> Path:
        """Return a path next to the output."""
        return self.output.with_name(f"{self.output.name}.{suffix}")


Row: TypeAlias = JsonLine | NestedMessages
"""One conversation of a file or table, however it is stored: ``read`` returns its messages, ``write`` the row with others."""


@attrs.frozen
class BadConversation:
    """A conversation that is left out of the output.

    Args:
        reason: Why, in words.
        error: The error's class name.
    """

    reason: str
    error: str


def compact_row(job: Job, row: Row, counts: BatchCounts) -> Any:
    """Compact one conversation; return what to write, or a `BadConversation`.

    Raises:
        ConfigurationError: If the job cannot work for any conversation.
        SyncDriverError: If the strategy awaits something.
        StateError: If a file that the strategy uses cannot be read or written.
    """
    counts.conversations += 1
    try:
        messages = row.read()
        result = compact_sync(messages, job.strategy, **job.options)
        return _written(job, row, messages, result, counts)
    except Exception as error:
        return _bad(error, counts)


async def compact_row_async(job: Job, row: Row, counts: BatchCounts) -> Any:
    """Compact one conversation like `compact_row`, with a strategy that may await."""
    counts.conversations += 1
    try:
        messages = row.read()
        result = await compact(messages, job.strategy, **job.options)
        return _written(job, row, messages, result, counts)
    except Exception as error:
        return _bad(error, counts)


def _written(job: Job, row: Row, messages: list[Any], result: CompactionResult, counts: BatchCounts) -> Any:
    reason = job.objection(messages, result)
    if reason is not None:
        counts.bad += 1
        return BadConversation(reason, "strict")
    written = row.write(result.messages)
    counts.count(result)
    return written


def _bad(error: Exception, counts: BatchCounts) -> BadConversation:
    """Return the bad conversation that an error stands for.

    Raises:
        Exception: The error itself, if the next conversation would raise it too.
    """
    if isinstance(error, ConfigurationError | SyncDriverError | StateError):
        raise error
    counts.bad += 1
    if isinstance(error, RecursionError):
        return BadConversation("it is nested too deeply; write the inner part as a string", "RecursionError")
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return BadConversation(reason, type(error).__name__)
