"""Conversations that a strategy does not change, found without making an index: most lines of many batches."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partialmethod
from types import SimpleNamespace
from typing import Any, Final

import attrs

from ..formats import openai_chat
from ..index import RunContext
from ..strategies import Strategy
from ..tokens import MessageMeter, least_bytes_per_token
from ..tokens import counter as resolve_counter
from .job import Job
from .report import BatchCounts
from .rows import JsonLine, Row

_BYTES_PER_TOKEN: Final = 8
"""A line has at most about this many bytes a token. If even ``bytes / 8`` tokens may make the strategy run, they are not
counted in advance."""


def count_unchanged(job: Job, row: Row, messages: list[Any], counts: BatchCounts) -> bool:
    """Return whether the strategy certainly leaves a conversation unchanged, judged by its line; if so, it is counted.

    The messages must be chat completions of plain texts and calls. Each text is a part of the line, and the tokens around
    the texts are fewer than the JSON syntax around them could have. So the length of the line bounds the tokens. If this
    bound is too high, the tokens are counted without making an index; the content of each message must then be a string.
    """
    if job.strict or job.format not in (None, openai_chat) or not isinstance(row, JsonLine):
        return False
    counter, size = resolve_counter(job.counter), len(row.text)
    per_token = least_bytes_per_token(counter)
    if per_token is not None and _is_left_alone(job, messages, tokens=size // per_token, size=size):
        others = [message for message in messages if openai_chat.outline(message) is None]
        if is_known := all(map(openai_chat.has_only_texts, others)):
            counts.count_unchanged(len(messages), None)
        return is_known
    if not _is_left_alone(job, messages, tokens=size // _BYTES_PER_TOKEN, size=size):
        return False
    outlines = [outline for message in messages if (outline := openai_chat.outline(message)) is not None]
    if len(outlines) < len(messages):
        return False
    tokens, sizes = MessageMeter(counter).measure_outlines(outlines)
    if is_known := _is_left_alone(job, messages, tokens=sum(tokens), size=sum(sizes)):
        counts.count_unchanged(len(messages), sum(tokens))
    return is_known


def _is_left_alone(job: Job, messages: list[Any], *, tokens: int, size: int) -> bool:
    """Return whether the strategy does nothing to conversations of at most this size, and the budget holds."""
    if job.budget is not None and tokens > job.budget:
        return False
    return does_nothing(job.strategy, tokens=tokens, bytes=size, messages=len(messages), window=job.window)


# -------------------------------------------------------------------- upper bounds


@attrs.frozen(eq=False)
class _AtMost:
    """An unknown size of at most ``most``, and at least 0. A comparison that depends on it is an error."""

    most: int

    def _compared(self, holds: Callable[[int, float], bool], limit: float) -> bool:
        """Compare the ends of its range; the answer is the same in between if it is the same there."""
        if holds(0, limit) != holds(self.most, limit):
            raise ValueError("it depends on the size")
        return holds(0, limit)

    __gt__ = partialmethod(_compared, operator.gt)
    __ge__ = partialmethod(_compared, operator.ge)
    __le__ = partialmethod(_compared, operator.le)
    __lt__ = partialmethod(_compared, operator.lt)


def does_nothing(strategy: Strategy, *, tokens: int, bytes: int, messages: int, window: int | None) -> bool:
    """Return whether a strategy does nothing to any conversation of at most these sizes; false if that is not certain.

    The strategy gets a stand-in for the index that knows only these bounds. If it asks the stand-in for more, such as the
    messages, or raises an error, the function returns false. So neither triggers nor strategies need to know of bounds. A
    trigger that asks for something new makes batches slow and not wrong: a test has the list of the triggers that are decided.

    >>> from compaction.strategies import Truncation
    >>> from compaction.triggers import tokens_exceed
    >>> truncation = Truncation(trigger=tokens_exceed(100))
    >>> [does_nothing(truncation, tokens=most, bytes=900, messages=3, window=None) for most in (100, 101)]
    [True, False]
    """
    many = _AtMost(messages)
    sizes = SimpleNamespace(tokens=_AtMost(tokens), bytes=_AtMost(bytes), messages=many, turns=many, groups=many)
    index: Any = SimpleNamespace(
        tokens=sizes.tokens,
        included=sizes,
        columns=SimpleNamespace(included=sizes),
        turns_since_edit=many,
        context=RunContext(window=window),
    )
    try:
        return next(iter(strategy(index)), None) is None
    except Exception:  # it asked for more than the bounds; its own errors are raised again when it runs
        return False
