"""The tables of the sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ...tables import table
from .inventions import Digests
from .judging import Cuts
from .scores import Outcome
from .talks import TalkOutcome

_CONDITIONS: Final[dict[str, Callable[[Outcome], int | str]]] = {
    "tool calls": lambda each: each.case.calls,
    "results": lambda each: each.case.results,
    "window": lambda each: each.case.window,
    "the rules are in message": lambda each: each.case.position,
    "user messages": lambda each: each.case.turns,
    "the message": lambda each: "tells other things, too" if each.case.padded else "is as the form is",
}


def totals_table(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each subject."""
    heads = ("subject", "rules", "at the end", "tasks", "at the end", "all kept", "cuts", "without", "refused", "lost", "over")
    rows = [[name, *_totals(_of(outcomes, name))] for name in _subjects(outcomes)]
    return table([*heads, "ms"], rows)


def _totals(found: Sequence[Outcome]) -> list[str]:
    cuts = sum((each.cuts for each in found), Cuts())
    whole = [float(each.rules == each.tasks == 1) for each in found]
    requests = sum(each.requests for each in found)
    return [
        *(_mean(getattr(each, name) for each in found) for name in ("rules", "last_rules", "tasks", "last_tasks")),
        _mean(whole),
        *(f"{count:,}" for count in (cuts.cuts, cuts.without, cuts.refused)),
        f"{sum(each.lost for each in found):,}",
        f"{sum(each.over for each in found):,}",
        f"{1_000 * sum(each.seconds for each in found) / requests:.1f}",
    ]


def condition_table(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the shares of rules and tasks by subject, with a row for each condition."""
    rows: list[list[str]] = []
    for name, condition in _CONDITIONS.items():
        for value in sorted({condition(each) for each in outcomes}, key=lambda value: (isinstance(value, str), value)):
            chosen = [each for each in outcomes if condition(each) == value]
            shown = f"{value:,}" if isinstance(value, int) else str(value)
            rows.append([f"{name}: {shown}", *_row(chosen, outcomes, tasks=True)])
    return table(["condition", *_subjects(outcomes)], rows)


def share_table(head: str, outcomes: Sequence[Outcome], value: Callable[[Outcome], str]) -> tuple[str, ...]:
    """Return the share of rules by subject, with a row for each value, worst first."""
    rows = {
        name: [each for each in outcomes if value(each) == name] for name in dict.fromkeys(value(each) for each in outcomes)
    }
    worst = sorted(rows, key=lambda name: sum(each.rules for each in rows[name]) / len(rows[name]))
    return table([head, *_subjects(outcomes)], ([name, *_row(rows[name], outcomes)] for name in worst))


def talks_table(found: Sequence[TalkOutcome]) -> tuple[str, ...]:
    """Return the shares of the evidence, with a row for each subject and a column for each kind."""
    kinds = list(dict.fromkeys(each.kind for each in found))
    rows: list[list[str]] = []
    for name in dict.fromkeys(each.subject for each in found):
        of_it = [
            [each for each in found if each.subject == name and each.kind in chosen]
            for chosen in (*((kind,) for kind in kinds), kinds)
        ]
        rows.append([name, *(f"{_mean(e.whole for e in each)} ({_mean(e.words for e in each)})" for each in of_it)])
    return table(["subject", *kinds, "all"], rows)


def inventions_table(counted: Mapping[str, Digests]) -> tuple[str, ...]:
    """Return the counts of lines, with a row for each source of digests."""
    rows = {name: each for name, each in counted.items() if each.digests}
    rows["all"] = sum(rows.values(), Digests())
    figures = ([name, f"{each.digests:,}", f"{each.lines:,}", f"{each.invented:,}"] for name, each in rows.items())
    return table(["digests of", "digests", "lines", "not in the sources"], figures)


def _row(chosen: Sequence[Outcome], outcomes: Sequence[Outcome], *, tasks: bool = False) -> list[str]:
    cells: list[str] = []
    for name in _subjects(outcomes):
        of_it = _of(chosen, name)
        cell = _mean(each.rules for each in of_it)
        cells.append(f"{cell} ({_mean(each.tasks for each in of_it)})" if tasks else cell)
    return cells


def _subjects(outcomes: Iterable[Outcome]) -> list[str]:
    return list(dict.fromkeys(each.subject for each in outcomes))


def _of(outcomes: Iterable[Outcome], subject: str) -> list[Outcome]:
    return [each for each in outcomes if each.subject == subject]


def _mean(shares: Iterable[float]) -> str:
    """Return the mean in %, rounded down, so that 100 means all.

    >>> _mean([1.0, 0.999]), _mean([])
    ('99', '-')
    """
    values = list(shares)
    return f"{int(100 * sum(values) / len(values) + 1e-9)}" if values else "-"
