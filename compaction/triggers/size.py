"""Triggers that compare the size of the view with a limit, and `has_tool_calls`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import attrs

from ..checks import checked_count
from ..errors import ConfigurationError
from ..index import MessageIndex
from .base import Trigger


def _is_limit(trigger: Trigger, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse a limit that is not a whole number >= 0, under the name of the function that the user called."""
    checked_count(f"{repr(trigger).partition('(')[0]}: the limit", value)


_SIZES: Final[Mapping[str, Callable[[MessageIndex], int]]] = {
    "tokens": attrgetter("tokens"),
    **{unit: attrgetter(f"columns.included.{unit}") for unit in ("messages", "turns", "groups", "bytes")},
}
"""The sizes of the view by their units; ``index.included`` would return the same, but computes all of them."""


@attrs.frozen(repr=False)
class _Exceeds(Trigger):
    unit: str
    limit: int = attrs.field(validator=_is_limit)

    def __call__(self, index: MessageIndex) -> bool:
        return _SIZES[self.unit](index) > self.limit

    def explain(self, index: MessageIndex) -> str:
        return _compared(self.unit, _SIZES[self.unit](index), self.limit)

    def token_limit(self, index: MessageIndex) -> int | None:
        return self.limit if self.unit == "tokens" else None

    def __repr__(self) -> str:
        return f"{self.unit}_exceed({self.limit})"


@attrs.frozen(repr=False)
class _OtherMessagesExceed(Trigger):
    """The trigger of ``messages_exceed(limit, system=False)``."""

    limit: int = attrs.field(validator=_is_limit)

    def __call__(self, index: MessageIndex) -> bool:
        return self._messages(index) > self.limit

    def explain(self, index: MessageIndex) -> str:
        return _compared("messages without system messages", self._messages(index), self.limit)

    def _messages(self, index: MessageIndex) -> int:
        return _SIZES["messages"](index) - index.columns.system_messages

    def __repr__(self) -> str:
        return f"messages_exceed({self.limit}, system=False)"


def _compared(unit: str, size: int, limit: int) -> str:
    return f"{unit} {size:,} {'>' if size > limit else '<='} {limit:,}"


@attrs.frozen(repr=False)
class _TokensBelow(Trigger):
    limit: int = attrs.field(validator=_is_limit)

    def __call__(self, index: MessageIndex) -> bool:
        return index.tokens < self.limit

    def explain(self, index: MessageIndex) -> str:
        size = index.tokens
        return f"tokens {size:,} {'<' if size < self.limit else '>='} {self.limit:,}"

    def __repr__(self) -> str:
        return f"tokens_below({self.limit})"


@attrs.frozen(repr=False)
class _HasToolCalls(Trigger):
    def __call__(self, index: MessageIndex) -> bool:
        return index.included.tool_calls > 0

    def explain(self, index: MessageIndex) -> str:
        return f"tool calls {index.included.tool_calls:,} in the view"

    def __repr__(self) -> str:
        return "has_tool_calls"


has_tool_calls: Final[Trigger] = _HasToolCalls()
"""Fires when the view contains a tool call. O(1)."""


def tokens_exceed(tokens: int) -> Trigger:
    """Fires when a request would send more than ``tokens`` tokens, the context's overhead included. O(1).

    Args:
        tokens: The limit, >= 0.

    Raises:
        ConfigurationError: If the limit is not a whole number >= 0.

    >>> tokens_exceed(100)(MessageIndex([{"role": "user", "content": "hi"}], counter="chars/4"))
    False
    """
    return _Exceeds("tokens", tokens)


def tokens_below(tokens: int) -> Trigger:
    """Fires when a request would send fewer than ``tokens`` tokens, the context's overhead included; used as a target. O(1).

    Args:
        tokens: The limit, >= 0.
    """
    return _TokensBelow(tokens)


def messages_exceed(messages: int, *, system: bool = True) -> Trigger:
    """Fires when the view has more than ``messages`` messages. O(1).

    Args:
        messages: The limit, >= 0.
        system: Whether system and developer messages count.

    Raises:
        ConfigurationError: If the limit is not a whole number >= 0, or ``system`` is not true or false.

    >>> conversation = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    >>> messages_exceed(1, system=False)(MessageIndex(conversation, counter="chars/4"))
    False
    """
    if not isinstance(system, bool):
        raise ConfigurationError(f"messages_exceed(system={system!r}): system must be True or False")
    return _Exceeds("messages", messages) if system else _OtherMessagesExceed(messages)


def turns_exceed(turns: int) -> Trigger:
    """Fires when the view has more than ``turns`` user turns. O(1)."""
    return _Exceeds("turns", turns)


def groups_exceed(groups: int) -> Trigger:
    """Fires when the view has more than ``groups`` groups, system groups included. O(1)."""
    return _Exceeds("groups", groups)


def bytes_exceed(bytes: int) -> Trigger:
    """Fires when the texts and media data in the view have more than ``bytes`` UTF-8 bytes. O(1)."""
    return _Exceeds("bytes", bytes)
