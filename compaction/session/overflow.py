"""Fitting a window that a provider taught: the strategy, and if that is not enough, harder means until the request fits."""

from __future__ import annotations

from typing import Final

from ..index import GroupKind
from ..selectors import kinds, last, nothing
from ..strategies import Clip, HeadTail, Pipeline, Strategy, ToolResult, Truncation
from ..triggers import tokens_below, tokens_exceed

__all__ = ["within"]

_TARGET: Final = 0.8  # of the window, once something must go, so that not every turn cuts again; chosen, not measured
_CLIPS: Final = ((0.25, kinds(GroupKind.USER)), (0.10, nothing), (0.05, nothing))  # what no request can do without


def within(strategy: Strategy, tokens: int) -> Strategy:
    """Return the strategy with what follows if a request still has more tokens: forcing it, then shortening, then dropping.

    Cost: that of the strategy while the request fits; past it, O(messages).

    Args:
        strategy: The strategy.
        tokens: Tokens that a request may have, >= 1.
    """
    over, target = tokens_exceed(tokens), tokens_below(max(1, int(tokens * _TARGET)))
    last_means = Pipeline(
        ToolResult(HeadTail(), target=target, keep=last(groups=1)),
        Truncation(target=target, keep=last(groups=1)),
        *(Clip(tokens=max(1, int(tokens * share)), slack=1.0, trigger=over, keep=kept) for share, kept in _CLIPS),
        trigger=over,
    )
    return Pipeline(strategy, Pipeline(strategy.forced(), trigger=over), last_means)
