"""Triggers: the conditions under which a strategy runs and, as targets, under which it stops.

"The view" is the list of messages that would be sent now; "a request" is the view and the tokens sent beside it.

================================  ======================================================
``always`` ``never``              constants
``tokens_exceed(n)``              a request would send more than n tokens
``tokens_below(n)``               a request would send fewer than n tokens
``messages_exceed(n)``            the view has more than n messages; ``system=False``: without system messages
``turns_exceed(n)``               the view has more than n user turns
``groups_exceed(n)``              the view has more than n groups
``bytes_exceed(n)``               the view has more than n bytes
``has_tool_calls``                the view contains a tool call
``context_exceeds(ratio)``        a request would fill more than this share of the window
``every(turns)``                  this many user turns have begun since the last edit
``idle_for(seconds)``             the conversation was idle for this long
``worth_it(strategy)``            the strategy would save more than rewriting the prompt cache costs
================================  ======================================================

They combine with ``&``, ``|`` and ``~``; see `compaction.triggers.base`.
"""

from __future__ import annotations

from .base import Trigger, TriggerLike, always, as_trigger, never
from .base import checked_answer as checked_answer
from .context import context_exceeds, every, idle_for
from .size import bytes_exceed, groups_exceed, has_tool_calls, messages_exceed, tokens_below, tokens_exceed, turns_exceed
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
