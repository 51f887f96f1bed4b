"""The economy of cuts: a request that fits its window is compacted only if that saves more than the broken prompt cache costs.

An unchanged request costs the cached price for the tokens of the previous one, and the full price for new tokens. A compacted
request costs the full price for everything after its first change, and less in each later call. The calls that remain until
the window is full must earn that back; their number is estimated, as at most half of the calls so far. A request that does
not fit is always compacted.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..checks import share
from ..index import CutWorth, MessageIndex, dry_run
from ..strategies import Pipeline, Strategy, StrategyLike, as_strategy, within
from ..summarizers import SummaryRequest
from ..triggers import Trigger, tokens_exceed

_FULL: Final = 0.985  # of the window: the provider may count a little more than we do
_CACHE_SECONDS: Final = 300.0
_TRIALS: Final = 20  # at most, while a window fills up; a trial costs processor time


@attrs.frozen(repr=False)
class _Pays(Trigger):
    """Fires if a cut saves more than the prompt cache that it breaks, by the formula of `CutWorth.pays`.

    The cut is tried without calling a model, up to the first request for a summary, and is expected to save tokens in each call
    until the window is full. The trigger `worth_it`, with the same formula, runs the whole strategy, with its summaries, and
    expects the saving to last as long as the removed messages took.
    """

    strategy: Strategy
    full: int
    cached: float = attrs.field(validator=share)

    def __call__(self, index: MessageIndex) -> bool:
        tokens, is_idle = index.tokens, index.idle_seconds > _CACHE_SECONDS
        known = tokens - _newest(index)
        step = max(1, self.full // _TRIALS)
        if not is_idle and known // step == tokens // step:  # a trial is made once in each twentieth of the window
            return False
        cut = _tried(index, self.strategy)
        if cut is None or cut.saved <= 0:
            return False
        return cut.pays(calls=self._calls_left(index), cached=self.cached, in_cache=0 if is_idle else known)

    def _calls_left(self, index: MessageIndex) -> float:
        """Return the calls until the window is full, if each adds as much as those so far did on average.

        They are at most half of the answers so far, because nobody knows whether the conversation goes on. After 5 answers, a
        request of 600 tokens is the sixth, and each added 100: 4 more fill 1,000 tokens, of which 2.5 are expected.
        """
        answers = sum(group.messages[0].role == "assistant" for group in index.included_groups)
        room = min(self.full, index.context.window or self.full) - index.tokens
        return min(max(0.0, room * (answers + 1) / index.tokens), answers / 2)

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


def _tried(index: MessageIndex, strategy: Strategy) -> CutWorth | None:
    """Run a strategy on trial, up to its first request for a summary, which is assumed to use its whole budget.

    No model is called and nothing is stored. Return ``None`` if the strategy first makes a request of another kind.
    """
    with dry_run(strategy, index, until_request=lambda request: True) as dry:
        if dry.request is None:
            return dry.cut()
        return dry.cut(dry.request.kept, added=dry.request.budget) if isinstance(dry.request, SummaryRequest) else None
