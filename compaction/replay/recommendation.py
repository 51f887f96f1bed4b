"""Recommendation of a strategy: the candidates that no other beats on both cost and recall, with the reasons."""

from __future__ import annotations

import attrs

from .result import CandidateSummary, ReplayResult
from .scores import Score


@attrs.frozen
class Recommendation:
    """The candidates recommended for the replayed conversations.

    Args:
        names: The candidates on the frontier of cost and recall, cheapest first.
        reasons: The reasons for these and against the others, in sentences.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]


def recommend(result: ReplayResult) -> Recommendation:
    """Return the candidates that no other candidate beats on both cost and recall.

    Only candidates whose requests would all be accepted are considered. From the cheapest up, a candidate is added if it
    keeps more than the last one added and the difference is not within chance: its 95 % interval lies above zero.
    """
    if not result.exceeding:
        return _below_the_window(result)
    summaries = result.summaries
    accepted = [each for each in summaries.values() if not each.score.would_fail]
    excluded = [_why_excluded(each.candidate, each.score) for each in summaries.values() if each.score.would_fail]
    if not accepted:
        fewest = min(summaries.values(), key=lambda each: each.score.over + each.score.invalid)
        lead = f"Every candidate has requests that would be refused; {fewest.candidate} has the fewest."
        return Recommendation((), (lead, *excluded))
    frontier: list[CandidateSummary] = []
    frontier_reasons: list[str] = []
    for each in sorted(accepted, key=lambda each: (_cost(each), -_recall(each))):
        if not frontier:
            frontier.append(each)
            frontier_reasons.append(f"{each.candidate} is the cheapest: {_figures(each)}.")
            continue
        last = frontier[-1]
        gain = result.summary(each.candidate, against=last.candidate).difference["usable"]
        if gain.value is not None and gain.value > 0 and gain.excludes_zero:
            frontier.append(each)
            more = f"{100 * gain.value:.0f} points more than {last.candidate}"
            frontier_reasons.append(f"{each.candidate} keeps {more}: {_figures(each)}.")
        else:
            frontier_reasons.append(f"{each.candidate} costs no less than {last.candidate}, and any gain is within chance.")
    return Recommendation(tuple([each.candidate for each in frontier]), (*frontier_reasons, *excluded))


def _below_the_window(result: ReplayResult) -> Recommendation:
    count = len(result.short)
    if not count:
        return Recommendation((), ("There are no conversations to compare candidates on.",))
    totals = {name: Score.total(result.scores(name, result.short)) for name in result.candidates}
    whole = totals["none"]
    cheaper = [name for name, total in totals.items() if total.dollars < whole.dollars and not total.would_fail]
    lead = f"None of the {count} conversations exceeds the window of {result.setting.window:,} tokens"
    if not cheaper:
        return Recommendation(("none",), (f"{lead}: not compacting is cheapest and loses nothing.",))
    best = min(cheaper, key=lambda name: totals[name].dollars)
    usable, cost = totals[best].usable, totals[best].dollars / whole.dollars
    kept = f"{100 * (usable.value or 0.0):.0f} % of the needed facts" if usable.needed else "everything that was needed"
    reasons = (f"{lead}: not compacting loses nothing.", f"{best} would cost {cost:.2f} of that and keep {kept}.")
    return Recommendation(("none", best), reasons)


def _cost(summary: CandidateSummary) -> float:
    return summary.macro["cost"].value or 0.0


def _recall(summary: CandidateSummary) -> float:
    return summary.macro["usable"].value or 0.0


def _figures(summary: CandidateSummary) -> str:
    return f"{_cost(summary):.2f} of the cost of sending everything, {100 * _recall(summary):.0f} % of the needed facts"


def _why_excluded(name: str, score: Score) -> str:
    parts = [
        f"{count:,} of {score.calls:,} requests {problem}"
        for count, problem in ((score.over, "exceed the window"), (score.invalid, "break a rule of their format"))
        if count
    ]
    if score.failures:
        parts.append(f"it raised an exception in {score.failures} runs")
    return f"{name} is excluded: {', and '.join(parts)}."
