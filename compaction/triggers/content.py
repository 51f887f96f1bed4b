"""The trigger for tool calls, and the two constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from ..algebra import Constant
from ..index import MessageIndex
from .base import Trigger


class _Constant(Constant[Trigger, Callable[[MessageIndex], bool]], Trigger):
    __slots__ = ()

    _names = ("never", "always")

    def __call__(self, index: MessageIndex) -> bool:
        return self.value

    def explain(self, index: MessageIndex) -> str:
        return repr(self)


@attrs.frozen(repr=False)
class _HasToolCalls(Trigger):
    def __call__(self, index: MessageIndex) -> bool:
        return index.included.tool_calls > 0

    def explain(self, index: MessageIndex) -> str:
        return f"tool calls {index.included.tool_calls:,} in the view"

    def __repr__(self) -> str:
        return "has_tool_calls"


always: Final[Trigger] = _Constant(True)
"""Always fires."""

never: Final[Trigger] = _Constant(False)
"""Never fires; as a target, it makes a strategy do all it can."""

has_tool_calls: Final[Trigger] = _HasToolCalls()
"""Fires when the view holds a tool call. O(1)."""
