"""The settings of a batch, and the compaction of one conversation.

A job is a plain value that is sent to workers. Its description is written to the manifest, so that an interrupted batch is only
resumed with the same settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import attrs

from ..checks import count
from ..errors import ConfigurationError, InputError, StateError, SyncDriverError
from ..formats import MessageFormat, openai_chat
from ..formats import resolve as resolve_format
from ..index import RunContext
from ..result import CompactionResult
from ..run import compact, compact_sync
from ..strategies import Strategy, StrategyLike, as_strategy
from ..tokens import MessageMeter, TokenCounter, least_bytes_per_token
from ..tokens import counter as resolve_counter
from .report import BatchCounts
from .rows import JsonLine, Row
from .upper_bounds import does_nothing

_BYTES_PER_TOKEN: Final = 8  # of a line that is long for its tokens; if these few are too many, nothing is counted in advance
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def _as_keys(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(keys)


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
    keys: tuple[str, ...] = attrs.field(default=(), converter=_as_keys, repr=False, kw_only=True)

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
            **({"signed": True} if self.keys else {}),
        }

    def leaves_unchanged(self, row: Row, messages: list[Any], counts: BatchCounts) -> bool:
        """Whether the size and form of a line show that the strategy does not run; if so, count the conversation.

        The messages must be chat completions of plain texts and calls. Each text is a part of the line, and the tokens around
        the texts are fewer than the JSON syntax around them could have. So the length of the line bounds the tokens. If this
        bound is too high, the tokens are counted without making an index; the content of each message must then be a string.
        """
        if self.strict or self.format not in (None, openai_chat) or not isinstance(row, JsonLine):
            return False
        counter, size, outline = resolve_counter(self.counter), len(row.text), openai_chat.outline
        per_token = least_bytes_per_token(counter)
        if per_token is not None and self._fits(size // per_token, messages, size):
            for message in messages:  # a loop is faster than all()
                if outline(message) is None and not openai_chat.has_only_texts(message):
                    return False
            counts.uncounted += 1
        elif not self._fits(size // _BYTES_PER_TOKEN, messages, size):
            return False
        else:
            outlines = [found for message in messages if (found := outline(message)) is not None]
            tokens, sizes = MessageMeter(counter).measure_outlines(outlines)
            total = sum(tokens)
            if len(outlines) < len(messages) or not self._fits(total, messages, sum(sizes)):
                return False
            counts.tokens_before += total
            counts.tokens_after += total
        counts.messages_before += len(messages)
        counts.messages_after += len(messages)
        return True

    def _fits(self, tokens: int, messages: list[Any], size: int) -> bool:
        """Whether the strategy does nothing to conversations of at most this size, and the budget holds."""
        if self.budget is not None and tokens > self.budget:
            return False
        return does_nothing(self.strategy, tokens=tokens, bytes=size, messages=len(messages), window=self.window)

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


@attrs.frozen
class BadConversation:
    """A conversation that is left out of the output."""

    reason: str
    error: str


async def compact_row(job: Job, row: Row, counts: BatchCounts, *, sync: bool = False) -> Any:
    """Compact and count one conversation; return what to write, or a `BadConversation`.

    If the strategy awaits nothing (``sync``), this coroutine does not either, see `compaction.run.unawaited`.

    Raises:
        ConfigurationError: If the job fails for every conversation.
        SyncDriverError: If the strategy awaits something in spite of ``sync``.
        StateError: If a file that the strategy uses cannot be read or written.
    """
    counts.conversations += 1
    try:
        messages = row.read()
        if job.leaves_unchanged(row, messages, counts):
            return row.write(messages)
        options = job.options
        result = compact_sync(messages, job.strategy, **options) if sync else await compact(messages, job.strategy, **options)
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
    """Return the bad conversation for an error.

    Raises:
        Exception: The error itself, if every other conversation would raise it too.
    """
    if isinstance(error, ConfigurationError | SyncDriverError | StateError):
        raise error
    counts.bad += 1
    if isinstance(error, RecursionError):
        return BadConversation("it is nested too deeply; write the inner part as a string", "RecursionError")
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return BadConversation(reason, type(error).__name__)
