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


_OTHER_MESSAGES: Final = "messages without system messages"

_SIZES: Final[Mapping[str, Callable[[MessageIndex], int]]] = {
    "tokens": attrgetter("tokens"),
    **{unit: attrgetter(f"columns.included.{unit}") for unit in ("messages", "turns", "groups", "bytes")},
    _OTHER_MESSAGES: lambda index: index.columns.included.messages - index.columns.system_messages,
}
"""The sizes of the view by their units; ``index.included`` would return the same, but computes all of them."""


@attrs.frozen(repr=False)
class _Compared(Trigger):
    """Fires when a size exceeds a limit, or (``below``) is under it."""

    unit: str
    limit: int = attrs.field(validator=_is_limit)
    below: bool = False

    def __call__(self, index: MessageIndex) -> bool:
        size = _SIZES[self.unit](index)
        return size < self.limit if self.below else size > self.limit

    def explain(self, index: MessageIndex) -> str:
        fires, does_not = ("<", ">=") if self.below else (">", "<=")
        return f"{self.unit} {_SIZES[self.unit](index):,} {fires if self(index) else does_not} {self.limit:,}"

    def token_limit(self, index: MessageIndex) -> int | None:
        return self.limit if self.unit == "tokens" and not self.below else None

    def __repr__(self) -> str:
        name = f"{self.unit.split()[0]}_{'below' if self.below else 'exceed'}"
        return f"{name}({self.limit}{', system=False' if self.unit == _OTHER_MESSAGES else ''})"


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
    return _Compared("tokens", tokens)


def tokens_below(tokens: int) -> Trigger:
    """Fires when a request would send fewer than ``tokens`` tokens, the context's overhead included; used as a target. O(1).

    Args:
        tokens: The limit, >= 0.
    """
    return _Compared("tokens", tokens, below=True)


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
    return _Compared("messages" if system else _OTHER_MESSAGES, messages)


def turns_exceed(turns: int) -> Trigger:
    """Fires when the view has more than ``turns`` user turns. O(1)."""
    return _Compared("turns", turns)


def groups_exceed(groups: int) -> Trigger:
    """Fires when the view has more than ``groups`` groups, system groups included. O(1)."""
    return _Compared("groups", groups)


def bytes_exceed(bytes: int) -> Trigger:
    """Fires when the texts and media data in the view have more than ``bytes`` UTF-8 bytes. O(1)."""
    return _Compared("bytes", bytes)
