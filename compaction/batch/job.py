"""What is done to each conversation of a batch, whoever does it: a process, a task that awaits, a Ray actor.

A job is a value. It is sent to workers as it is, and its description stands in the manifest, so that a run that was interrupted
goes on only under the same one.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

import attrs

from ..checks import count
from ..context import RunContext
from ..errors import ConfigurationError, InputError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..formats.resolve import resolve as resolve_format
from ..outcome import CompactionResult
from ..run import compact, compact_sync
from ..strategies import Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from .tally import Tally

__all__ = ["Bad", "Job", "Row", "handle", "handle_async"]

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def _counter(spec: str | TokenCounter) -> str | TokenCounter:
    resolve_counter(spec)
    return spec


@attrs.frozen(kw_only=True)
class Job:
    """What is to be done to each conversation.

    Args:
        strategy: What compacts it.
        counter: Counts tokens: a name, or an object that can be sent to another process.
        format: The wire format; ``None`` to look at each conversation, see `compaction.formats.resolve`.
        budget: Tokens a result is judged by; ``None`` for the strategy's own targets alone.
        window: Tokens of the model's window, for triggers that ask; ``None`` if not known.
        column: The column of a table that holds the messages.
        max_bytes: The longest conversation that is read, in bytes of its text, >= 1: a longer one is bad.
        strict: Whether a conversation that breaks a rule of its format, comes out degraded, or is over its target is bad too.

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

    @classmethod
    def of(cls, strategy: StrategyLike, **options: Any) -> Job:
        """A job for anything that can be a strategy; the options are the other arguments."""
        return cls(strategy=as_strategy(strategy), **options)

    @property
    def options(self) -> dict[str, Any]:
        """What `compaction.compact` is told besides the messages and the strategy."""
        context = None if self.window is None else RunContext(window=self.window)
        return {"counter": self.counter, "format": self.format, "budget": self.budget, "context": context}

    def described(self) -> dict[str, Any]:
        """All that the result depends on, as JSON data. Of a plain function that is its name alone."""
        return {
            "strategy": _ADDRESS.sub("", repr(self.strategy)),
            "counter": resolve_counter(self.counter).name,
            "format": None if self.format is None else self.format.name,
            "budget": self.budget,
            "window": self.window,
            "column": self.column,
            "max_bytes": self.max_bytes,
            "strict": self.strict,
        }

    def objection(self, messages: list[Any], result: CompactionResult) -> str | None:
        """Why a strict job does not take a result; ``None`` if it does."""
        if not self.strict:
            return None
        if result.failures:
            return f"degraded: {result.failures[0].error}"
        if result.outcome == "over_target":
            return f"over target: {result.after.tokens:,} tokens are left"
        problems = resolve_format(self.format, messages).validate(messages)
        return str(problems[0]) if problems else None


class Row(Protocol):
    """One conversation of a file or table, whatever it is stored as."""

    def read(self) -> list[Any]:
        """Its messages.

        Raises:
            InputError: If it has none that can be read.
        """
        ...

    def write(self, messages: list[Any]) -> Any:
        """What stands in the output: the row with other messages."""
        ...


@attrs.frozen
class Bad:
    """A conversation that is put aside.

    Args:
        reason: Why, in words.
        error: The kind of error.
    """

    reason: str
    error: str


def handle(job: Job, row: Row, tally: Tally) -> Any:
    """One conversation, compacted: what to write, or a `Bad`.

    Raises:
        ConfigurationError: If no conversation could be compacted like this.
        SyncDriverError: If the strategy awaits something.
        StateError: If what the strategy keeps on disk cannot be read or written.
    """
    tally.conversations += 1
    try:
        messages = row.read()
        result = compact_sync(messages, job.strategy, **job.options)
        return _settled(job, row, messages, result, tally)
    except Exception as error:
        return _bad(error, tally)


async def handle_async(job: Job, row: Row, tally: Tally) -> Any:
    """`handle`, for a strategy that may await."""
    tally.conversations += 1
    try:
        messages = row.read()
        result = await compact(messages, job.strategy, **job.options)
        return _settled(job, row, messages, result, tally)
    except Exception as error:
        return _bad(error, tally)


def _settled(job: Job, row: Row, messages: list[Any], result: CompactionResult, tally: Tally) -> Any:
    reason = job.objection(messages, result)
    if reason is not None:
        tally.bad += 1
        return Bad(reason, "strict")
    written = row.write(result.messages)
    tally.note(result)
    return written


def _bad(error: Exception, tally: Tally) -> Bad:
    """What an error says of one conversation.

    Raises:
        Exception: The error itself, if it would meet the next conversation too.
    """
    if isinstance(error, ConfigurationError | SyncDriverError | StateError):
        raise error
    tally.bad += 1
    if isinstance(error, RecursionError):
        return Bad("it is nested too deeply; write the inner part as a string", "RecursionError")
    says = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return Bad(says, type(error).__name__)
