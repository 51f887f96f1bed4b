"""The settings of a batch.

A job is a plain value that is sent to workers. Its description is written to the manifest, so that an interrupted batch is only
resumed with the same settings.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from ..checks import count
from ..formats import MessageFormat
from ..formats import resolve as resolve_format
from ..index import RunContext, lookup_key
from ..result import CompactionResult
from ..strategies import Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def _counter(spec: str | TokenCounter) -> str | TokenCounter:
    resolve_counter(spec)
    return spec


@attrs.frozen
class Job:
    """The settings for compacting each conversation.

    Args:
        strategy: The strategy.
        counter: The token counter: a name, or an object that can be pickled.
        format: The wire format; ``None`` to detect it for each conversation, see `compaction.formats.resolve`.
        budget: Tokens a result may have; ``None`` for the strategy's own targets alone.
        window: Tokens of the model's context window, for triggers that use it; ``None`` if unknown.
        column: The column of a table with the messages: JSON text, or lists of structs.
        max_bytes: The largest conversation that is read, in bytes of its text, >= 1; a larger one is bad.
        strict: Whether a conversation is also bad if it breaks a rule of its format, its result is degraded or it stays over
            its target.
        keys: Keys that sign summaries: the first one signs, the signatures of all are accepted. No file contains a key.

    Raises:
        ConfigurationError: If an argument is out of range.
        UnknownCounter: If there is no such counter.
    """

    strategy: Strategy = attrs.field(converter=as_strategy)
    counter: str | TokenCounter = attrs.field(default="auto", converter=_counter, kw_only=True)
    format: MessageFormat | None = attrs.field(default=None, converter=attrs.converters.optional(resolve_format), kw_only=True)
    budget: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)), kw_only=True)
    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)), kw_only=True)
    column: str = attrs.field(default="messages", kw_only=True)
    max_bytes: int = attrs.field(default=256_000_000, validator=count(1), kw_only=True)
    strict: bool = attrs.field(default=False, kw_only=True)
    keys: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...], repr=False, kw_only=True)

    @classmethod
    def of(cls, job: Job | StrategyLike) -> Job:
        """Return the job; of a strategy, the job with default settings."""
        return job if isinstance(job, Job) else cls(job)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `compaction.compact` besides the messages and the strategy."""
        context = RunContext(window=self.window, keys=self.keys)
        return {"counter": self.counter, "format": self.format, "budget": self.budget, "context": context}

    def described(self) -> dict[str, Any]:
        """Return the settings that the result depends on, as JSON data; of a plain function, only the name."""
        return {
            "strategy": _ADDRESS.sub("", repr(self.strategy)),
            "counter": resolve_counter(self.counter).name,
            "format": None if self.format is None else self.format.name,
            "budget": self.budget,
            "window": self.window,
            "column": self.column,
            "max_bytes": self.max_bytes,
            "strict": self.strict,
            **({"signed": lookup_key(*self.keys)} if self.keys else {}),
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
