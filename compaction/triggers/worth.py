"""A trigger that tries a strategy, and fires if its saving pays for the prompt cache it would break."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from ..checks import above, count, share
from ..index import CutWorth, MessageGroup, MessageIndex, dry_run
from .base import Trigger


@attrs.frozen
class _Trial:
    """A cut that was tried and rolled back."""

    cut: CutWorth
    calls: float  # that its saving lasts
    in_cache: int  # the tokens of the request without the cut that are in the cache; 0 after its lifetime


@attrs.frozen(repr=False)
class _WorthIt(Trigger):
    """The trigger of `worth_it`. `gateway/economy.py` has another one with the same formula, and says what differs."""

    strategy: Callable[[MessageIndex], Iterable[Any]]
    calls: int | None = attrs.field(kw_only=True, validator=attrs.validators.optional(count(1)))
    cached: float = attrs.field(kw_only=True, validator=share)
    ttl_seconds: float = attrs.field(kw_only=True, validator=above(0))

    def __call__(self, index: MessageIndex) -> bool:
        trial = self._try(index)
        return trial.cut.pays(calls=trial.calls - 1, cached=self.cached, in_cache=trial.in_cache)

    def explain(self, index: MessageIndex) -> str:
        trial = self._try(index)
        cut, lasts = trial.cut, f"{trial.calls:g} calls"
        rewritten = cut.after - cut.kept if trial.in_cache else 0
        return f"it would save {cut.saved:,} tokens in each of {lasts}, and write {rewritten:,} to the cache again"

    def _try(self, index: MessageIndex) -> _Trial:
        with dry_run(self.strategy, index) as dry:
            cut = dry.cut()
            calls: float = self.calls or max(1.0, _calls_in(dry.before, index.included_groups) / 2)
        has_expired = index.idle_seconds > self.ttl_seconds
        return _Trial(cut, calls, 0 if has_expired else cut.before)

    def __repr__(self) -> str:
        return f"worth_it({self.strategy!r}, calls={self.calls}, cached={self.cached!r}, ttl_seconds={self.ttl_seconds!r})"


def _calls_in(before: Sequence[MessageGroup], after: Sequence[MessageGroup]) -> int:
    """Return how many answers of the model are in the removed groups."""
    left = {group.id for group in after}
    return sum(message.role == "assistant" for group in before if group.id not in left for message in group.messages)


def worth_it(
    strategy: Callable[[MessageIndex], Iterable[Any]],
    *,
    calls: int | None = None,
    cached: float = 0.1,
    ttl_seconds: float = 300.0,
) -> Trigger:
    """Fires when a strategy would save more over the coming calls than it costs to cache the prompt again.

    It runs the strategy, compares, and rolls back. The tokens saved would have been paid at the price of cached tokens in each
    call; everything after the first change must be written to the cache again, once. After a pause longer than the cache's
    lifetime there is nothing to break, and any saving is worth it.

    Cost: that of the strategy, each time it is asked or explained. Put a cheap trigger in front:
    ``tokens_exceed(60_000) & worth_it(...)``.

    Args:
        strategy: The strategy to try; it must await nothing. Give it no trigger, or one that fires.
        calls: Calls the saving is expected to last, the next one included, >= 1. By default half of the calls that wrote the
            removed messages, and at least 1: in a conversation that grows steadily, that is the cheapest interval between cuts,
            by the rule of the economic lot size (Harris, 1913).
        cached: Price of a cached input token as a share of one that is written, above 0 and at most 1.
        ttl_seconds: How long a prefix stays cached, by ``context.now``.

    Raises:
        ConfigurationError: If a figure is out of range; when asked, if the strategy awaits an answer.

    >>> from compaction import Drop, MessageIndex
    >>> def drop_the_second(index):
    ...     yield Drop([1], reason="an example")
    >>> chat = [{"role": "user", "content": "word " * size} for size in (10, 400, 40, 1)]
    >>> index = MessageIndex(chat, counter="chars/4")
    >>> worth_it(drop_the_second, calls=9)(index), worth_it(drop_the_second, calls=1)(index), len(index.messages())
    (True, False, 4)
    """
    return _WorthIt(strategy, calls=calls, cached=cached, ttl_seconds=ttl_seconds)
