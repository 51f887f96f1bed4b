"""How sure a figure is: bootstrap intervals over conversations, and paired differences.

Conversations are drawn with replacement, never calls: the calls of one conversation depend on each other. All figures of a
replay use the same draws, so that a difference between two contenders is a difference on the same conversations.

Percentile bootstrap after Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import attrs

from .scores import Share

__all__ = ["Draws", "Estimate", "macro", "micro"]

_DRAWS: Final = 1_000
_MOST_PLACES: Final = 2_000_000
_CONFIDENCE: Final = 0.95


@attrs.frozen
class Estimate:
    """A figure with its interval.

    Args:
        value: The figure; ``None`` if nothing was counted.
        low: The lower end of its 95 % interval; ``None`` of fewer than two conversations.
        high: The upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def micro(shares: Sequence[Share]) -> float | None:
    """All conversations as one: what was found of what was needed in all of them.

    >>> micro([Share(1, 2), Share(8, 8)])
    0.9
    """
    needed = sum(share.needed for share in shares)
    return sum(share.found for share in shares) / needed if needed else None


def macro(shares: Sequence[Share]) -> float | None:
    """The mean over conversations, each counting once; those that needed nothing are left out.

    >>> macro([Share(1, 2), Share(8, 8), Share()])
    0.75
    """
    values = [share.found / share.needed for share in shares if share.needed]
    return sum(values) / len(values) if values else None


class Draws:
    """Conversations drawn with replacement. Holds the draws.

    Args:
        conversations: How many there are.
        random: Where chance comes from; the same seed gives the same intervals.

    >>> Draws(3, Random(0)).estimate([Share(1, 2), Share(2, 2), Share(4, 4)], micro)
    Estimate(value=0.875, low=0.5, high=1.0)
    """

    def __init__(self, conversations: int, random: Random) -> None:
        places = range(conversations)
        draws = min(_DRAWS, _MOST_PLACES // max(1, conversations)) if conversations > 1 else 0
        self._draws = [random.choices(places, k=conversations) for _ in range(draws)]

    def estimate(self, shares: Sequence[Share], statistic: Callable[[Sequence[Share]], float | None]) -> Estimate:
        """A figure of the conversations' shares."""
        return self._interval(statistic(shares), [statistic([shares[at] for at in draw]) for draw in self._draws])

    def difference(
        self, ones: Sequence[Share], others: Sequence[Share], statistic: Callable[[Sequence[Share]], float | None]
    ) -> Estimate:
        """By how much a figure of the first exceeds that of the second, conversation by conversation the same."""
        drawn = [_minus(statistic([ones[at] for at in draw]), statistic([others[at] for at in draw])) for draw in self._draws]
        return self._interval(_minus(statistic(ones), statistic(others)), drawn)

    def _interval(self, value: float | None, drawn: Sequence[float | None]) -> Estimate:
        known = sorted(each for each in drawn if each is not None)
        if value is None or not known:
            return Estimate(value)
        tail = (1 - _CONFIDENCE) / 2
        return Estimate(value, known[math.floor(tail * (len(known) - 1))], known[math.ceil((1 - tail) * (len(known) - 1))])


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
