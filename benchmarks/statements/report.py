"""The report: precision, recall and average precision by kind and language, and the worst confusions with sentences."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from compaction.summarizers.extractive.classifier import KINDS, PER_MILLE, Classifier

from .examples import FOLDER, KEPT, RULES, Example

_CONFUSIONS: Final = 12
_SENTENCES: Final = 3


def average_precision(scores: Sequence[float], truths: Sequence[bool]) -> float:
    """Return the mean of the precision at each true item, from the highest score down; equal scores share one precision.

    >>> average_precision([0.9, 0.8, 0.1], [True, False, True])
    0.8333333333333333
    """
    found = seen = 0
    total = 0.0
    by_score = Counter(scores)
    true_by_score = Counter(score for score, truth in zip(scores, truths, strict=True) if truth)
    for score in sorted(by_score, reverse=True):
        seen += by_score[score]
        found += true_by_score[score]
        total += true_by_score[score] * found / seen
    return total / found if found else 0.0


def area_under_curve(scores: Sequence[float], truths: Sequence[bool]) -> float:
    """Return the probability that a true item has a higher score than a false one; equal scores count half.

    >>> area_under_curve([0.9, 0.8, 0.1], [True, False, True])
    0.5
    """
    true = [score for score, truth in zip(scores, truths, strict=True) if truth]
    false = [score for score, truth in zip(scores, truths, strict=True) if not truth]
    wins = sum((one > other) + (one == other) / 2 for one in true for other in false)
    return wins / (len(true) * len(false))


def report(model: Classifier, judging: Sequence[Example], unseen: Sequence[Example]) -> str:
    """Return the report as Markdown.

    Args:
        model: The model.
        judging: Sentences in languages with and without examples.
        unseen: More sentences, mostly in languages without examples.
    """
    start = time.process_time()
    found = [model.probabilities(each.text) for each in judging]
    seconds = time.process_time() - start
    best = [max(shares, key=shares.__getitem__) for shares in found]
    languages = sorted({each.language for each in judging})
    cost = seconds / sum(len(each.text) for each in judging) * 80 * 1e6
    parts = [
        f"{len(judging):,} sentences in {len(languages)} languages, {cost:.0f} us for 80 characters.",
        _by_language(judging, found),
        f"{len(unseen):,} more sentences, mostly in languages without examples.",
        _by_language(unseen, [model.probabilities(each.text) for each in unseen]),
        _by_kind(judging, found, best),
        _confusions(judging, best),
    ]
    return "\n\n".join(parts)


def _share(found: Sequence[Mapping[str, int]], kinds: Sequence[str]) -> list[float]:
    return [sum(shares[kind] for kind in kinds) / PER_MILLE for shares in found]


def _by_language(judging: Sequence[Example], found: Sequence[Mapping[str, int]]) -> str:
    rows = ["| language | rules and prohibitions: average precision | worth keeping: area under the curve |", "|---|--:|--:|"]
    learned = {"all", *(path.name for path in (FOLDER / "examples").iterdir())}
    for language in [*sorted({each.language for each in judging}), "all"]:
        here = [place for place, each in enumerate(judging) if language in (each.language, "all")]
        some = [found[place] for place in here]
        values: list[str] = []
        for kinds, measure in ((RULES, average_precision), (KEPT, area_under_curve)):
            measured: Callable[[Sequence[float], Sequence[bool]], float] = measure
            values.append(f"{measured(_share(some, kinds), [judging[place].kind in kinds for place in here]):.2f}")
        name = language if language in learned else f"{language}, without examples"
        rows.append(f"| {name} | {' | '.join(values)} |")
    return "\n".join(rows)


def _by_kind(judging: Sequence[Example], found: Sequence[Mapping[str, int]], best: Sequence[str]) -> str:
    rows = ["| kind | precision | recall | average precision |", "|---|--:|--:|--:|"]
    for kind in KINDS:
        truths = [each.kind == kind for each in judging]
        right = sum(guess == kind and truth for guess, truth in zip(best, truths, strict=True))
        precision, recall = right / max(1, best.count(kind)), right / max(1, sum(truths))
        rows.append(f"| {kind} | {precision:.2f} | {recall:.2f} | {average_precision(_share(found, [kind]), truths):.2f} |")
    return "\n".join(rows)


def _confusions(judging: Sequence[Example], best: Sequence[str]) -> str:
    wrong = Counter((each.kind, guess) for each, guess in zip(judging, best, strict=True) if each.kind != guess)
    lines = ["The kinds that are taken for others most often:", ""]
    for (kind, guess), count in wrong.most_common(_CONFUSIONS):
        lines.append(f"- {kind} taken for {guess}, {count} times:")
        some = [each for each, other in zip(judging, best, strict=True) if (each.kind, other) == (kind, guess)]
        lines += [f"  - ({each.language}) {each.text}" for each in some[:_SENTENCES]]
    return "\n".join(lines)
