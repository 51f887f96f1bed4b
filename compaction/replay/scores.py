"""Sums over the calls of conversations under one candidate, and their averages. Every metric is a ratio of two sums.

The intervals of averages come from a bootstrap: whole conversations are drawn with replacement, not calls, because the calls of
one conversation depend on each other. All figures of a replay use the same draws, so that two candidates are always compared on
the same conversations. Percentile bootstrap after Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), chapter 13.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

import attrs

from ..models import ModelPrices
from .facts import NeededFactKind
from .records import CandidateRun, ReplayedCall, ReplayedConversation, Share
from .transcript import NeededFact, Needs

AGES: Final = ((20, "up to 20"), (60, "21 to 60"), (200, "61 to 200"), (math.inf, "over 200"))
"""Classes of age: the most messages between a fact and its use, and the name."""


def age_of(fact: NeededFact) -> str:
    """Return the class of a fact's age."""
    return next(name for most, name in AGES if fact.age <= most)


SCORE_SHARES: Final = ("facts", "usable", "old", "words", "spans", "said", "sentences")
"""The shares of a score: how much of each there was, and how much of it the requests contain.

- ``"facts"``: the needed facts, in all requests. In the other shares, a request that would fail contains nothing.
- ``"usable"``: the needed facts.
- ``"old"``: those of them that cutting to the newest messages would have lost.
- ``"words"``: the needed rare words.
- ``"spans"``: the needed verbatim spans.
- ``"said"``: the different words of each message of the user before the call, in this message or in one that was written.
- ``"sentences"``: the sentences of these messages, word for word.
"""


def _no_shares() -> dict[str, Share]:
    return dict.fromkeys(SCORE_SHARES, Share())


@attrs.frozen(kw_only=True)
class Score:
    """Sums over calls; see ``docs/metrics.md``."""

    calls: int = 0  # number of calls
    tokens: int = 0  # tokens of all requests
    peak: int = 0  # tokens of the largest request
    over: int = 0  # requests that exceed the window
    hopeless: int = 0  # those of them whose system messages and last user message alone exceed it
    invalid: int = 0  # requests that break a rule of their format that the log itself does not break
    compactions: int = 0  # calls at which the strategy changed anything
    breaks: int = 0  # requests that did not continue the previous one
    lost_tokens: int = 0  # tokens of cached prefixes lost by these
    expired: int = 0  # requests whose cached prefix had expired
    seconds: float = 0.0  # CPU time of the strategy
    read: int = 0  # tokens read from the prompt cache
    written: int = 0  # tokens written to it
    fresh: int = 0  # tokens neither read nor written
    summary_read: int = 0  # tokens of the messages that summaries replace
    summary_written: int = 0  # tokens of the summaries
    prompt_dollars: float = 0.0  # cost of the requests
    summary_dollars: float = 0.0  # cost of the summaries, if they are charged for
    failures: int = 0  # conversations in which the candidate raised an exception
    # what the requests contain, of what they should contain, by the names in `SCORE_SHARES`
    shares: Mapping[str, Share] = attrs.field(factory=_no_shares)
    kinds: Mapping[str, Share] = attrs.field(factory=dict[str, Share])  # the share ``"usable"`` by kind of fact
    ages: Mapping[str, Share] = attrs.field(factory=dict[str, Share])  # the share ``"usable"`` by age
    causes: Mapping[str, int] = attrs.field(factory=dict[str, int])  # how often each cause broke the prefix
    # the user's instructions that are still verbatim, by number of compactions since they were stated
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
        sums: dict[str, Any] = {
            field.name: _sum([getattr(score, field.name) for score in every]) for field in attrs.fields(cls) if every
        }
        sums["peak"] = max((score.peak for score in every), default=0)
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
    """Return the score of one conversation under one candidate."""
    calls = run.calls
    actions = [action for call in calls for action in call.actions]
    uses = [call.cache for call in calls]
    read, written = sum(action.read_tokens for action in actions), sum(action.written_tokens for action in actions)
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
        expired=sum(use.expired for use in uses),
        seconds=sum(call.seconds for call in calls),
        read=sum(use.read for use in uses),
        written=sum(use.written for use in uses),
        fresh=sum(use.fresh for use in uses),
        summary_read=read,
        summary_written=written,
        prompt_dollars=sum(prices.dollars(read=use.read, written=use.written, fresh=use.fresh) for use in uses),
        summary_dollars=prices.dollars(fresh=read, output=written) if charge_summaries else 0.0,
        failures=int(bool(run.failures)),
        causes=Counter(call.broken.cause for call in calls if call.broken),
        survival=run.survival,
        **_shares_of(calls, conversation.needs),
    )


def _shares_of(calls: Sequence[ReplayedCall], needs_of_calls: Sequence[Needs]) -> dict[str, Mapping[str, Share]]:
    """Return the fields ``shares``, ``kinds`` and ``ages`` of a score."""
    shares = _no_shares()
    kinds = dict.fromkeys((kind.value for kind in NeededFactKind), Share())
    ages = dict.fromkeys((name for _, name in AGES), Share())
    for call, needs in zip(calls, needs_of_calls, strict=False):
        usable, missing = not call.would_fail, set(call.missing_facts)
        for name, share in call.shares.items():
            shares[name] += share if usable or name == "facts" else Share(0, share.needed)
        for place, fact in enumerate(needs.facts):
            kept = Share(usable and place not in missing, 1)
            shares["usable"] += kept
            kinds[fact.kind.value] += kept
            ages[age_of(fact)] += kept
            if fact.old:
                shares["old"] += kept
    return {
        "shares": shares,
        "kinds": {name: share for name, share in kinds.items() if share.needed},
        "ages": {name: share for name, share in ages.items() if share.needed},
    }


_DRAWS: Final = 1_000
_MOST_PLACES: Final = 2_000_000
_CONFIDENCE: Final = 0.95


@attrs.frozen
class IntervalEstimate:
    """A figure with its interval."""

    value: float | None  # the figure; ``None`` if nothing was counted
    low: float | None = None  # the lower end of its 95 % interval; ``None`` for fewer than two conversations
    high: float | None = None  # the upper end

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does not contain zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def macro_average(shares: Sequence[Share]) -> float | None:
    """Return the mean over conversations, each counting once; those that needed nothing are left out.

    >>> macro_average([Share(1, 2), Share(8, 8), Share()])
    0.75
    """
    values = [share.found / share.needed for share in shares if share.needed]
    return sum(values) / len(values) if values else None


class BootstrapDraws:
    """Conversations drawn with replacement. Holds the draws; the same seed gives the same ones."""

    def __init__(self, conversations: int, random: Random) -> None:
        places = range(conversations)
        draws = min(_DRAWS, _MOST_PLACES // max(1, conversations)) if conversations > 1 else 0
        self._draws = [random.choices(places, k=conversations) for _ in range(draws)]

    def estimate(self, shares: Sequence[Share], *, minus: Sequence[Share] | None = None) -> IntervalEstimate:
        """Return the macro average of the conversations' shares, with its interval; less that of others on the same draws."""

        def figure(places: Sequence[int]) -> float | None:
            one = macro_average([shares[at] for at in places])
            other = 0.0 if minus is None else macro_average([minus[at] for at in places])
            return None if one is None or other is None else one - other

        value = figure(range(len(shares)))
        known = sorted(each for draw in self._draws if (each := figure(draw)) is not None)
        if value is None or not known:
            return IntervalEstimate(value)
        tail = (1 - _CONFIDENCE) / 2
        low, high = math.floor(tail * (len(known) - 1)), math.ceil((1 - tail) * (len(known) - 1))
        return IntervalEstimate(value, known[low], known[high])
