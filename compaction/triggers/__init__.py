"""Triggers: conditions for when a strategy runs and, as targets, when it may stop.

================================  ======================================================
``always`` ``never``              constants
``tokens_exceed(n)``              a request would send more than n tokens
``tokens_below(n)``               a request would send fewer than n tokens
``messages_exceed(n)``            the view has more than n messages; ``system=False``: without system messages
``turns_exceed(n)``               the view has more than n user turns
``groups_exceed(n)``              the view has more than n groups
``bytes_exceed(n)``               the view has more than n bytes
``has_tool_calls``                the view holds a tool call
``context_exceeds(ratio)``        a request would fill more than this share of the window
``every(turns)``                  this many turns began since the last edit
``idle_for(seconds)``             the conversation paused for this long
``worth_it(strategy)``            its saving pays for the prompt cache it would break
================================  ======================================================

They combine with ``&``, ``|`` and ``~``; see `compaction.triggers.base`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .base import Trigger, TriggerLike, as_trigger
    from .content import always, has_tool_calls, never
    from .context import context_exceeds, every, idle_for
    from .size import bytes_exceed, groups_exceed, messages_exceed, tokens_below, tokens_exceed, turns_exceed
    from .worth import worth_it

__all__ = [
    "Trigger",
    "TriggerLike",
    "always",
    "as_trigger",
    "bytes_exceed",
    "context_exceeds",
    "every",
    "groups_exceed",
    "has_tool_calls",
    "idle_for",
    "messages_exceed",
    "never",
    "tokens_below",
    "tokens_exceed",
    "turns_exceed",
    "worth_it",
]

export_lazily(
    __name__,
    {
        "base": "Trigger TriggerLike as_trigger",
        "content": "always has_tool_calls never",
        "context": "context_exceeds every idle_for",
        "size": "bytes_exceed groups_exceed messages_exceed tokens_below tokens_exceed turns_exceed",
        "worth": "worth_it",
    },
)
