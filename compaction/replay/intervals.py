"""Averages over conversations with bootstrap intervals, and paired differences between candidates.

Whole conversations are drawn with replacement, not calls: the calls of one conversation depend on each other. All figures of
a replay use the same draws, so that two candidates are always compared on the same conversations.

Percentile bootstrap after Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import attrs

from .scores import Share

__all__ = ["BootstrapDraws", "IntervalEstimate", "macro_average", "micro_average"]

_DRAWS: Final = 1_000
_MOST_PLACES: Final = 2_000_000
_CONFIDENCE: Final = 0.95


@attrs.frozen
class IntervalEstimate:
    """A figure with its interval.

    Args:
        value: The figure; ``None`` if nothing was counted.
        low: The lower end of its 95 % interval; ``None`` for fewer than two conversations.
        high: The upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does not contain zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def micro_average(shares: Sequence[Share]) -> float | None:
    """Return the average over all conversations taken as one: all that was found, divided by all that was needed.

    >>> micro_average([Share(1, 2), Share(8, 8)])
    0.9
    """
    needed = sum(share.needed for share in shares)
    return sum(share.found for share in shares) / needed if needed else None


def macro_average(shares: Sequence[Share]) -> float | None:
    """Return the mean over conversations, each counting once; those that needed nothing are left out.

    >>> macro_average([Share(1, 2), Share(8, 8), Share()])
    0.75
    """
    values = [share.found / share.needed for share in shares if share.needed]
    return sum(values) / len(values) if values else None


class BootstrapDraws:
    """Conversations drawn with replacement. Holds the draws.

    Args:
        conversations: Number of conversations.
        random: The random generator; the same seed gives the same intervals.

    >>> BootstrapDraws(3, Random(0)).estimate([Share(1, 2), Share(2, 2), Share(4, 4)], micro_average)
    IntervalEstimate(value=0.875, low=0.5, high=1.0)
    """

    def __init__(self, conversations: int, random: Random) -> None:
        places = range(conversations)
        draws = min(_DRAWS, _MOST_PLACES // max(1, conversations)) if conversations > 1 else 0
        self._draws = [random.choices(places, k=conversations) for _ in range(draws)]

    def estimate(self, shares: Sequence[Share], statistic: Callable[[Sequence[Share]], float | None]) -> IntervalEstimate:
        """Return a statistic of the conversations' shares, with its interval."""
        return self._interval(statistic(shares), [statistic([shares[at] for at in draw]) for draw in self._draws])

    def difference(
        self, ones: Sequence[Share], others: Sequence[Share], statistic: Callable[[Sequence[Share]], float | None]
    ) -> IntervalEstimate:
        """Return a statistic of the first shares minus that of the second, on the same drawn conversations."""
        drawn = [_minus(statistic([ones[at] for at in draw]), statistic([others[at] for at in draw])) for draw in self._draws]
        return self._interval(_minus(statistic(ones), statistic(others)), drawn)

    def _interval(self, value: float | None, drawn: Sequence[float | None]) -> IntervalEstimate:
        known = sorted(each for each in drawn if each is not None)
        if value is None or not known:
            return IntervalEstimate(value)
        tail = (1 - _CONFIDENCE) / 2
        return IntervalEstimate(
            value, known[math.floor(tail * (len(known) - 1))], known[math.ceil((1 - tail) * (len(known) - 1))]
        )


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
