"""What a replay came to: every record, and the figures that answer which strategy to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any, Final

import attrs

from ..errors import InputError
from ..formats import resolve
from .intervals import Draws, Estimate, macro, micro
from .playing import ReplaySetting
from .records import ConversationRecord
from .scores import Score, Share, score_of

__all__ = ["MEASURES", "ReplayResult", "Summary"]

_SEND_ALL: Final = "none"

MEASURES: Final[Mapping[str, Callable[[Score, Score], Share]]] = {
    "cost": lambda score, whole: Share(score.dollars, whole.dollars),
    "facts": lambda score, _: score.facts,
    "usable": lambda score, _: score.usable,
    "old": lambda score, _: score.old,
    "words": lambda score, _: score.words,
    "spans": lambda score, _: score.spans,
    "constraints": lambda score, _: sum(score.survival.values(), Share()),
}
"""The figures with an interval: shares of a conversation's score, and of what sending everything came to there."""


@attrs.frozen(kw_only=True)
class Summary:
    """One contender over all conversations that exceed the window.

    Args:
        contender: Its name.
        score: The sums.
        macro: Each of `MEASURES` as the mean over conversations.
        micro: Each over all conversations as one, so that long ones count more.
        difference: Each of ``macro`` less the reference's.
        against: The reference.
    """

    contender: str
    score: Score
    macro: Mapping[str, Estimate]
    micro: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    against: str


@attrs.frozen(kw_only=True, eq=False, slots=False)
class ReplayResult:
    """All that a replay found out.

    Args:
        conversations: Each conversation with the runs of every contender, in the order given.
        contenders: Their names.
        setting: What held for all.
        unplayed: Conversations that could not be played, and why.
        seed: Of the intervals.
    """

    conversations: tuple[ConversationRecord, ...]
    contenders: tuple[str, ...]
    setting: ReplaySetting
    unplayed: tuple[str, ...] = ()
    seed: int = 0

    @cached_property
    def exceeding(self) -> tuple[ConversationRecord, ...]:
        """The conversations that exceed the window at some call: the figures are theirs."""
        return tuple([each for each in self.conversations if each.exceeds])

    @cached_property
    def short(self) -> tuple[ConversationRecord, ...]:
        """The conversations that never do: nothing to compact, and so not averaged in."""
        return tuple([each for each in self.conversations if not each.exceeds])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was wrong with logs, and what contenders raised, each with its conversation."""
        found = list(self.unplayed)
        for each in self.conversations:
            name = each.recording.id if not each.recording.where else f"{each.recording.where} ({each.recording.id})"
            found += [f"{name}: {note}" for note in each.recording.notes]
            found += [f"{name}: {run.contender} raised {failure}" for run in each.runs.values() for failure in run.failures]
        return tuple(found)

    # ---------------------------------------------------------------- figures

    def scores(self, contender: str, conversations: Sequence[ConversationRecord] | None = None) -> list[Score]:
        """The score of each conversation.

        Args:
            contender: A name of ``contenders``.
            conversations: Some of ``conversations``; by default those that exceed the window.

        Raises:
            InputError: If there is no such contender.
        """
        if contender not in self.contenders:
            raise InputError(f"contender {contender!r}: this replay had {', '.join(self.contenders)}; name one of them")
        chosen = self.exceeding if conversations is None else conversations
        prices, charge = self.setting.prices, self.setting.charge_summaries
        return [score_of(each, each.runs[contender], prices, charge_summaries=charge) for each in chosen]

    def shares(self, contender: str, measure: str) -> list[Share]:
        """One of `MEASURES` for each conversation that exceeds the window."""
        return [MEASURES[measure](score, whole) for score, whole in self._scored(contender)]

    def _scored(self, contender: str) -> list[tuple[Score, Score]]:
        known = self._known_scores
        for name in (contender, _SEND_ALL):
            if name not in known:
                known[name] = self.scores(name)
        return list(zip(known[contender], known[_SEND_ALL], strict=True))

    @cached_property
    def _known_scores(self) -> dict[str, list[Score]]:
        return {}

    @cached_property
    def _draws(self) -> Draws:
        return Draws(len(self.exceeding), Random(self.seed))

    @cached_property
    def cheapest_baseline(self) -> str | None:
        """The baseline that costs least, on average, of those whose requests would all be taken; ``None`` if there is none."""
        from .baselines import BASELINES

        played = [name for name in BASELINES if name in self.contenders]
        fit = [name for name in played if not Score.total(score for score, _ in self._scored(name)).would_fail]
        return min(fit, key=lambda name: macro(self.shares(name, "cost")) or 0.0, default=None)

    def summary(self, contender: str, *, against: str | None = None) -> Summary:
        """A contender's figures.

        Args:
            contender: A name of ``contenders``.
            against: The reference of the differences; by default the cheapest baseline that stays in the window, else ``none``.
        """
        reference = against or self.cheapest_baseline or _SEND_ALL
        own = {name: self.shares(contender, name) for name in MEASURES}
        others = {name: self.shares(reference, name) for name in MEASURES}
        return Summary(
            contender=contender,
            score=Score.total(score for score, _ in self._scored(contender)),
            micro={name: self._draws.estimate(own[name], micro) for name in MEASURES},
            macro={name: self._draws.estimate(own[name], macro) for name in MEASURES},
            difference={name: self._draws.difference(own[name], others[name], macro) for name in MEASURES},
            against=reference,
        )

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Every contender's figures, by name."""
        return {name: self.summary(name) for name in self.contenders}

    # ---------------------------------------------------------------- data

    def to_dict(self, *, calls: bool = False) -> dict[str, Any]:
        """The result as JSON-ready data.

        Args:
            calls: Whether to hold every call of every run; large.
        """
        setting = self.setting
        return {
            "window": setting.window,
            "model": attrs.asdict(setting.prices),
            "counter": setting.counter.name,
            "overhead_tokens": setting.overhead_tokens,
            "recent_messages": setting.recent,
            "charge_summaries": setting.charge_summaries,
            "seed": self.seed,
            "conversations": [self._conversation(each, calls) for each in self.conversations],
            "short": [each.recording.id for each in self.short],
            "notes": list(self.notes),
            "cheapest_baseline": self.cheapest_baseline,
            "contenders": {name: _summary_data(summary) for name, summary in self.summaries.items()},
        }

    def _conversation(self, each: ConversationRecord, calls: bool) -> dict[str, Any]:
        data: dict[str, Any] = {
            "id": each.recording.id,
            "where": each.recording.where,
            "format": resolve(each.recording.format).name,
            "messages": len(each.recording.messages),
            "calls": len(each.needs),
            "tokens": each.tokens,
            "exceeds": each.exceeds,
            "timed": each.timed,
            "notes": list(each.recording.notes),
            "scores": {name: _score_data(self.scores(name, [each])[0]) for name in self.contenders},
        }
        if calls:
            data["needs"] = [attrs.asdict(needs, value_serializer=_plain) for needs in each.needs]
            data["runs"] = {name: [attrs.asdict(call) for call in run.calls] for name, run in each.runs.items()}
        return data


def _plain(_: object, __: object, value: Any) -> Any:
    return getattr(value, "value", value)


def _score_data(score: Score) -> dict[str, Any]:
    data = attrs.asdict(score)
    data["survival"] = {str(times): share for times, share in data["survival"].items()}
    return data


def _summary_data(summary: Summary) -> dict[str, Any]:
    return {**attrs.asdict(summary), "score": _score_data(summary.score)}
