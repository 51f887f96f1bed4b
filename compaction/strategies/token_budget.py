"""A hard token budget: other strategies first, and truncation as the fallback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import attrs

from ..checks import count
from ..index import PASS_ON, Drop, MessageIndex, Replace, Rewrite, Together, relay
from ..selectors import Selector, as_selector, nothing
from ..triggers import Trigger, always, never, tokens_exceed
from .base import Pipeline, StepBegan, StepEnded, Steps, Strategy, StrategyLike, as_strategy
from .truncation import Truncation


def _strategies(strategies: Iterable[StrategyLike]) -> tuple[Strategy, ...]:
    return tuple(map(as_strategy, strategies))


@attrs.frozen
class TokenBudgetComposed(Strategy):
    """Runs strategies in order until a request fits the budget; if that is not enough, drops the oldest groups.

    The budget is checked after every edit, also within a strategy, which is then closed. Cost: that of the strategies that run,
    and O(groups) for the fallback.

    Args:
        strategies: Strategies to try, gentlest first, each by its own trigger.
        budget: Tokens a request may send, the context's overhead included; > 0.
        early_stop: Whether to stop as soon as the budget holds; if not, every strategy runs to its own target.
        keep: Groups that the fallback must not drop either.
        drop_system: Whether system groups may be dropped if nothing else is enough.

    Raises:
        ConfigurationError: If the budget is not above 0.

    >>> from compaction import compact_sync
    >>> from compaction.strategies import SlidingWindow
    >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(9)]
    >>> compact_sync(messages, TokenBudgetComposed([SlidingWindow()], budget=200), counter="chars/4").after.tokens
    162
    """

    strategies: tuple[Strategy, ...] = attrs.field(converter=_strategies)
    budget: int = attrs.field(validator=count(1), kw_only=True)
    early_stop: bool = attrs.field(default=True, kw_only=True)
    keep: Selector = attrs.field(default=nothing, converter=as_selector, kw_only=True)
    drop_system: bool = attrs.field(default=False, kw_only=True)

    @property
    def children(self) -> tuple[Strategy, ...]:
        return self.strategies

    def with_children(self, children: Iterable[Strategy]) -> Strategy:
        return attrs.evolve(self, strategies=children)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return its gentle parts, forced, and then itself: it does the rest only while the budget is exceeded."""
        gentle = [each.forced(focus, others=never) for each in self.strategies]
        return Pipeline(*gentle, self if others == always else Pipeline(self, trigger=others))

    def __call__(self, index: MessageIndex) -> Steps:
        over = tokens_exceed(self.budget)
        if not over(index):
            return
        yield StepBegan(self, over.explain(index))
        for strategy in self.strategies:
            with contextlib.closing(strategy(index)) as steps:
                yield from relay(steps, lambda _: PASS_ON, until=lambda item: self._stops_after(item, index))
            if self.early_stop and not over(index):
                break
        yield from Truncation(trigger=over, keep=self.keep, drop_system=self.drop_system)(index)
        yield StepEnded(self, ~over, not over(index))

    def _stops_after(self, item: object, index: MessageIndex) -> bool:
        """Whether a strategy is closed after an edit, as the budget holds."""
        return self.early_stop and isinstance(item, Drop | Replace | Rewrite | Together) and index.tokens <= self.budget
