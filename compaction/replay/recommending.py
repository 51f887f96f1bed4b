"""Which strategy to take: those that no other beats on cost and on recall, and why."""

from __future__ import annotations

import attrs

from .result import ReplayResult, Summary
from .scores import Score

__all__ = ["Recommendation", "recommend"]


@attrs.frozen
class Recommendation:
    """What to take for these conversations.

    Args:
        names: The contenders on the frontier of cost and recall, cheapest first.
        reasons: Why, and why not the others, in sentences.
    """

    names: tuple[str, ...]
    reasons: tuple[str, ...]


def recommend(result: ReplayResult) -> Recommendation:
    """The frontier of a replay: no other contender costs less and keeps as much, or costs as much and keeps more.

    Only contenders whose requests would all be taken are on it. The next one has to keep more than the one before by a
    difference that is unlikely to be chance: its 95 % interval lies above zero.
    """
    if not result.exceeding:
        return _below_the_window(result)
    summaries = result.summaries
    sound = [each for each in summaries.values() if not each.score.would_fail]
    reasons = [_why_unsound(each.contender, each.score) for each in summaries.values() if each.score.would_fail]
    if not sound:
        fewest = min(summaries.values(), key=lambda each: each.score.over + each.score.invalid)
        lead = f"No contender's requests would all be taken; {fewest.contender} has the fewest that would not."
        return Recommendation((), (lead, *reasons))
    frontier: list[Summary] = []
    told: list[str] = []
    for each in sorted(sound, key=lambda each: (_cost(each), -_recall(each))):
        if not frontier:
            frontier.append(each)
            told.append(f"{each.contender} is the cheapest: {_figures(each)}.")
            continue
        last = frontier[-1]
        gain = result.summary(each.contender, against=last.contender).difference["usable"]
        if gain.value is not None and gain.value > 0 and gain.excludes_zero:
            frontier.append(each)
            told.append(f"{each.contender} keeps {100 * gain.value:.0f} points more than {last.contender}: {_figures(each)}.")
        else:
            told.append(f"{each.contender} costs no less than {last.contender} and keeps no more that could not be chance.")
    return Recommendation(tuple([each.contender for each in frontier]), (*told, *reasons))


def _below_the_window(result: ReplayResult) -> Recommendation:
    count = len(result.short)
    if not count:
        return Recommendation((), ("There is no conversation to judge by.",))
    totals = {name: Score.total(result.scores(name, result.short)) for name in result.contenders}
    whole = totals["none"]
    cheaper = [name for name, total in totals.items() if total.dollars < whole.dollars and not total.would_fail]
    lead = f"None of the {count} conversations exceeds the window of {result.setting.window:,} tokens"
    if not cheaper:
        return Recommendation(("none",), (f"{lead}: not compacting is cheapest, and loses nothing.",))
    best = min(cheaper, key=lambda name: totals[name].dollars)
    usable, cost = totals[best].usable, totals[best].dollars / whole.dollars
    kept = f"{100 * (usable.value or 0.0):.0f} % of the facts needed" if usable.needed else "all that was needed"
    reasons = (f"{lead}: not compacting loses nothing.", f"{best} would cost {cost:.2f} of that and keep {kept}.")
    return Recommendation(("none", best), reasons)


def _cost(summary: Summary) -> float:
    return summary.macro["cost"].value or 0.0


def _recall(summary: Summary) -> float:
    return summary.macro["usable"].value or 0.0


def _figures(summary: Summary) -> str:
    return f"{_cost(summary):.2f} of what sending everything costs, {100 * _recall(summary):.0f} % of the facts needed"


def _why_unsound(name: str, score: Score) -> str:
    parts = [
        f"{count:,} of {score.calls:,} requests {what}"
        for count, what in ((score.over, "are over the window"), (score.invalid, "break a rule of their format"))
        if count
    ]
    if score.failures:
        parts.append(f"it raised in {score.failures} runs")
    return f"{name} is out: {', and '.join(parts)}."
