"""The result of a replay: every record, and the figures that compare the candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs

from ..errors import InputError
from ..formats import resolve
from ..models import unpriced
from .baselines import BASELINES
from .records import ReplayedConversation, ReplaySetting, Share
from .scores import SCORE_SHARES, BootstrapDraws, IntervalEstimate, Score, macro_average, score_of
from .transcript import RECENT_MESSAGES

_SEND_ALL: Final = "none"

MEASURES: Final = ("cost", *SCORE_SHARES, "constraints")
"""The figures with an interval. ``"cost"`` is a share of the cost of sending everything; ``"constraints"`` is ``survival``,
added up over all numbers of compactions."""


@attrs.frozen(kw_only=True)
class CandidateSummary:
    """The figures of one candidate over all conversations that exceed the window.

    Args:
        candidate: Its name.
        score: The sums.
        macro: Each of `MEASURES`, as the mean over conversations.
        difference: Each of ``macro`` minus the reference's.
        against: The reference.
    """

    candidate: str
    score: Score
    macro: Mapping[str, IntervalEstimate]
    difference: Mapping[str, IntervalEstimate]
    against: str


@attrs.frozen(kw_only=True, eq=False, slots=False)
class ReplayResult:
    """The records and figures of a replay.

    Args:
        conversations: Each conversation with the runs of every candidate, in the order given.
        candidates: The candidates' names.
        setting: The settings of the replay.
        baselines: Those of the candidates that are only compared with, and never recommended.
        presets: Those of the candidates that are presets.
        files: The files of those that were read from a pipeline file.
        skipped: Conversations that could not be replayed, and why.
    """

    conversations: tuple[ReplayedConversation, ...]
    candidates: tuple[str, ...]
    setting: ReplaySetting
    baselines: tuple[str, ...]
    presets: tuple[str, ...] = ()
    files: Mapping[str, Path] = attrs.Factory(dict[str, Path])
    skipped: tuple[str, ...] = ()

    @cached_property
    def exceeding(self) -> tuple[ReplayedConversation, ...]:
        """The conversations that exceed the window at some call; the figures are over these."""
        return tuple([each for each in self.conversations if each.exceeds])

    @cached_property
    def short(self) -> tuple[ReplayedConversation, ...]:
        """The conversations that never exceed it: they need no compaction and are not in the averages."""
        return tuple([each for each in self.conversations if not each.exceeds])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Problems of the logs and exceptions of the candidates, each with its conversation."""
        found = list(self.skipped)
        for each in self.conversations:
            name = each.recording.id if not each.recording.where else f"{each.recording.where} ({each.recording.id})"
            found += [f"{name}: {note}" for note in each.recording.notes]
            found += [f"{name}: {run.candidate} raised {failure}" for run in each.runs.values() for failure in run.failures]
        return tuple(found)

    # ---------------------------------------------------------------- figures

    def scores(self, candidate: str, conversations: Sequence[ReplayedConversation] | None = None) -> list[Score]:
        """Return the score of each conversation.

        Args:
            candidate: A name from ``candidates``.
            conversations: The conversations; by default those that exceed the window.

        Raises:
            InputError: If the candidate is unknown.
        """
        if candidate not in self.candidates:
            raise InputError(f"candidate {candidate!r} is unknown; this replay has {', '.join(self.candidates)}")
        chosen = self.exceeding if conversations is None else conversations
        prices, charge = self.setting.prices, self.setting.charge_summaries
        return [score_of(each, each.runs[candidate], prices, charge_summaries=charge) for each in chosen]

    def shares(self, candidate: str, measure: str) -> list[Share]:
        """Return one of `MEASURES` for each conversation that exceeds the window."""
        scores = self._exceeding_scores[candidate]
        if measure == "cost":
            everything = self._exceeding_scores[_SEND_ALL]
            return [Share(score.dollars, whole.dollars) for score, whole in zip(scores, everything, strict=True)]
        if measure == "constraints":
            return [sum(score.survival.values(), Share()) for score in scores]
        return [score.shares[measure] for score in scores]

    def dollars_per_call(self, candidate: str) -> float | None:
        """Return the mean cost of a call's request and summaries, over all conversations; ``None`` without prices or calls.

        Raises:
            InputError: If the candidate is unknown.
        """
        total = Score.total(self.scores(candidate, self.conversations))
        prices = self.setting.prices
        return None if not total.calls or prices == unpriced(prices.model) else total.dollars / total.calls

    @cached_property
    def _exceeding_scores(self) -> dict[str, list[Score]]:
        return {name: self.scores(name) for name in self.candidates}

    @cached_property
    def _draws(self) -> BootstrapDraws:
        return BootstrapDraws(len(self.exceeding), Random(0))

    @cached_property
    def cheapest_baseline(self) -> str | None:
        """The cheapest baseline, on average, of those whose requests would all be accepted; ``None`` if there is none."""
        present = [name for name in BASELINES if name in self.candidates]
        fit = [name for name in present if not Score.total(self._exceeding_scores[name]).would_fail]
        return min(fit, key=lambda name: macro_average(self.shares(name, "cost")) or 0.0, default=None)

    def summary(self, candidate: str, *, against: str | None = None) -> CandidateSummary:
        """Return a candidate's figures.

        Args:
            candidate: A name from ``candidates``.
            against: The reference of the differences; by default the cheapest baseline in the window, else ``"none"``.
        """
        reference = against or self.cheapest_baseline or _SEND_ALL
        own = {name: self.shares(candidate, name) for name in MEASURES}
        others = {name: self.shares(reference, name) for name in MEASURES}
        return CandidateSummary(
            candidate=candidate,
            score=Score.total(self._exceeding_scores[candidate]),
            macro={name: self._draws.estimate(own[name]) for name in MEASURES},
            difference={name: self._draws.estimate(own[name], minus=others[name]) for name in MEASURES},
            against=reference,
        )

    @cached_property
    def summaries(self) -> dict[str, CandidateSummary]:
        """The figures of every candidate, by name."""
        return {name: self.summary(name) for name in self.candidates}

    # ---------------------------------------------------------------- data

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready data; single calls are only in the report."""
        setting = self.setting
        return {
            "window": setting.window,
            "model": attrs.asdict(setting.prices),
            "counter": setting.counter.name,
            "overhead_tokens": setting.overhead_tokens,
            "recent_messages": RECENT_MESSAGES,
            "charge_summaries": setting.charge_summaries,
            "conversations": [self._conversation(each) for each in self.conversations],
            "short": [each.recording.id for each in self.short],
            "notes": list(self.notes),
            "cheapest_baseline": self.cheapest_baseline,
            "candidates": {
                name: {**attrs.asdict(summary), "score": _score_data(summary.score)} for name, summary in self.summaries.items()
            },
        }

    def _conversation(self, each: ReplayedConversation) -> dict[str, Any]:
        return {
            "id": each.recording.id,
            "where": each.recording.where,
            "format": resolve(each.recording.format).name,
            "messages": len(each.recording.messages),
            "calls": len(each.needs),
            "tokens": each.tokens,
            "exceeds": each.exceeds,
            "notes": list(each.recording.notes),
            "scores": {name: _score_data(self.scores(name, [each])[0]) for name in self.candidates},
        }


def _score_data(score: Score) -> dict[str, Any]:
    data = attrs.asdict(score)
    data |= data.pop("shares")
    data["survival"] = {str(times): share for times, share in data["survival"].items()}
    return data
