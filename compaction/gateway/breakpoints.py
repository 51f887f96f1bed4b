"""Breakpoints of a prompt cache (``cache_control``), which move from request to request and are not content.

Agents mark the newest messages, so a message has a breakpoint in one request and none in the next. Messages are therefore
compared without breakpoints. Messages that are kept keep their bytes. The breakpoint of a removed message moves, with its
ttl, to the summary that replaces it, so a request never has more breakpoints than the agent sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..formats import MessageFormat, anthropic, fields_of, items_of, openai_chat

_KEY: Final = "cache_control"
_NEVER_MARKED: Final = ("thinking", "redacted_thinking")


def without_breakpoints(messages: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages for comparison: without breakpoints, and with a list of one text part as a plain string.

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
    """Return a message for comparison; the same object if nothing changes."""
    fields = _fields(message)
    content, calls = fields.get("content"), fields.get("tool_calls")
    if (content is None or type(content) is str) and _KEY not in fields and not (calls and _has_mark(calls)):
        return message
    bare = _bare(message, lists=("content", "tool_calls"))
    parts = items_of(_fields(bare).get("content")) or ()
    only: Mapping[str, Any] = _fields(parts[0]) if len(parts) == 1 else {}
    return {**_fields(bare), "content": only["text"]} if only.keys() == {"type", "text"} and only["type"] == "text" else bare


def _has_mark(calls: Any) -> bool:
    return any(_KEY in _fields(call) for call in items_of(calls) or ())


def _bare(value: Any, *, lists: Sequence[str] = ()) -> Any:
    """Return a message or part without its breakpoint and those of the parts in these lists; the same object if it has none."""
    fields = _fields(value)
    changed: dict[str, Any] = {}
    for name in ("content",) if fields.get("type") == "tool_result" else lists:
        parts = items_of(fields.get(name)) or ()
        bare = list(map(_bare, parts))
        if any(one is not other for one, other in zip(bare, parts, strict=True)):
            changed[name] = bare
    if not changed and _KEY not in fields:
        return value
    return {name: each for name, each in {**fields, **changed}.items() if name != _KEY}


def _fields(value: Any) -> Mapping[str, Any]:
    return fields_of(value) or {}


def keep_breakpoints(sent: Sequence[Any], given: Sequence[Any], compared: Sequence[Any], format: MessageFormat) -> list[Any]:
    """Return the messages to send, with the breakpoints of removed messages moved to the messages that replace them.

    Args:
        sent: The messages to send: objects of ``given``, in order, and messages that compaction wrote.
        given: The messages of the client's request.
        compared: The result of `without_breakpoints` for ``given``.
        format: Their format.
    """
    result = list(sent)
    differing = [place for place, (message, bare) in enumerate(zip(given, compared, strict=True)) if message is not bare]
    lost = {place: mark for place in differing if (mark := _mark_of(given[place])) is not None}
    if not lost:
        return result
    places = {id(message): place for place, message in enumerate(given)}
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
    fields = _fields(message)
    parts = [*(items_of(fields.get("content")) or ()), *(items_of(fields.get("tool_calls")) or ())]
    inner = [each for part in parts for each in (*(items_of(_fields(part).get("content")) or ()), part)]
    marks = [mark for each in (message, *inner) if (mark := _fields(each).get(_KEY)) is not None]
    return marks[-1] if marks else None


def _in_parts(message: Any, format: MessageFormat) -> Any:
    """Return a written message with its text as a part, so that it keeps its shape when its breakpoint moves on."""
    fields = _fields(message)
    content = fields.get("content")
    if isinstance(content, str) and content and (format is anthropic or fields.get("role") != "tool"):
        return {**fields, "content": [{"type": "text", "text": content}]}
    return message


def _marked(message: Any, mark: Any) -> Any:
    """Return a written message with a breakpoint at its end; ``None`` if the last part may not have one."""
    parts = items_of(_fields(message).get("content"))
    last = fields_of(parts[-1]) if parts else None
    if not parts or last is None or last.get("type") in _NEVER_MARKED:
        return None
    return {**_fields(message), "content": [*parts[:-1], {**last, _KEY: mark}]}
