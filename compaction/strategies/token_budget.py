"""The `TokenBudgetComposed` strategy: a hard token budget, with other strategies first and truncation as the fallback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import ClassVar

import attrs

from ..checks import count
from ..errors import ConfigurationError
from ..index import PASS_ON, Edit, MessageIndex, relay
from ..selectors import Selector, as_selector, nothing
from ..triggers import Trigger, always, never, tokens_exceed
from .base import Pipeline, Steps, Strategy, StrategyLike, as_strategy
from .truncation import Truncation


def _strategies(strategies: Iterable[StrategyLike]) -> tuple[Strategy, ...]:
    if not isinstance(strategies, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - a strategy without brackets
        raise ConfigurationError(f"TokenBudgetComposed: it is a strategy, not a list of them; write [{strategies}]")
    return tuple(map(as_strategy, strategies))


@attrs.frozen
class TokenBudgetComposed(Strategy):
    """Runs strategies in order until a request fits the budget; if they are not enough, drops the oldest groups.

    If what must stay exceeds the budget alone, such as the system message, none of them is dropped.

    By default the budget is checked after every edit, and a strategy that is still running when it holds is closed. Cost: that
    of the strategies that run, and O(groups) for the fallback.

    Args:
        strategies: The strategies, gentlest first, each with its own trigger.
        budget: The most tokens of a request, the context's overhead included, > 0.
        early_stop: Whether to stop as soon as the budget holds; if not, every strategy runs to its own target.
        keep: The groups that the fallback must not drop.
        drop_system: Whether the fallback may drop system groups if nothing else is enough.

    Raises:
        ConfigurationError: If the budget is not above 0.

    >>> from compaction import compact_sync
    >>> from compaction.strategies import SlidingWindow
    >>> messages = [{"role": "user", "content": "word " * 40} for _ in range(9)]
    >>> compact_sync(messages, TokenBudgetComposed([SlidingWindow()], budget=200), counter="chars/4").after.tokens
    162
    """

    runs: ClassVar[str] = "strategies"

    strategies: tuple[Strategy, ...] = attrs.field(converter=_strategies)
    budget: int = attrs.field(validator=count(1), kw_only=True)
    early_stop: bool = attrs.field(default=True, kw_only=True)
    keep: Selector = attrs.field(default=nothing, converter=as_selector, kw_only=True)
    drop_system: bool = attrs.field(default=False, kw_only=True)

    def forced(self, focus: str | None = None, *, others: Trigger = always) -> Strategy:
        """Return the forced gentle parts and then this strategy, which does the rest if the budget is exceeded."""
        gentle = [each.forced(focus, others=never) for each in self.strategies]
        return Pipeline(*gentle, self if others == always else Pipeline(self, trigger=others))

    def __call__(self, index: MessageIndex) -> Steps:
        over = tokens_exceed(self.budget)
        return self._as_step(index, over, ~over, partial(self._reduced, over))

    def _reduced(self, over: Trigger, index: MessageIndex) -> Steps:
        def is_enough(item: object) -> bool:
            return self.early_stop and isinstance(item, Edit) and index.tokens <= self.budget

        for strategy in self.strategies:
            with contextlib.closing(strategy(index)) as steps:
                yield from relay(steps, lambda _: PASS_ON, until=is_enough)
            if self.early_stop and not over(index):
                break
        oldest = Truncation(trigger=over, keep=self.keep, drop_system=self.drop_system)
        if oldest.can_reach(index, self.budget):
            yield from oldest(index)
