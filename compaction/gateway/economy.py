"""The economy of cuts: a request that fits its window is compacted only if that saves more than the broken prompt cache costs.

An unchanged request costs the cached price for the tokens of the previous one, and the full price for new tokens. A compacted
request costs the full price for everything after its first change, and less in each later call. The calls that remain until
the window is full must earn that back; their number is estimated, as at most half of the calls so far. A request that does
not fit is always compacted.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final, cast

import attrs

from ..checks import share
from ..index import Edit, MessageGroup, MessageIndex, Request, relay, unchanged_groups
from ..session import within
from ..strategies import Pipeline, StepBegan, StepEnded, Strategy, StrategyLike, as_strategy
from ..summarizers import SummaryRequest
from ..triggers import Trigger, tokens_exceed

_FULL: Final = 0.985  # of the window: the provider may count a little more than we do
_CACHE_SECONDS: Final = 300.0
_TRIALS: Final = 20  # at most, while a window fills up; a trial costs processor time


@attrs.frozen(kw_only=True)
class _Tried:
    """The result of a trial: tokens of the request, and tokens of the groups before its first change."""

    after: int
    kept: int


@attrs.frozen(repr=False)
class _Pays(Trigger):
    strategy: Strategy
    full: int
    cached: float = attrs.field(validator=share)

    def __call__(self, index: MessageIndex) -> bool:
        tokens, newest, is_idle = index.tokens, _newest(index), index.idle_seconds > _CACHE_SECONDS
        step = max(1, self.full // _TRIALS)
        if not is_idle and (tokens - newest) // step == tokens // step:
            return False  # a trial was made within this step
        groups = index.included_groups
        with index.trial():
            tried = _tried(index, self.strategy, groups)
        if tried is None or tried.after >= tokens:
            return False
        after, known, kept = tried.after, tokens - newest, tried.kept + index.context.overhead_tokens
        if kept >= known or is_idle:
            return True  # no cached token changes
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
    """Return a strategy that runs only if that is necessary or pays, and that always makes the request fit.

    Args:
        strategy: The strategy to run.
        window: The context window in tokens, >= 1.
        cached: Price of a cached input token as a share of one that is written, above 0 and at most 1.

    >>> from compaction import presets
    >>> never_dearer(presets.adaptive(1_000), 1_000).trigger.token_limit(None)
    985
    """
    strategy, full = as_strategy(strategy), max(1, int(window * _FULL))
    necessary = tokens_exceed(full)
    return Pipeline(within(strategy, full), trigger=necessary | _Pays(strategy, full, cached), target=~necessary)


def _newest(index: MessageIndex) -> int:
    """Return the tokens from the last answer on. The provider has not read them yet, so its cache ends before them."""
    tokens = 0
    for group in map(index.group, reversed(index.included_ids)):
        tokens += group.tokens
        if group.messages[0].role == "assistant":
            return tokens
    return 0


def _kept(before: Sequence[MessageGroup], after: Sequence[MessageGroup]) -> int:
    """Return the tokens of the first groups that a trial leaves unchanged."""
    return sum(group.tokens for group in before[: unchanged_groups(before, after)])


def _tried(index: MessageIndex, strategy: Strategy, groups: Sequence[MessageGroup]) -> _Tried | None:
    """Run a strategy on trial, up to its first request for a summary, which is assumed to use its whole budget.

    No model is called and nothing is stored.

    Returns:
        ``None`` if the strategy changes nothing, or first makes a request of another kind.
    """
    mark, asked = index.edit_count, list[Request]()

    def answered(item: object) -> Any:
        if isinstance(item, StepBegan):
            index.begin_step()
        elif isinstance(item, StepEnded):
            index.end_step()
        elif isinstance(item, Edit):
            return index.apply(item, by="a trial")
        elif isinstance(item, Request):
            asked.append(item)
        return None

    with contextlib.closing(cast("Generator[Any, Any, Any]", strategy(index))) as steps:
        deque(relay(steps, answered, until=lambda _: bool(asked)), maxlen=0)
    if not asked:
        is_changed = index.edit_count != mark
        return _Tried(after=index.tokens, kept=_kept(groups, index.included_groups)) if is_changed else None
    if not isinstance(asked[0], SummaryRequest):
        return None
    left = sum(group.tokens for group in asked[0].kept) + asked[0].budget
    return _Tried(after=left + index.context.overhead_tokens, kept=_kept(groups, asked[0].kept))
