"""Runs subjects on conversations, and puts what was found into tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from compaction import MessageIndex
from compaction.tokens import TokenCounter

from ..tables import table
from .judging import Verdict, judge
from .planted import Conversation
from .subjects import Subject
from .wording import DISTRACTORS, ITEMS

_FIXED: Final = 0.5
_TOTALS: Final = (
    "subject",
    "budget",
    "survives",
    "meaning",
    "both",
    "stale",
    "false rules",
    "false values",
    "room used",
    "over",
)


@attrs.frozen
class Outcome:
    """The result of a subject for one conversation.

    Args:
        subject: Its name.
        budget: The budget, as a share of the conversation's tokens.
        conversation: The conversation.
        verdicts: The verdict on everything that was planted.
        room: Tokens that are sent, as a share of the budget.
    """

    subject: str
    budget: float
    conversation: Conversation
    verdicts: tuple[Verdict, ...]
    room: float


def measured(
    conversations: Sequence[Conversation], subjects: Mapping[str, Subject], budgets: Sequence[float], counter: TokenCounter
) -> list[Outcome]:
    """Return what each subject makes of each conversation at each budget.

    A budget of which the system message and the last message take more than half is left out: nobody could do much with it.

    Args:
        conversations: The conversations.
        subjects: The subjects by name.
        budgets: Shares of a conversation's tokens, above 0 and at most 1.
        counter: Counts on all sides.
    """
    outcomes: list[Outcome] = []
    for conversation in conversations:
        whole = MessageIndex(list(conversation.messages), counter=counter).tokens
        fixed = MessageIndex(_ends(conversation), counter=counter).tokens
        for share in budgets:
            budget = int(whole * share)
            if fixed > _FIXED * budget:
                continue
            for name, subject in subjects.items():
                view = subject(conversation, budget, counter)
                room = MessageIndex([dict(each) for each in view], counter=counter).tokens / budget
                outcomes.append(Outcome(name, share, conversation, tuple(judge(conversation, view)), room))
    return outcomes


def _ends(conversation: Conversation) -> list[dict[str, Any]]:
    """Return what every compaction keeps: the system message, the last user message and the last message."""
    messages = conversation.messages
    users = [place for place, each in enumerate(messages) if each["role"] == "user"]
    kept = {*(place for place, each in enumerate(messages) if each["role"] == "system"), *users[-1:], len(messages) - 1}
    return [messages[place] for place in sorted(kept)]


def totals_table(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each subject and budget."""
    keys = dict.fromkeys((each.subject, each.budget) for each in outcomes)
    return table(_TOTALS, [_totals(*key, [each for each in outcomes if (each.subject, each.budget) == key]) for key in keys])


def _totals(subject: str, budget: float, outcomes: Sequence[Outcome]) -> list[str]:
    verdicts = [verdict for each in outcomes for verdict in each.verdicts]
    items = [each for each in verdicts if each.planted.is_item]
    survivors = [each for each in items if each.survives]
    hypothetical = [each for each in verdicts if each.planted.kind == "hypothetical"]
    rules = [each for each in verdicts if not each.planted.is_item and each.planted.kind != "hypothetical"]
    return [
        subject,
        f"{budget:.0%}",
        percent(each.survives for each in items),
        percent(each.means for each in survivors),
        percent(each.means for each in items),
        percent((each.stale for each in items if each.planted.old), 1),
        percent((each.false for each in rules), 1),
        percent((each.false for each in hypothetical), 1),
        f"{100 * sum(each.room for each in outcomes) / len(outcomes):.0f}",
        percent((each.room > 1 for each in outcomes), 0),
    ]


def kind_table(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return a row for each kind and a column for each language: survives, and in brackets with its meaning.

    Distractors come last, with how often each is presented as a rule, or as a value that holds.
    """
    columns = list(dict.fromkeys(column_of(each.conversation) for each in outcomes))
    rows: list[list[str]] = []
    for kind in (*ITEMS, *DISTRACTORS):
        cells: list[str] = []
        for column in (*columns, "all"):
            of_it = [
                verdict
                for each in outcomes
                if column in (column_of(each.conversation), "all")
                for verdict in each.verdicts
                if verdict.planted.kind == kind
            ]
            cells.append(_cell(of_it))
        rows.append([kind.replace("_", " ") if kind in ITEMS else f"*{kind.replace('_', ' ')}*", *cells])
    return table(["kind", *columns, "all"], rows)


def column_of(conversation: Conversation) -> str:
    """Return the column of a conversation: its language, or that it was recorded."""
    return conversation.language if conversation.source == "generated" else "recorded"


def _cell(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "-"
    if not verdicts[0].planted.is_item:
        return percent(each.false for each in verdicts)
    return f"{percent(each.survives for each in verdicts)} ({percent(each.means for each in verdicts)})"


def percent(found: Iterable[bool], digits: int = 0) -> str:
    """Return the share that is true, in %.

    >>> percent([True, False, False])
    '33'
    """
    values = list(found)
    return f"{100 * sum(values) / len(values):.{digits}f}" if values else "-"
