"""Recommendation of a strategy: the cheapest one that keeps enough, and those that cost more and keep more.

A baseline is never recommended: it is in a replay to compare with. With too few sessions nothing is recommended, because no
difference could be told from chance; the trade-off between cost and recall is shown instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import attrs

from ..errors import ConfigurationError
from ..presets import PRESETS
from .result import CandidateSummary, ReplayResult
from .scores import Score

MINIMUM_RECALL: Final = 0.8
"""The share of the needed facts that a recommended strategy keeps: one fact in five may be missing.

It is the first round figure above what dropping the oldest messages keeps of recorded sessions in a window of 8,000 tokens,
76 % (``docs/benchmarks.md``). A strategy that keeps less than that is not worth its trouble.
"""

MINIMUM_SESSIONS: Final = 6
"""Sessions needed for a recommendation. With five, all may differ in the same direction by chance (sign test, p = 0.06)."""


@attrs.frozen
class Recommendation:
    """The strategies recommended for the replayed conversations.

    Args:
        names: The recommended strategy, then those that cost more and keep more, in order of cost; empty if the replay does
            not support a recommendation.
        headline: The recommendation in one sentence, or the reason why there is none.
        reasons: The reasons for these and against the others, in sentences.
        lead: The strategy to start from: the recommended one or, if the replay supports no recommendation, the cheapest that
            keeps enough in these sessions; ``None`` if there is none.
        python: Lines of Python that use it.
        command: The command that uses it; empty for a strategy of your own, which no command knows.
        rule: The rule that was applied, in one sentence; empty if no conversation exceeds the window.
    """

    names: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...] = ()
    lead: str | None = None
    python: str = ""
    command: str = ""
    rule: str = ""


def recommend(result: ReplayResult, *, minimum_recall: float = MINIMUM_RECALL) -> Recommendation:
    """Return the cheapest strategy that keeps enough of the needed facts, and those that keep more.

    Only strategies whose requests would all be accepted and that keep ``minimum_recall`` are considered. From the cheapest
    up, a strategy is added if it keeps more than the last one added and the difference is not within chance: its 95 %
    interval, from a bootstrap of whole sessions with both on the same draws, lies above zero. It takes the place of the last
    one if the difference in cost is within chance.

    Args:
        result: The result of a replay.
        minimum_recall: Share of the needed facts, from 0 to 1.

    Raises:
        ConfigurationError: If ``minimum_recall`` is not from 0 to 1.
    """
    if not isinstance(minimum_recall, int | float) or not 0 <= minimum_recall <= 1:
        raise ConfigurationError(f"'minimum_recall' must be from 0 to 1 (got {minimum_recall!r})")
    if not result.exceeding:
        return _below_the_window(result)
    tried = [each for name, each in result.summaries.items() if name not in result.baselines]
    accepted = sorted((each for each in tried if not each.score.would_fail), key=lambda each: (_cost(each), -_recall(each)))
    enough = [each for each in accepted if _recall(each) >= minimum_recall]
    *others, last = result.baselines
    against = [
        *(_why_excluded(each.candidate, each.score) for each in tried if each.score.would_fail),
        f"{', '.join(others)} and {last} are baselines to compare with, and are never recommended.",
    ]
    if problem := _no_recommendation(result, tried, accepted, enough, minimum_recall):
        trade_off = tuple([f"{each.candidate}: {_figures(each)}." for each in accepted])
        lead = enough[0].candidate if enough else None
        headline, reasons = f"No recommendation: {problem}.", (*trade_off, *against)
        return Recommendation((), headline, reasons, lead, *_deployment(result, lead), _rule(minimum_recall))
    frontier, compared = _frontier(result, enough)
    lead = frontier[0].candidate
    cost, kept = f"{_cost(frontier[0]):.2f}", _percent(_recall(frontier[0]))
    headline = f"Use {lead}: it costs {cost} of sending everything and keeps {kept} of the needed facts."
    least = _percent(minimum_recall)
    too_little = [
        f"{each.candidate} keeps {_percent(_recall(each))} of the needed facts, less than the minimum of {least}."
        for each in accepted
        if each not in enough
    ]
    names = tuple([each.candidate for each in frontier])
    reasons = (*compared, *too_little, *against)
    return Recommendation(names, headline, reasons, lead, *_deployment(result, lead), _rule(minimum_recall))


def _rule(minimum_recall: float) -> str:
    return (
        "The rule: the cheapest strategy whose requests would all be accepted and that keeps at least"
        f" {_percent(minimum_recall)} of the needed facts; then each more expensive one that keeps more, if the difference is"
        " not chance."
    )


def _no_recommendation(
    result: ReplayResult,
    tried: Sequence[CandidateSummary],
    accepted: Sequence[CandidateSummary],
    enough: Sequence[CandidateSummary],
    minimum_recall: float,
) -> str:
    """Return why the replay does not support a recommendation; empty if it does."""
    if not tried:
        return "only baselines were replayed; add a strategy to compare"
    if not accepted:
        fewest = min(tried, key=lambda each: each.score.over + each.score.invalid)
        return f"every strategy has requests that would be refused; {fewest.candidate} has the fewest"
    if (count := len(result.exceeding)) < MINIMUM_SESSIONS:
        sessions = "1 session exceeds" if count == 1 else f"{count} sessions exceed"
        return f"only {sessions} the window, and at least {MINIMUM_SESSIONS} are needed to tell a difference from chance"
    if all(each.macro["usable"].value is None for each in accepted):
        return "no recorded answer needs a fact from earlier messages, so nothing shows what a strategy forgets"
    if not enough:
        most = max(accepted, key=_recall)
        least, best = _percent(minimum_recall), _percent(_recall(most))
        return f"no strategy whose requests all fit keeps {least} of the needed facts; {most.candidate} keeps the most, {best}"
    return ""


def _frontier(result: ReplayResult, candidates: Sequence[CandidateSummary]) -> tuple[list[CandidateSummary], list[str]]:
    """Return the candidates worth their cost, cheapest first, and a sentence about each of the others.

    Each candidate, from the cheapest on, is compared with the most expensive one that is worth its cost so far: it is worth
    its cost too, replaces that one, or is passed over.
    """
    frontier, why_kept, why_not = [candidates[0]], dict[str, str](), list[str]()
    for each in candidates[1:]:
        last, name = frontier[-1].candidate, each.candidate
        difference = result.summary(name, against=last).difference
        points = _points(each, frontier[-1])
        if (difference["usable"].value or 0.0) <= 0:
            why_not.append(f"{name} costs no less than {last} and keeps no more: {_figures(each)}.")
        elif not difference["usable"].excludes_zero:
            why_not.append(f"{name} costs no less than {last}, and its gain is within chance: {points}.")
        elif not difference["cost"].excludes_zero:
            frontier[-1] = each
            why_not.append(f"{last} keeps {points} less than {name}, and its lower cost is within chance.")
        else:
            frontier.append(each)
            why_kept[name] = f"{name} keeps {points} more than {last}: {_figures(each)}."
    return frontier, [*(why_kept[each.candidate] for each in frontier if each.candidate in why_kept), *why_not]


def _deployment(result: ReplayResult, name: str | None) -> tuple[str, str]:
    """Return the lines of Python and the command that use a candidate."""
    if name is None:
        return "", ""
    window, overhead = result.setting.window, result.setting.overhead_tokens
    serve = f"--window {window} --store gateway.db"
    if (file := result.files.get(name)) is not None:
        module, strategy = "config", f"config.load({str(file)!r}), window={window:_}"
        command = f"compaction serve --config {shlex.quote(str(file))} {serve}"
    elif name not in result.presets:
        module, strategy, command = "", f"strategy, window={window:_}", ""
    else:
        size = PRESETS[name].size
        module, strategy = "presets", f"presets.{name}({'' if size is None else f'{window:_}'})"
        once = f"compaction compact messages.json -o compacted.json --preset {name} --{size or 'window'} {window}"
        command = f"compaction serve --preset {name} {serve}" if size == "window" else once
    options = f", overhead_tokens={overhead:_}" if overhead else ""
    python = (
        f"from compaction import {', '.join(filter(None, ['CompactionSession', module]))}\n\n"
        f"session = CompactionSession({strategy}{options}){'' if module else f'  # strategy: {name}'}\n"
        "view = session.view_sync(messages)  # send this instead of messages"
    )
    return python, command


def _below_the_window(result: ReplayResult) -> Recommendation:
    count = len(result.short)
    if not count:
        return Recommendation((), "No recommendation: there are no conversations to compare strategies on.")
    whose = "The only conversation does not exceed" if count == 1 else f"None of the {count} conversations exceeds"
    lead = f"{whose} the window of {result.setting.window:,} tokens"
    totals = {name: Score.total(result.scores(name, result.short)) for name in result.candidates}
    whole = totals["none"]
    cheaper = [
        name
        for name, total in totals.items()
        if name not in result.baselines and total.dollars < whole.dollars and not total.would_fail
    ]
    if not cheaper:
        return Recommendation((), f"Do not compact. {lead}: not compacting is cheapest and loses nothing.")
    best = min(cheaper, key=lambda name: totals[name].dollars)
    usable, cost = totals[best].shares["usable"], totals[best].dollars / whole.dollars
    kept = f"{_percent(usable.value or 0.0)} of the needed facts" if usable.needed else "everything that was needed"
    reason = f"{best} would cost {cost:.2f} of what sending everything costs, and keep {kept}."
    return Recommendation((), f"Do not compact. {lead}: not compacting loses nothing.", (reason,))


def _cost(summary: CandidateSummary) -> float:
    return summary.macro["cost"].value or 0.0


def _recall(summary: CandidateSummary) -> float:
    return summary.macro["usable"].value or 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _points(more: CandidateSummary, less: CandidateSummary) -> str:
    """Return the difference in recall as a reader computes it from the percentages that are shown."""
    points = round(100 * _recall(more)) - round(100 * _recall(less))
    if points < 1:
        return "less than 1 point"
    return "1 point" if points == 1 else f"{points} points"


def _figures(summary: CandidateSummary) -> str:
    needed = summary.macro["usable"].value is not None
    kept = f"{_percent(_recall(summary))} of the needed facts" if needed else "and no fact was needed"
    return f"{_cost(summary):.2f} of the cost of sending everything, {kept}"


def _why_excluded(name: str, score: Score) -> str:
    parts = [
        f"{count:,} of {score.calls:,} requests {problem}"
        for count, problem in ((score.over, "exceed the window"), (score.invalid, "break a rule of their format"))
        if count
    ]
    if score.failures:
        parts.append(f"it raised an exception in {score.failures:,} conversation{'s' * (score.failures != 1)}")
    return f"{name} is excluded: {', and '.join(parts)}."
