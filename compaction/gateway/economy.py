"""When compaction pays: a request that fits its window is changed only if that costs less than the prompt cache it breaks.

Sending a request unchanged costs the cached price for what the last one had, and the full price for what is new. A compacted
request costs the full price for everything behind its first change, and then less in each later call. Only the calls that are
left until the window is full can earn it back, and how many will come is not known: half as many as there were, at most. A
request that does not fit is compacted in any case.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, cast

import attrs

from ..checks import share
from ..index import Edit, MessageGroup, MessageIndex, Request
from ..session import within
from ..strategies import Pipeline, StepBegan, StepEnded, Strategy, StrategyLike, as_strategy
from ..summarizers import SummaryRequest
from ..triggers import Trigger, tokens_exceed

_FULL: Final = 0.97  # of the window: what was counted may be a little less than what the provider counts
_CACHE_SECONDS: Final = 300.0
_TRIALS: Final = 20  # in a window; trying a strategy out takes time


@attrs.frozen(kw_only=True)
class _Tried:
    """What a strategy would leave: tokens of the request, and tokens of the groups before its first change."""

    after: int
    kept: int


@attrs.frozen(repr=False)
class _Pays(Trigger):
    strategy: Strategy
    full: int
    cached: float = attrs.field(validator=share)

    def __call__(self, index: MessageIndex) -> bool:
        groups, tokens = index.included_groups, index.tokens
        is_idle, newest = index.idle_seconds > _CACHE_SECONDS, _newest(groups)
        step = max(1, self.full // _TRIALS)
        if not is_idle and (tokens - newest) // step == tokens // step:
            return False  # tried at the last step
        with index.trial():
            tried = _tried(index, self.strategy, groups)
        if tried is None or tried.after >= tokens:
            return False
        after, known, kept = tried.after, tokens - newest, tried.kept + index.context.overhead_tokens
        if kept >= known or is_idle:
            return True  # nothing that was cached changes
        now = self.cached * known + newest
        then = self.cached * kept + (after - kept)
        answers = sum(group.messages[0].role == "assistant" for group in groups)
        room = min(self.full, index.context.window or self.full) - tokens
        calls = min(max(0.0, room * (answers + 1) / tokens), answers / 2)
        return calls * self.cached * (tokens - after) > then - now

    def explain(self, index: MessageIndex) -> str:
        return "it saves more than the prompt cache that it breaks"

    def __repr__(self) -> str:
        return f"pays({self.strategy!r}, {self.full}, {self.cached!r})"


def never_dearer(strategy: StrategyLike, window: int, *, cached: float = 0.1) -> Strategy:
    """Return the strategy limited to runs that are necessary or pay, and followed by what makes every request fit.

    Args:
        strategy: The strategy.
        window: Tokens that a request may have, >= 1.
        cached: Price of a cached input token as a share of one that is written, above 0 and at most 1.

    >>> from compaction import presets
    >>> never_dearer(presets.adaptive(1_000), 1_000).trigger.token_limit(None)
    970
    """
    strategy, full = as_strategy(strategy), max(1, int(window * _FULL))
    necessary = tokens_exceed(full)
    return Pipeline(within(strategy, full), trigger=necessary | _Pays(strategy, full, cached), target=~necessary)


def _newest(groups: Sequence[MessageGroup]) -> int:
    """Return the tokens from the last answer on: the provider has not read them yet, so its cache ends before them."""
    tokens = 0
    for group in reversed(groups):
        tokens += group.tokens
        if group.messages[0].role == "assistant":
            return tokens
    return 0


def _kept(before: Sequence[MessageGroup], after: Sequence[MessageGroup]) -> int:
    """Return the tokens of the first groups of a view that are still there, unchanged."""
    tokens = 0
    for one, other in zip(before, after, strict=False):
        if one.id != other.id or any(a is not b for a, b in zip(one.messages, other.messages, strict=False)):
            break
        tokens += one.tokens
    return tokens


def _tried(index: MessageIndex, strategy: Strategy, groups: Sequence[MessageGroup]) -> _Tried | None:
    """Run a strategy inside a trial, up to its first request for a summary, which is taken to need its whole budget.

    Nobody is asked and nothing is stored: a strategy that stores what leaves is not tried out.

    Returns:
        ``None`` if it changes nothing, or cannot be tried out.
    """
    steps = cast("Generator[Any, Any, Any]", strategy(index))
    mark, answer = index.edit_count, None
    try:
        while True:
            item, answer = steps.send(answer), None
            if isinstance(item, StepBegan):
                index.begin_step()
            elif isinstance(item, StepEnded):
                index.end_step()
            elif isinstance(item, Edit):
                answer = index.apply(item, by="a trial")
            elif isinstance(item, SummaryRequest):
                left = sum(group.tokens for group in item.kept) + item.budget
                return _Tried(after=left + index.context.overhead_tokens, kept=_kept(groups, item.kept))
            elif isinstance(item, Request):
                return None
    except StopIteration:
        if index.edit_count == mark:
            return None
        return _Tried(after=index.tokens, kept=_kept(groups, index.included_groups))
    finally:
        steps.close()
