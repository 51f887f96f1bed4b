"""Triggers that depend on the model's context window, on the turns since the last edit, or on the time."""

from __future__ import annotations

import attrs

from ..checks import above, count, share
from ..errors import ConfigurationError
from ..index import MessageIndex
from .base import Trigger


@attrs.frozen(repr=False)
class _ContextExceeds(Trigger):
    ratio: float = attrs.field(validator=share)

    def __call__(self, index: MessageIndex) -> bool:
        return index.tokens > self.ratio * _window(index)

    def explain(self, index: MessageIndex) -> str:
        limit = self.ratio * _window(index)
        sign = ">" if index.tokens > limit else "<="
        return f"tokens {index.tokens:,} {sign} {limit:,.0f}, {100 * self.ratio:g}% of the window"

    def token_limit(self, index: MessageIndex) -> int | None:
        return int(self.ratio * _window(index))

    def __repr__(self) -> str:
        return f"context_exceeds({self.ratio!r})"


def _window(index: MessageIndex) -> int:
    if index.context.window is None:
        raise ConfigurationError("context_exceeds: the context window is unknown; pass context=RunContext(window=...)")
    return index.context.window


@attrs.frozen(repr=False)
class _Every(Trigger):
    turns: int = attrs.field(validator=count(1))

    def __call__(self, index: MessageIndex) -> bool:
        return index.turns_since_edit >= self.turns

    def explain(self, index: MessageIndex) -> str:
        return f"{index.turns_since_edit:,} of {self.turns:,} turns since the last edit"

    def __repr__(self) -> str:
        return f"every({self.turns!r})"


@attrs.frozen(repr=False)
class _IdleFor(Trigger):
    seconds: float = attrs.field(validator=above(0))

    def __call__(self, index: MessageIndex) -> bool:
        return index.idle_seconds >= self.seconds

    def explain(self, index: MessageIndex) -> str:
        return f"idle {index.idle_seconds:,.0f} of {self.seconds:,.0f} seconds"

    def __repr__(self) -> str:
        return f"idle_for({self.seconds!r})"


def context_exceeds(ratio: float) -> Trigger:
    """Fires when a request would fill more than this share of ``context.window``. O(1).

    Args:
        ratio: Share of the window, above 0 and at most 1.

    Raises:
        ConfigurationError: If the ratio is out of range; when evaluated, if the context has no window.
    """
    return _ContextExceeds(ratio)


def every(turns: int) -> Trigger:
    """Fires when at least this many user turns have begun since the last edit, or since the start. O(1).

    Args:
        turns: Turns, >= 1.
    """
    return _Every(turns)


def idle_for(seconds: float) -> Trigger:
    """Fires when the conversation was idle for this long before the latest messages, so that the prompt cache has expired.

    The time is ``context.now``; if that is ``None``, the trigger never fires. O(1).

    Args:
        seconds: Seconds, above 0.
    """
    return _IdleFor(seconds)
