"""Sums over calls: what one conversation, or many, came to under one contender. Every metric is a quotient of two of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from .atoms import AtomKind
from .prices import ModelPrices
from .records import CallRecord, ConversationRecord, Run
from .transcript import Fact, Needs

__all__ = ["AGES", "Score", "Share", "age_of", "score_of"]

AGES: Final = ((20, "up to 20"), (60, "21 to 60"), (200, "61 to 200"))
"""Messages between a fact and its use, in classes; what is older is ``"over 200"``."""


def age_of(fact: Fact) -> str:
    """The class of a fact's age."""
    return next((name for most, name in AGES if fact.age <= most), "over 200")


@attrs.frozen
class Share:
    """So many of so many.

    >>> (Share(1, 2) + Share(2, 2)).value
    0.75
    """

    found: float = 0
    needed: float = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.found + other.found, self.needed + other.needed)

    @property
    def value(self) -> float | None:
        """The share; ``None`` of nothing."""
        return self.found / self.needed if self.needed else None


@attrs.frozen(kw_only=True)
class Score:
    """Sums over calls; see ``docs/metrics.md``.

    Args:
        calls: How many.
        tokens: Sent in all.
        peak: Most in one request.
        over: Requests over the window.
        hopeless: Those of them whose system messages and last user message alone are.
        invalid: Requests that break a rule of their format which the log itself does not.
        compactions: Calls at which anything was changed.
        breaks: Requests that departed from the one before.
        lost_tokens: Tokens of cached prefixes these gave up.
        expired: Requests whose prefix was lost to time.
        seconds: CPU time of the strategy.
        read: Tokens read from the prompt cache.
        written: Tokens written to it.
        fresh: Tokens that were neither.
        summary_read: Tokens that summaries stand for.
        summary_written: Tokens of summaries.
        prompt_dollars: The requests.
        summary_dollars: The summaries, if they are charged for.
        output_dollars: The answers, which are the same for all.
        failures: Times the contender raised.
        facts: Needed facts that could be read in the request.
        usable: The same, in a request that would not fail.
        old: The same, of facts that cutting to the newest messages would have lost.
        words: The same as ``usable`` of rare words.
        spans: Of verbatim spans.
        kinds: ``usable`` by kind of fact.
        ages: ``usable`` by age.
        causes: What broke the prefix, how often.
        survival: Of the user's instructions, those still verbatim, by compactions gone through.
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
        """What compaction can change of the bill: requests and summaries."""
        return self.prompt_dollars + self.summary_dollars

    @property
    def would_fail(self) -> bool:
        """Whether any request is over the window without need or breaks a rule, or the contender raised."""
        return self.over > self.hopeless or bool(self.invalid or self.failures)

    @classmethod
    def total(cls, scores: Iterable[Score]) -> Score:
        """The sum of scores; of ``peak`` the largest."""
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


def score_of(conversation: ConversationRecord, run: Run, prices: ModelPrices, *, charge_summaries: bool = False) -> Score:
    """What one conversation came to under one contender.

    Args:
        conversation: What its actions needed.
        run: How the contender did.
        prices: The model's.
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
    """Counts what was needed and what of it was there. Holds state."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {name: [0, 0] for name in ("facts", "usable", "old", "words", "spans")}
        self._kinds: dict[str, list[int]] = {kind.value: [0, 0] for kind in AtomKind}
        self._ages: dict[str, list[int]] = {name: [0, 0] for name in (*(name for _, name in AGES), "over 200")}

    def add(self, call: CallRecord, needs: Needs) -> None:
        usable = not call.would_fail
        missing = set(call.missing_facts)
        for place, fact in enumerate(needs.facts):
            there = place not in missing
            self._count(self._counts["facts"], there)
            self._count(self._counts["usable"], there and usable)
            self._count(self._kinds[fact.kind.value], there and usable)
            self._count(self._ages[age_of(fact)], there and usable)
            if fact.old:
                self._count(self._counts["old"], there and usable)
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
