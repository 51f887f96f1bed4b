"""The tables of a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...tables import table
from .conversations import KINDS, Conversation
from .scores import ItemScore, Outcome
from .subjects import PLAIN_RULES

_SPEAKERS = {"user": "a person", "assistant": "the assistant", "tool": "a tool"}


def totals_table(found: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each subject with each window."""
    heads = ("subject", "window", "in every request", "at the end", "all kept", "revoked", "of others", "sent", "over", "ms")
    runs = {(each.subject, each.share): list[Outcome]() for each in sorted(found, key=lambda each: each.share)}
    for each in found:
        runs[each.subject, each.share].append(each)
    return table(heads, ([name, f"{share:.0%}", *_totals(run)] for (name, share), run in runs.items()))


def _totals(found: Sequence[Outcome]) -> list[str]:
    scores = [score for each in found for score in each.scores]
    ends = [score.at_end for score in scores if score.at_end is not None]
    revoked = sum(score.item.revoked_by is not None for score in scores)
    foreign = sum(len(each.conversation.foreign) for each in found)
    requests = sum(each.requests for each in found)
    return [
        _mean(not score.missing for score in scores),
        _mean(ends),
        f"{sum(all(not score.missing for score in each.scores) for each in found)}",
        f"{sum(len(each.stale) for each in found)} of {revoked}",
        f"{sum(len(each.claimed) for each in found)} of {foreign}",
        _mean(each.sent for each in found),
        f"{sum(each.over for each in found)}",
        f"{1_000 * sum(each.seconds for each in found) / requests:.1f}",
    ]


def kind_table(found: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each kind of item."""
    return _item_table("kind", found, lambda _, score: score.item.kind, KINDS)


def speaker_table(found: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each role that said an item."""
    return _item_table("said by", found, lambda said, score: _SPEAKERS[said.said_by(score.item)], tuple(_SPEAKERS.values()))


def language_table(found: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each language."""
    return _item_table(
        "language", found, lambda said, _: said.language, tuple(sorted({each.conversation.language for each in found}))
    )


def _item_table(
    head: str, found: Sequence[Outcome], value: Callable[[Conversation, ItemScore], str], values: Sequence[str]
) -> tuple[str, ...]:
    rows: list[list[str]] = []
    for one in values:
        by_subject = [_chosen(_of(found, name), value, one) for name in _subjects(found)]
        items = len(by_subject[0]) // len({each.share for each in found})
        rows.append([one, str(items), *map(_both, by_subject)])
    return table([head, "items", *_subjects(found)], [row for row in rows if row[1] != "0"])


def _chosen(
    found: Iterable[Outcome], value: Callable[[Conversation, ItemScore], str], one: str
) -> list[tuple[float, ItemScore]]:
    """Return the items of a value, each with the window."""
    return [(each.share, score) for each in found for score in each.scores if value(each.conversation, score) == one]


def conversation_table(found: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each conversation, worst first."""
    talks = {each.conversation.name: [one for one in found if one.conversation is each.conversation] for each in found}
    rows: list[tuple[float, list[str]]] = []
    for name, each in talks.items():
        said = each[0].conversation
        kept = [float(not score.missing) for one in each if one.subject not in PLAIN_RULES for score in one.scores]
        cells = [
            _both([(one.share, score) for one in _of(each, subject) for score in one.scores]) for subject in _subjects(found)
        ]
        title = f"`{name}`, {said.kind}, {said.language}"
        rows.append((sum(kept) / max(1, len(kept)), [title, str(len(said.messages)), str(len(said.items)), *cells]))
    return table(["conversation", "messages", "items", *_subjects(found)], [row for _, row in sorted(rows)])


def losses(found: Iterable[Outcome]) -> Iterator[str]:
    """Yield a line for each item that was missing, and for each that stands although it must not."""
    for each in found:
        where = f"{each.subject} {each.share:.0%} {each.conversation.name}"
        for score in each.scores:
            if score.missing:
                item, end = score.item, ", and at the end" if score.at_end is False else ""
                since = f"when {score.missing[0]} messages were said"
                yield f"{where}: message {item.at}, {item.kind}: {item.text!r} is missing {since}{end}"
        for item in each.stale:
            yield f"{where}: message {item.at}, {item.kind}: {item.text!r} stands without its revocation"
        for item in each.claimed:
            yield f"{where}: message {item.at}: {item.text!r} stands without its source"


def _both(scores: Sequence[tuple[float, ItemScore]]) -> str:
    """Return the share of items in every request, with the smallest window, and in brackets with the largest."""
    shares = sorted({share for share, _ in scores})
    means = [_mean(not score.missing for at, score in scores if at == share) for share in shares]
    return " ".join([*means[:1], *(f"({mean})" for mean in means[1:][-1:])])


def _subjects(found: Iterable[Outcome]) -> list[str]:
    return list(dict.fromkeys(each.subject for each in found))


def _of(found: Iterable[Outcome], subject: str) -> list[Outcome]:
    return [each for each in found if each.subject == subject]


def _mean(shares: Iterable[float]) -> str:
    """Return the mean in %, rounded down, so that 100 means all.

    >>> _mean([True, 0.999]), _mean([])
    ('99', '-')
    """
    values = list(shares)
    return f"{int(100 * sum(values) / len(values) + 1e-9)}" if values else "-"
