"""The figures of sessions under subjects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from compaction.tokens import TokenCounter

from .judging import Cuts, Finder, lost_messages, text_of
from .sessions import Case, Session, build
from .subjects import Subject


@attrs.frozen(kw_only=True)
class Outcome:
    """One session under one subject. Shares are of what was said until then.

    Args:
        subject: The subject.
        case: The session's conditions.
        rules: The lowest share of rules that a request has whole.
        tasks: The same of tasks.
        last_rules: The share in the last request.
        last_tasks: The same of tasks.
        cuts: The cuts.
        lost: The user's messages that were, at some request, neither sent nor replaced by a summary that is sent.
        over: Requests over the window.
        requests: Number of requests.
        seconds: CPU time.
    """

    subject: str
    case: Case
    rules: float
    tasks: float
    last_rules: float
    last_tasks: float
    cuts: Cuts
    lost: int
    over: int
    requests: int
    seconds: float


def outcomes(cases: Iterable[Case], subjects: Mapping[str, Subject], counter: TokenCounter, seed: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of each session under each subject."""
    for case in cases:
        session = build(case, seed)
        said = [text_of(each) for each in session.messages if each["role"] == "user"]
        finder = Finder([*(text for text, _ in (*session.rules, *session.tasks)), *said])
        for name, subject in subjects.items():
            yield _outcome(name, subject, session, counter, finder)


def _outcome(name: str, subject: Subject, session: Session, counter: TokenCounter, finder: Finder) -> Outcome:
    shares: list[tuple[float, float]] = []
    cuts, seen, lost, over = Cuts(), None, 0, 0
    start, judging = time.process_time(), 0.0
    for sent in subject(session, counter):
        began = time.process_time()
        found = finder.found(sent.view)
        shares.append((_share(session.rules, found, sent.messages), _share(session.tasks, found, sent.messages)))
        if sent.result is not seen:
            cuts, seen = cuts + Cuts.of(sent.result), sent.result
        lost = max(lost, lost_messages(sent.index, found, session.messages[: sent.messages]))
        over += sent.index.tokens > session.case.window
        judging += time.process_time() - began
    return Outcome(
        subject=name,
        case=session.case,
        rules=min(rules for rules, _ in shares),
        tasks=min(tasks for _, tasks in shares),
        last_rules=shares[-1][0],
        last_tasks=shares[-1][1],
        cuts=cuts,
        lost=lost,
        over=over,
        requests=len(shares),
        seconds=time.process_time() - start - judging,
    )


def _share(statements: Sequence[tuple[str, int]], found: frozenset[str], messages: int) -> float:
    said = [text for text, ordinal in statements if ordinal < messages]
    return sum(text in found for text in said) / len(said)
