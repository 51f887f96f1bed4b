"""Breakpoints of a prompt cache (``cache_control``), which move from request to request and are not content.

Agents mark the newest messages, so a message has a breakpoint in one request and none in the next. Messages are therefore
compared without breakpoints. Messages that are kept keep their bytes. The breakpoint of a removed message moves, with its
ttl, to the summary that replaces it, so a request never has more breakpoints than the agent sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..formats import (
    MessageFormat,
    anthropic,
    can_end_in_breakpoint,
    fields_of,
    has_breakpoints,
    last_breakpoint,
    unwrapped,
    with_breakpoint,
    without_breakpoints,
)


def for_comparison(messages: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages for comparison: without breakpoints, and with a list of one text part as a plain string.

    A message that does not change is the same object. In formats without breakpoints none changes.
    """
    return [unwrapped(without_breakpoints(each)) for each in messages] if has_breakpoints(format) else list(messages)


def keep_breakpoints(sent: Sequence[Any], given: Sequence[Any], compared: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages to send, with the breakpoints of removed messages moved to the messages that replace them.

    Args:
        sent: The messages to send: objects of ``given``, in order, and messages that compaction wrote.
        given: The messages of the client's request.
        compared: The result of `for_comparison` for ``given``.
        format: Their format.
    """
    result = list(sent)
    differing = [place for place, (message, bare) in enumerate(zip(given, compared, strict=True)) if message is not bare]
    lost = {place: mark for place in differing if (mark := last_breakpoint(given[place])) is not None}
    if not lost:
        return result
    places = {id(message): place for place, message in enumerate(given)}
    kept = [places.get(id(message), -1) for message in sent]
    following = len(given)
    for at in reversed(range(len(result))):
        if kept[at] >= 0:
            following = kept[at]
            continue
        previous = max(kept[:at], default=-1)
        within = [place for place in lost if previous < place < following]
        result[at] = _in_parts(result[at], format)
        if within and can_end_in_breakpoint(result[at]):
            result[at] = with_breakpoint(result[at], lost[within[0]])
            lost = {place: mark for place, mark in lost.items() if place not in within}
    return result


def _in_parts(message: Any, format: MessageFormat) -> Any:
    """Return a written message with its text as a part, so that it keeps its shape when its breakpoint moves on."""
    fields = fields_of(message) or {}
    content = fields.get("content")
    if isinstance(content, str) and content and (format is anthropic or fields.get("role") != "tool"):
        return {**fields, "content": [{"type": "text", "text": content}]}
    return message
