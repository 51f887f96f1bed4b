"""Scores: sums over the calls of conversations under one candidate, and their averages. Every metric is a ratio of two sums.

The intervals of averages come from a bootstrap: whole conversations are drawn with replacement, not calls, because the calls of
one conversation depend on each other. All figures of a replay use the same draws, so that two candidates are always compared on
the same conversations. Percentile bootstrap after Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

import attrs

from ..models import ModelPrices
from .facts import NeededFactKind
from .replayed import CandidateRun, ReplayedCall, ReplayedConversation
from .transcript import NeededFact, Needs

AGES: Final = ((20, "up to 20"), (60, "21 to 60"), (200, "61 to 200"))
"""Classes of age, in messages between a fact and its use; older ones are ``"over 200"``."""


def age_of(fact: NeededFact) -> str:
    """Return the class of a fact's age."""
    return next((name for most, name in AGES if fact.age <= most), "over 200")


@attrs.frozen
class Share:
    """A number found out of a number needed.

    >>> (Share(1, 2) + Share(2, 2)).value
    0.75
    """

    found: float = 0
    needed: float = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.found + other.found, self.needed + other.needed)

    @property
    def value(self) -> float | None:
        """The ratio; ``None`` if nothing was needed."""
        return self.found / self.needed if self.needed else None


@attrs.frozen(kw_only=True)
class Score:
    """Sums over calls; see ``docs/metrics.md``.

    Args:
        calls: Number of calls.
        tokens: Tokens of all requests.
        peak: Tokens of the largest request.
        over: Requests that exceed the window.
        hopeless: Those of them whose system messages and last user message alone exceed it.
        invalid: Requests that break a rule of their format that the log itself does not break.
        compactions: Calls at which the strategy changed anything.
        breaks: Requests that did not continue the previous one.
        lost_tokens: Tokens of cached prefixes lost by these.
        expired: Requests whose cached prefix had expired.
        seconds: CPU time of the strategy.
        read: Tokens read from the prompt cache.
        written: Tokens written to it.
        fresh: Tokens neither read nor written.
        summary_read: Tokens of the messages that summaries replace.
        summary_written: Tokens of the summaries.
        prompt_dollars: Cost of the requests.
        summary_dollars: Cost of the summaries, if they are charged for.
        output_dollars: Cost of the answers, which is the same for all candidates.
        failures: Different exceptions of the candidate, counted once per conversation.
        facts: Needed facts that the request contains.
        usable: The same, only in requests that would not fail.
        old: ``usable`` of the facts that cutting to the newest messages would have lost.
        words: ``usable`` of rare words.
        spans: ``usable`` of verbatim spans.
        kinds: ``usable`` by kind of fact.
        ages: ``usable`` by age.
        causes: How often each cause broke the prefix.
        survival: The user's instructions that are still verbatim, by number of compactions since they were stated.
    """

    calls: int = 0
    tokens: int = 0
    peak: int = 0
    over: int = 0
    hopeless: int = 0
    invalid: int = 0
    compactions: int = 0
    breaks: int = 0
    lost_tokens: int = 0
    expired: int = 0
    seconds: float = 0.0
    read: int = 0
    written: int = 0
    fresh: int = 0
    summary_read: int = 0
    summary_written: int = 0
    prompt_dollars: float = 0.0
    summary_dollars: float = 0.0
    output_dollars: float = 0.0
    failures: int = 0
    facts: Share = Share()
    usable: Share = Share()
    old: Share = Share()
    words: Share = Share()
    spans: Share = Share()
    kinds: Mapping[str, Share] = attrs.field(factory=dict[str, Share])
    ages: Mapping[str, Share] = attrs.field(factory=dict[str, Share])
    causes: Mapping[str, int] = attrs.field(factory=dict[str, int])
    survival: Mapping[int, Share] = attrs.field(factory=dict[int, Share])

    @property
    def dollars(self) -> float:
        """The cost that compaction can change: requests and summaries."""
        return self.prompt_dollars + self.summary_dollars

    @property
    def would_fail(self) -> bool:
        """Whether a request that could fit exceeds the window, a request breaks a rule, or the candidate raised."""
        return self.over > self.hopeless or bool(self.invalid or self.failures)

    @classmethod
    def total(cls, scores: Iterable[Score]) -> Score:
        """Return the sum of scores; ``peak`` is the largest."""
        every = list(scores)
        sums: dict[str, Any] = {}
        for field in attrs.fields(cls):
            values = [getattr(score, field.name) for score in every]
            if field.name == "peak":
                sums["peak"] = max(values, default=0)
            elif values:
                sums[field.name] = _sum(values)
        return cls(**sums)


def _sum(values: list[Any]) -> Any:
    if not isinstance(values[0], Mapping):
        return sum(values[1:], values[0])
    merged: dict[Any, Any] = {}
    for value in values:
        for name, part in value.items():
            merged[name] = merged[name] + part if name in merged else part
    return merged


def score_of(
    conversation: ReplayedConversation, run: CandidateRun, prices: ModelPrices, *, charge_summaries: bool = False
) -> Score:
    """Return the score of one conversation under one candidate.

    Args:
        conversation: The conversation.
        run: The candidate's run of it.
        prices: The model's prices.
        charge_summaries: Whether summaries cost as if the model had written them.
    """
    calls = run.calls
    recall = _Recall()
    for call, needs in zip(calls, conversation.needs, strict=False):
        recall.add(call, needs)
    read, written = sum(call.summary_read for call in calls), sum(call.summary_written for call in calls)
    return Score(
        calls=len(calls),
        tokens=sum(call.tokens for call in calls),
        peak=max((call.tokens for call in calls), default=0),
        over=sum(call.over for call in calls),
        hopeless=sum(call.over and not needs.fits for call, needs in zip(calls, conversation.needs, strict=False)),
        invalid=sum(bool(call.broken_rules) for call in calls),
        compactions=sum(call.compacted for call in calls),
        breaks=sum(call.broken is not None for call in calls),
        lost_tokens=sum(call.broken.lost_tokens for call in calls if call.broken),
        expired=sum(call.expired for call in calls),
        seconds=sum(call.seconds for call in calls),
        read=sum(call.read for call in calls),
        written=sum(call.written for call in calls),
        fresh=sum(call.fresh for call in calls),
        summary_read=read,
        summary_written=written,
        prompt_dollars=sum(prices.dollars(read=call.read, written=call.written, fresh=call.fresh) for call in calls),
        summary_dollars=prices.dollars(fresh=read, output=written) if charge_summaries else 0.0,
        output_dollars=prices.dollars(output=sum(conversation.output_tokens)),
        failures=len(run.failures),
        causes=Counter(call.broken.cause for call in calls if call.broken),
        survival={each.compactions: Share(each.standing, each.stated) for each in run.survival},
        **recall.shares(),
    )


class _Recall:
    """Counts what was needed and what was found. Holds state."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {name: [0, 0] for name in ("facts", "usable", "old", "words", "spans")}
        self._kinds: dict[str, list[int]] = {kind.value: [0, 0] for kind in NeededFactKind}
        self._ages: dict[str, list[int]] = {name: [0, 0] for name in (*(name for _, name in AGES), "over 200")}

    def add(self, call: ReplayedCall, needs: Needs) -> None:
        usable = not call.would_fail
        missing = set(call.missing_facts)
        for place, fact in enumerate(needs.facts):
            found = place not in missing
            self._count(self._counts["facts"], found)
            self._count(self._counts["usable"], found and usable)
            self._count(self._kinds[fact.kind.value], found and usable)
            self._count(self._ages[age_of(fact)], found and usable)
            if fact.old:
                self._count(self._counts["old"], found and usable)
        self._count(self._counts["words"], needs.word_count - call.missing_words if usable else 0, needs.word_count)
        self._count(self._counts["spans"], needs.span_count - call.missing_spans if usable else 0, needs.span_count)

    @staticmethod
    def _count(counts: list[int], found: int, needed: int = 1) -> None:
        counts[0] += found
        counts[1] += needed

    def shares(self) -> dict[str, Any]:
        return {
            **{name: Share(*counts) for name, counts in self._counts.items()},
            "kinds": {name: Share(*counts) for name, counts in self._kinds.items() if counts[1]},
            "ages": {name: Share(*counts) for name, counts in self._ages.items() if counts[1]},
        }


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
