"""Known systems and good defaults: functions that return a strategy made of the general parts, and no new classes."""

from __future__ import annotations

from .errors import ConfigurationError
from .groups import GroupKind
from .selectors import kinds, last
from .strategies import Pipeline, ToolResult, Truncation
from .triggers import tokens_below, tokens_exceed

__all__ = ["context_window"]


def context_window(
    window: int,
    *,
    reserve_output: int = 0,
    tool_threshold: float = 0.5,
    threshold: float = 0.8,
    target: float = 0.5,
    keep_tool_groups: int = 4,
    keep_groups: int = 2,
) -> Pipeline:
    """Keeps a conversation inside a model's window.

    Past half of it old tool results collapse, past four fifths the oldest groups go. The two thresholds are those of Agent
    Framework's context-window strategy. Each step goes on to a lower target, so that it does not fire again on the next turn.

    Args:
        window: Tokens the model takes in and puts out, > 0.
        reserve_output: Tokens of it kept for the answer, >= 0 and below ``window``; the rest is the input budget.
        tool_threshold: Share of the input budget past which old tool results collapse.
        threshold: Share past which the oldest groups are dropped; at least ``tool_threshold``, at most 1.
        target: Share that dropping goes down to, above 0 and below ``threshold``. Collapsing stops at four fifths of
            ``tool_threshold``, or at ``target`` if that is lower.
        keep_tool_groups: How many of the newest tool-call groups never collapse.
        keep_groups: How many of the newest groups are never dropped.

    Raises:
        ConfigurationError: If a figure is out of range.

    >>> context_window(32_000, reserve_output=4_000).steps[1].trigger
    tokens_exceed(22400)
    """
    if not (isinstance(window, int) and isinstance(reserve_output, int) and 0 <= reserve_output < window):
        raise ConfigurationError(
            f"context_window({window}, reserve_output={reserve_output}): the window is above 0 and above the reserve"
        )
    if not 0 < tool_threshold <= threshold <= 1:
        raise ConfigurationError(
            f"context_window(tool_threshold={tool_threshold}, threshold={threshold}): 0 < tool_threshold <= threshold <= 1"
        )
    if not 0 < target < threshold:
        raise ConfigurationError(f"context_window(target={target}): a share above 0 and below threshold={threshold}")
    budget = window - reserve_output
    return Pipeline(
        ToolResult(
            trigger=tokens_exceed(int(budget * tool_threshold)),
            target=tokens_below(int(budget * min(target, 0.8 * tool_threshold)) + 1),
            keep=last(groups=keep_tool_groups, of=kinds(GroupKind.TOOL_CALL)),
        ),
        Truncation(
            trigger=tokens_exceed(int(budget * threshold)),
            target=tokens_below(int(budget * target) + 1),
            keep=last(groups=keep_groups),
        ),
    )
