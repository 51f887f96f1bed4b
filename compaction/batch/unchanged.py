"""Conversations that a strategy does not change, found without making an index: most lines of many batches."""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..formats import openai_chat
from ..tokens import MessageMeter, least_bytes_per_token
from ..tokens import counter as resolve_counter
from .job import Job
from .rows import JsonLine, Row
from .upper_bounds import does_nothing

_BYTES_PER_TOKEN: Final = 8
"""A line has at most about this many bytes a token. If even ``bytes / 8`` tokens may make the strategy run, they are not
counted in advance."""


@attrs.frozen
class Unchanged:
    """A conversation that the strategy does not change."""

    tokens: int | None  # ``None`` if nobody counted them


def find_unchanged(job: Job, row: Row, messages: list[Any]) -> Unchanged | None:
    """Return the size of a conversation that the strategy certainly leaves unchanged, judged by the size and form of its line.

    The messages must be chat completions of plain texts and calls. Each text is a part of the line, and the tokens around
    the texts are fewer than the JSON syntax around them could have. So the length of the line bounds the tokens. If this
    bound is too high, the tokens are counted without making an index; the content of each message must then be a string.

    Returns:
        ``None`` if that is not certain, so that the strategy must run.
    """
    if job.strict or job.format not in (None, openai_chat) or not isinstance(row, JsonLine):
        return None
    counter, size = resolve_counter(job.counter), len(row.text)
    per_token = least_bytes_per_token(counter)
    if per_token is not None and _is_left_alone(job, messages, tokens=size // per_token, size=size):
        return Unchanged(None) if _has_only_texts(messages) else None
    if not _is_left_alone(job, messages, tokens=size // _BYTES_PER_TOKEN, size=size):
        return None
    outlines = [outline for message in messages if (outline := openai_chat.outline(message)) is not None]
    if len(outlines) < len(messages):
        return None
    tokens, sizes = MessageMeter(counter).measure_outlines(outlines)
    return Unchanged(sum(tokens)) if _is_left_alone(job, messages, tokens=sum(tokens), size=sum(sizes)) else None


def _has_only_texts(messages: list[Any]) -> bool:
    outline = openai_chat.outline
    return all(map(openai_chat.has_only_texts, [message for message in messages if outline(message) is None]))


def _is_left_alone(job: Job, messages: list[Any], *, tokens: int, size: int) -> bool:
    """Return whether the strategy does nothing to conversations of at most this size, and the budget holds."""
    if job.budget is not None and tokens > job.budget:
        return False
    return does_nothing(job.strategy, tokens=tokens, bytes=size, messages=len(messages), window=job.window)
