"""Breakpoints of a prompt cache (``cache_control``): they move from request to request, and are not part of what was said.

Agents mark the newest messages, so the same message has a breakpoint in one request and none in the next. Messages are
compared without them. Messages that stay keep their bytes. The breakpoint of a message that was cut moves to the message that
stands for it, with its ttl, so that there are never more of them than the agent sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..formats import MessageFormat, anthropic, fields_of, items_of, openai_chat

_KEY: Final = "cache_control"
_NEVER_MARKED: Final = ("thinking", "redacted_thinking")


def without_breakpoints(messages: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages as they are compared: without breakpoints, and a text that is a list of one part as a plain text.

    Args:
        messages: The messages of a request.
        format: Their format; only Anthropic's, and chat completions for Anthropic's models, have breakpoints.

    >>> from compaction.formats import anthropic
    >>> marked = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    >>> without_breakpoints([{"role": "user", "content": [marked]}], anthropic)
    [{'role': 'user', 'content': 'hi'}]
    """
    return list(map(_plain, messages)) if format in (anthropic, openai_chat) else list(messages)


def _plain(message: Any) -> Any:
    fields = fields_of(message)
    if fields is None:
        return message
    parts = items_of(fields.get("content"))
    if parts is None:
        return _bare(message)
    bare = list(map(_bare, parts))
    only = fields_of(bare[0]) if len(bare) == 1 else None
    if only is not None and only.keys() == {"type", "text"} and only["type"] == "text":
        return {**_fields(_bare(message)), "content": only["text"]}
    if all(one is other for one, other in zip(bare, parts, strict=True)):
        return _bare(message)
    return {**_fields(_bare(message)), "content": bare}


def _bare(part: Any) -> Any:
    """Return a message or a part without its own breakpoint, and without those inside a tool result."""
    fields = fields_of(part)
    if fields is None:
        return part
    inner = items_of(fields.get("content")) if fields.get("type") == "tool_result" else None
    if inner is not None and any(_KEY in _fields(each) for each in inner):
        part = fields = {**fields, "content": list(map(_bare, inner))}
    return {name: value for name, value in fields.items() if name != _KEY} if _KEY in fields else part


def _fields(value: Any) -> Mapping[str, Any]:
    return fields_of(value) or {}


def keep_breakpoints(sent: Sequence[Any], given: Sequence[Any], compared: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return what is sent with the breakpoints of messages that were cut, each on the message that stands for its own.

    Args:
        sent: The messages that are sent: objects of ``given``, in order, and messages of our making.
        given: The messages that came.
        compared: What `without_breakpoints` made of them.
        format: Their format.
    """
    result = list(sent)
    places = {id(message): place for place, message in enumerate(given)}
    differing = [place for place, (message, bare) in enumerate(zip(given, compared, strict=True)) if message is not bare]
    lost = {place: mark for place in differing if (mark := _mark_of(given[place])) is not None}
    if not lost:
        return result
    kept = [places.get(id(message), -1) for message in sent]
    for place in kept:
        lost.pop(place, None)
    following = len(given)
    for at in range(len(result) - 1, -1, -1):
        if kept[at] >= 0:
            following = kept[at]
            continue
        previous = max(kept[:at], default=-1)
        within = [place for place in lost if previous < place < following]
        result[at] = _in_parts(result[at], format)
        marked = _marked(result[at], lost[within[0]]) if within else None
        if marked is not None:
            result[at] = marked
            lost = {place: mark for place, mark in lost.items() if place not in within}
    return result


def _mark_of(message: Any) -> Any:
    """Return the last breakpoint of a message."""
    parts = items_of(_fields(message).get("content")) or ()
    inner = [each for part in parts for each in (*(items_of(_fields(part).get("content")) or ()), part)]
    marks = [mark for each in (message, *inner) if (mark := _fields(each).get(_KEY)) is not None]
    return marks[-1] if marks else None


def _in_parts(message: Any, format: MessageFormat) -> Any:
    """Return a message of our making with its text as a part, so that it reads the same with a breakpoint and without."""
    fields = _fields(message)
    content = fields.get("content")
    if isinstance(content, str) and content and (format is anthropic or fields.get("role") != "tool"):
        return {**fields, "content": [{"type": "text", "text": content}]}
    return message


def _marked(message: Any, mark: Any) -> Any:
    """Return a message of our making with a breakpoint at its end; ``None`` if none may stand there."""
    parts = items_of(_fields(message).get("content"))
    last = fields_of(parts[-1]) if parts else None
    if not parts or last is None or last.get("type") in _NEVER_MARKED:
        return None
    return {**_fields(message), "content": [*parts[:-1], {**last, _KEY: mark}]}
