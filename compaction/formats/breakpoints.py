"""Breakpoints of a prompt cache (``cache_control``): where they stand in a message, and how they are set, moved and removed.

Anthropic's own format has them, and so have chat completions for Anthropic's models. They are not content. An agent marks its
newest messages, so a message has a breakpoint in one request and none in the next: messages are compared without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from ..errors import ConfigurationError, InvalidMessage
from ..json_data import same
from .anthropic import THINKING, anthropic
from .base import MessageFormat
from .blocks import MOST_BREAKPOINTS
from .detect import resolve
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


def _unwrapped(message: Any) -> Any:
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
    return [_unwrapped(without_breakpoints(each)) for each in messages] if has_breakpoints(format) else list(messages)


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


# ------------------------------------------------------------------------ setting them

# A provider caches the prompt up to a breakpoint for some minutes, and bills it at a tenth if the next request starts with the
# same bytes. The first breakpoint stays in place, and the other three move with the conversation. The rules are those of Hermes
# Agent ("system and 3"); see ``docs/hermes-plugin.md``.

CacheTTL: TypeAlias = Literal["5m", "1h"]
"""The time that a provider keeps the prompt up to a breakpoint."""


def apply_cache_control(
    messages: Sequence[Any], ttl: CacheTTL = "5m", *, native: bool = False, format: MessageFormat | str | None = None
) -> list[Any]:
    """Return a copy of a request's messages with at most four breakpoints: the system message and the latest messages.

    ============== ================================== ========================================
    content        native                             through a gateway
    ============== ================================== ========================================
    text           as a list of one part, marked      the same
    list           its last part is marked            the same; skipped if it is not an object
    none or empty  the message is marked              skipped; of a system message, marked
    tool message   the message is marked              as its content, skipped if it is empty
    ============== ================================== ========================================

    A list in Anthropic's own format is marked as through a gateway; a message that ends in a thought is skipped, because the
    API accepts no breakpoint there. A skipped message does not use up a breakpoint. Earlier breakpoints are removed first, so
    marking again moves them. Cost: O(messages); only messages that change are copied.

    Args:
        messages: A request in OpenAI chat format, or in Anthropic's. If you mark a system parameter yourself, remove one
            breakpoint, because a fifth is refused.
        ttl: Five minutes, or an hour for sessions with breaks in them; writing to an hour's cache costs more.
        native: Whether the request goes to Anthropic's own API, through an adapter that moves a message's mark to its place.
            Ignored for a list in Anthropic's format.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Raises:
        ConfigurationError: If ``ttl`` is neither, or the format has no such breakpoints.
        UnknownFormat: If no format has that name, or the messages are of different formats.
        InvalidMessage: If a message is not a mapping.

    >>> apply_cache_control([{"role": "user", "content": "hi"}])
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi', 'cache_control': {'type': 'ephemeral'}}]}]
    """
    if ttl not in ("5m", "1h"):
        raise ConfigurationError(f"apply_cache_control(ttl={ttl!r}): use '5m' or '1h'")
    found = resolve(format, messages)
    if not has_breakpoints(found):
        raise ConfigurationError(f"apply_cache_control: {found.name} has no such breakpoints; use openai-chat or anthropic")
    native = native and found is openai_chat
    mark = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": "1h"}
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise InvalidMessage(f"messages[{place}]", "a message is a mapping", "pass the messages of a request")
    copies = [cast("Mapping[str, Any]", without_breakpoints(message)) for message in messages]
    chosen = [0] if copies and copies[0].get("role") == "system" else []
    others = [place for place, each in enumerate(copies) if each.get("role") != "system" and _takes_mark(each, native)]
    chosen += others[-(MOST_BREAKPOINTS - len(chosen)) :]
    for place in chosen:
        copies[place] = with_breakpoint(copies[place], mark, whole=native and copies[place].get("role") == "tool")
    return copies


def _takes_mark(message: Mapping[str, Any], native: bool) -> bool:
    if items_of(message.get("content")) and not (native and message.get("role") == "tool"):
        return can_end_in_breakpoint(message)
    return native or bool(message.get("content"))


def should_cache(model: str, provider: str) -> bool:
    """Return whether breakpoints have an effect: a Claude model, and a provider that passes them on.

    Args:
        model: The model's name, with or without a vendor's prefix.
        provider: ``"anthropic"``, ``"openrouter"`` or ``"nous"``; others do not pass them on.

    >>> should_cache("anthropic/claude-sonnet-4.5", "openrouter"), should_cache("gpt-5", "openrouter")
    (True, False)
    """
    return "claude" in model.lower() and provider.lower() in ("anthropic", "openrouter", "nous")
