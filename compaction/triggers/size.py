"""Triggers that compare the size of the view with a limit, and `has_tool_calls`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, gt, lt
from typing import Any, Final

import attrs

from ..checks import checked_count
from ..errors import ConfigurationError
from ..index import MessageIndex
from .base import Trigger

_SIZES: Final[Mapping[str, Callable[[MessageIndex], int]]] = {
    "tokens": attrgetter("tokens"),
    **{unit: attrgetter(f"columns.included.{unit}") for unit in ("messages", "turns", "groups", "bytes")},
    "messages without system messages": lambda index: index.columns.included.messages - index.columns.system_messages,
}
"""The sizes of the view, as they are called in explanations; ``index.included`` has the same, but computes all of them."""

_SIGNS: Final[Mapping[Callable[[int, int], bool], tuple[str, str]]] = {gt: (">", "<="), lt: ("<", ">=")}
"""The sign of each comparison if it holds, and if not."""


def _is_limit(trigger: _Compared, attribute: attrs.Attribute[Any], value: object) -> None:
    """Refuse a limit that is not a whole number >= 0, under the name of the function that the user called."""
    checked_count(f"{trigger.call.partition('(')[0]}: the limit", value)


@attrs.frozen(repr=False)
class _Compared(Trigger):
    """Fires when a comparison of a size with a limit holds."""

    call: str  # the expression that makes it, with ``{}`` for the limit
    size: str  # a key of ``_SIZES``
    compare: Callable[[int, int], bool]  # a key of ``_SIGNS``
    limit: int = attrs.field(validator=_is_limit)

    def __call__(self, index: MessageIndex) -> bool:
        return self.compare(_SIZES[self.size](index), self.limit)

    def explain(self, index: MessageIndex) -> str:
        size, (fires, does_not) = _SIZES[self.size](index), _SIGNS[self.compare]
        return f"{self.size} {size:,} {fires if self.compare(size, self.limit) else does_not} {self.limit:,}"

    def token_limit(self, index: MessageIndex) -> int | None:
        return self.limit if (self.size, self.compare) == ("tokens", gt) else None

    def __repr__(self) -> str:
        return self.call.format(self.limit)


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
    return _Compared("tokens_exceed({})", "tokens", gt, tokens)


def tokens_below(tokens: int) -> Trigger:
    """Fires when a request would send fewer than ``tokens`` tokens, the context's overhead included; used as a target. O(1).

    Args:
        tokens: The limit, >= 0.
    """
    return _Compared("tokens_below({})", "tokens", lt, tokens)


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
    if system:
        return _Compared("messages_exceed({})", "messages", gt, messages)
    return _Compared("messages_exceed({}, system=False)", "messages without system messages", gt, messages)


def turns_exceed(turns: int) -> Trigger:
    """Fires when the view has more than ``turns`` user turns. O(1)."""
    return _Compared("turns_exceed({})", "turns", gt, turns)


def groups_exceed(groups: int) -> Trigger:
    """Fires when the view has more than ``groups`` groups, system groups included. O(1)."""
    return _Compared("groups_exceed({})", "groups", gt, groups)


def bytes_exceed(bytes: int) -> Trigger:
    """Fires when the texts and media data in the view have more than ``bytes`` UTF-8 bytes. O(1)."""
    return _Compared("bytes_exceed({})", "bytes", gt, bytes)
