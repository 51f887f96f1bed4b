"""Prompt-cache breakpoints for Anthropic's models: at the system prompt and the three latest messages.

A provider caches the prompt up to a breakpoint for some minutes, and bills it at a tenth if the next request starts with the
same bytes. The first breakpoint stays in place, and the other three move with the conversation. The rules are those of Hermes
Agent ("system and 3"); see ``docs/hermes-plugin.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from ...errors import ConfigurationError, InvalidMessage
from ...formats import (
    MOST_BREAKPOINTS,
    MessageFormat,
    can_end_in_breakpoint,
    has_breakpoints,
    items_of,
    openai_chat,
    resolve,
    with_breakpoint,
    without_breakpoints,
)

CacheTTL: TypeAlias = Literal["5m", "1h"]
"""The time that a provider keeps the prompt up to a breakpoint."""

_PROVIDERS: Final = ("anthropic", "openrouter", "nous")


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
    return "claude" in model.lower() and provider.lower() in _PROVIDERS
