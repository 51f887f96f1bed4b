"""Triggers that compare a size of the view with a limit."""

from __future__ import annotations

import attrs

from ..checks import count
from ..errors import ConfigurationError
from ..index import MessageIndex
from .base import Trigger


def _size(index: MessageIndex, unit: str) -> int:
    """Return the size of a request in tokens, or of the view in another unit."""
    return index.tokens if unit == "tokens" else getattr(index.columns.included, unit)


@attrs.frozen(repr=False)
class _Exceeds(Trigger):
    unit: str
    limit: int = attrs.field(validator=count())

    def __call__(self, index: MessageIndex) -> bool:
        return _size(index, self.unit) > self.limit

    def explain(self, index: MessageIndex) -> str:
        size = _size(index, self.unit)
        return f"{self.unit} {size:,} {'>' if size > self.limit else '<='} {self.limit:,}"

    def token_limit(self, index: MessageIndex) -> int | None:
        return self.limit if self.unit == "tokens" else None

    def __repr__(self) -> str:
        return f"{self.unit}_exceed({self.limit})"


@attrs.frozen(repr=False)
class _ConversationExceeds(Trigger):
    limit: int = attrs.field(validator=count())

    def __call__(self, index: MessageIndex) -> bool:
        return self._messages(index) > self.limit

    def explain(self, index: MessageIndex) -> str:
        messages = self._messages(index)
        return f"messages without system messages {messages:,} {'>' if messages > self.limit else '<='} {self.limit:,}"

    def _messages(self, index: MessageIndex) -> int:
        return index.columns.included.messages - index.columns.system_messages

    def __repr__(self) -> str:
        return f"messages_exceed({self.limit}, system=False)"


@attrs.frozen(repr=False)
class _TokensBelow(Trigger):
    limit: int = attrs.field(validator=count())

    def __call__(self, index: MessageIndex) -> bool:
        return index.tokens < self.limit

    def explain(self, index: MessageIndex) -> str:
        size = index.tokens
        return f"tokens {size:,} {'<' if size < self.limit else '>='} {self.limit:,}"

    def __repr__(self) -> str:
        return f"tokens_below({self.limit})"


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
    """Holds when a request would send fewer than ``tokens`` tokens, the context's overhead included; mostly a target. O(1).

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
        raise ConfigurationError(f"messages_exceed(system={system!r}): system is True or False")
    return _Exceeds("messages", messages) if system else _ConversationExceeds(messages)


def turns_exceed(turns: int) -> Trigger:
    """Fires when the view has more than ``turns`` user turns. O(1)."""
    return _Exceeds("turns", turns)


def groups_exceed(groups: int) -> Trigger:
    """Fires when the view has more than ``groups`` groups, system groups included. O(1)."""
    return _Exceeds("groups", groups)


def bytes_exceed(bytes: int) -> Trigger:
    """Fires when the view's texts and data have more than ``bytes`` UTF-8 bytes. O(1)."""
    return _Exceeds("bytes", bytes)
