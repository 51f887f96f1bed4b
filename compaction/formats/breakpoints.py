"""Breakpoints of a prompt cache (``cache_control``): where they stand in a message, and how they are set, moved and removed.

Anthropic's own format has them, and so have chat completions for Anthropic's models. They are not content. An agent marks its
newest messages, so a message has a breakpoint in one request and none in the next: messages are compared without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..json_data import same
from .anthropic import THINKING, anthropic
from .base import MessageFormat
from .openai_chat import openai_chat
from .wire import fields_of, items_in, items_of

_KEY: Final = "cache_control"


def has_breakpoints(format: MessageFormat) -> bool:
    """Return whether messages of a format may have breakpoints."""
    return format in (anthropic, openai_chat)


def without_breakpoints(value: Any, *, lists: Sequence[str] = ("content", "tool_calls")) -> Any:
    """Return a message or part without its breakpoint and those of its parts; the same object if it has none.

    Its parts are in ``lists``; those of a tool result in its content.

    >>> part = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    >>> without_breakpoints({"role": "user", "content": [part]})
    {'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}
    """
    fields = fields_of(value) or {}
    changed: dict[str, Any] = {}
    for name in ("content",) if fields.get("type") == "tool_result" else lists:
        parts = items_of(fields.get(name)) or ()
        bare = [without_breakpoints(part, lists=()) for part in parts]
        if not same(bare, parts):
            changed[name] = bare
    if not changed and _KEY not in fields:
        return value
    return {name: each for name, each in {**fields, **changed}.items() if name != _KEY}


def unwrapped(message: Any) -> Any:
    """Return a message whose content is a list of one plain text with that text as its content; any other as it is."""
    fields = fields_of(message) or {}
    parts = items_in(message, "content")
    only: Mapping[str, Any] = (fields_of(parts[0]) or {}) if len(parts) == 1 else {}
    return {**fields, "content": only["text"]} if only.keys() == {"type", "text"} and only["type"] == "text" else message


def last_breakpoint(message: Any) -> Any:
    """Return the last breakpoint of a message; ``None`` if it has none."""
    parts = [*items_in(message, "content"), *items_in(message, "tool_calls")]
    inner = [each for part in parts for each in (*items_in(part, "content"), part)]
    marks = ((fields_of(each) or {}).get(_KEY) for each in reversed((message, *inner)))
    return next((mark for mark in marks if mark is not None), None)


def can_end_in_breakpoint(message: Any) -> bool:
    """Return whether the content is a list whose last part may have a breakpoint: the API accepts none at a thought."""
    parts = items_in(message, "content")
    last = fields_of(parts[-1]) if parts else None
    return last is not None and last.get("type") not in THINKING


def with_breakpoint(message: Any, breakpoint: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """Return a message with a breakpoint at the last part of its content; the message as it is if that has no fields.

    A content that is a text becomes a list of one part. With ``whole``, or without a content, the message itself is marked.
    """
    fields = fields_of(message) or {}
    content = fields.get("content")
    if whole or not content:
        return {**fields, _KEY: dict(breakpoint)}
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else items_of(content) or ()
    last = fields_of(parts[-1]) if parts else None
    return {**fields} if last is None else {**fields, "content": [*parts[:-1], {**last, _KEY: dict(breakpoint)}]}


def for_comparison(messages: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages for comparison: without breakpoints, and with a list of one text part as a plain string.

    A message that does not change is the same object. In formats without breakpoints none changes.
    """
    return [unwrapped(without_breakpoints(each)) for each in messages] if has_breakpoints(format) else list(messages)


def keep_breakpoints(sent: Sequence[Any], given: Sequence[Any], compared: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages to send, with the breakpoints of removed messages moved to the messages that replace them.

    A request never gets more breakpoints than it had: those of messages without a replacement are dropped, and of several in
    one gap only the first is kept, at the end of the gap.

    Args:
        sent: The messages to send: objects of ``given``, in order, and messages that compaction wrote.
        given: The messages of the client's request.
        compared: The result of `for_comparison` for ``given``.
        format: Their format.

    >>> part = {"type": "text", "text": "Look it up.", "cache_control": {"type": "ephemeral"}}
    >>> given = [{"role": "user", "content": "Hi."}, {"role": "user", "content": [part]}, {"role": "user", "content": "Well?"}]
    >>> summary = {"role": "user", "content": "A summary."}
    >>> keep_breakpoints([given[0], summary, given[2]], given, for_comparison(given, anthropic), anthropic)[1]
    {'role': 'user', 'content': [{'type': 'text', 'text': 'A summary.', 'cache_control': {'type': 'ephemeral'}}]}
    """
    result = list(sent)
    differing = [place for place, (message, bare) in enumerate(zip(given, compared, strict=True)) if message is not bare]
    marks = {place: mark for place in differing if (mark := last_breakpoint(given[place])) is not None}
    if not marks:
        return result
    place_of = {id(message): place for place, message in enumerate(given)}
    places = [place_of.get(id(message), -1) for message in sent]  # in ``given``; -1 for a message that compaction wrote
    next_kept = len(given)
    for at in reversed(range(len(sent))):  # from the end: the last written message of a gap takes the breakpoint
        if places[at] >= 0:
            next_kept = places[at]
            continue
        last_kept = max(places[:at], default=-1)
        removed = [place for place in marks if last_kept < place < next_kept]
        fields = fields_of(result[at]) or {}
        content = fields.get("content")
        if isinstance(content, str) and content and (format is anthropic or fields.get("role") != "tool"):
            # as a part, so that the message keeps its shape when its breakpoint moves on
            result[at] = {**fields, "content": [{"type": "text", "text": content}]}
        if removed and can_end_in_breakpoint(result[at]):
            result[at] = with_breakpoint(result[at], marks[removed[0]])
            marks = {place: mark for place, mark in marks.items() if place not in removed}
    return result
