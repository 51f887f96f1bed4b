"""What of a record goes into a digest: the rules of what comes first, and how much room each section may take.

Each function fills one part of a draft. Shares are of the budget and were set by measurement, see ``docs/digest.md``.
"""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Final

from .actions import Action, Effect
from .constraints import forbids, is_strict, latest_constraints
from .draft import Draft
from .record import Record
from .sections import Section
from .sentences import one_line

__all__ = [
    "add_asks",
    "add_constraints",
    "add_facts",
    "add_first_and_latest",
    "add_held_facts",
    "add_lines",
    "add_progress",
    "yield_to_held_facts",
]

_FIRST: Final = 0.08
_LATEST: Final = 0.05
_ASKS: Final = 0.04
_STATE: Final = 0.06
_DONE: Final = 0.12
_DECISIONS: Final = 0.04
_FILES: Final = 0.08
_SETTINGS: Final = 0.02
_CARRIED: Final = 0.25
_CONSTRAINTS: Final = 0.95
_LINE_CHARS: Final = 200
_ASK_CHARS: Final = 160
_ASK_TOKENS: Final = 40
_TELLING_ASK: Final = 12
_RECENT: Final = 5
_FOCUS_BONUS: Final = 2.0
_LEAST_FACT: Final = 2
_LEAST_LINES: Final = 0.5
_LINES: Final = _ASKS + _STATE + _DONE + _DECISIONS + _FILES + _SETTINGS


def add_first_and_latest(draft: Draft, record: Record, opening: str | None) -> None:
    """What the user said first and last.

    Args:
        draft: Gets them.
        record: Holds them.
        opening: What the user said first, if it still stands in the view: then its beginning is enough.
    """
    asks = list(record.asks.values())
    first = opening or (asks[0] if asks else None)
    if first:
        room = _FIRST / 4 * draft.limit if opening else max(_ASK_TOKENS, _FIRST * draft.limit)
        draft.add(Section.GOAL, f"First: {draft.shortened(first, room)}", upto=draft.limit, place=-1)
    if asks and asks[-1] != first:
        latest = draft.shortened(asks[-1], max(_ASK_TOKENS, _LATEST * draft.limit))
        draft.add(Section.GOAL, f"Latest: {latest}", upto=draft.limit, place=len(asks))


def add_constraints(draft: Draft, record: Record) -> None:
    """Every constraint that no later one overrides; if there are too many, the strict ones first, and how many had no room."""
    valid = [
        sentence
        for sentence in latest_constraints(record.constraints)
        if forbids(sentence) or not record.settings.overrides(sentence)
    ]
    for strict in (True, False):
        for place, sentence in enumerate(valid):
            if is_strict(sentence) is strict:
                fits = draft.add(Section.CONSTRAINTS, sentence, upto=_CONSTRAINTS * draft.limit, place=place)
                draft.left_out += not fits


def add_asks(draft: Draft, record: Record, opening: str | None) -> None:
    """What an earlier summary gives as the goal, and of the user's other words what there is room for, the newest first."""
    upto = draft.used + _ASKS * draft.rest
    for place, line in enumerate(record.lines.get(Section.GOAL, [])):
        draft.add(Section.GOAL, line, upto=upto, place=place - len(record.lines[Section.GOAL]) - 1)
    asks = list(enumerate(record.asks.values()))
    for place, ask in reversed(asks[0 if opening else 1 : -1]):
        if len(ask) >= _TELLING_ASK:
            draft.add(Section.GOAL, f"Then: {one_line(ask, _ASK_CHARS)}", upto=upto, place=place)


def add_progress(draft: Draft, record: Record) -> None:
    """What is in progress, blocked and next, and what was done: calls that changed something or failed before others."""
    upto = draft.used + _STATE * draft.rest
    recent = list(record.actions.values())[-_RECENT:]
    stuck = [action for action in recent if action.failed]
    waiting = [action for action in recent if action.outcome is None]
    for section, lines in (
        (Section.IN_PROGRESS, [f"Waiting: {action.call}" for action in waiting]),
        (Section.IN_PROGRESS, [f"Now: {one_line(record.now, _LINE_CHARS)}"] if record.now else []),
        (Section.BLOCKED, [action.line for action in reversed(stuck)]),
        (Section.NEXT, [f"Announced: {step}" for step in record.next_steps[-2:]]),
    ):
        for line in [*record.lines.get(section, []), *lines]:
            draft.add(section, line, upto=upto)
    upto = draft.used + _DONE * draft.rest
    done = list(enumerate(action for action in record.actions.values() if action not in stuck and action not in waiting))
    for place, line in enumerate(record.lines.get(Section.DONE, [])):
        draft.add(Section.DONE, line, upto=upto, place=place - len(record.lines[Section.DONE]))
    for place, action in sorted(done, key=lambda item: (-_weight(item[1], record), -item[0])):
        draft.add(Section.DONE, action.line, upto=upto, place=place)


def _weight(action: Action, record: Record) -> int:
    """What is told first: what the focus is on, then changes and failures, then what ran, then what was read."""
    told = 2 if action.failed or action.effect is Effect.CHANGES else int(action.effect is Effect.RUNS)
    return told + (3 if record.is_focused(action.line) else 0)


def add_lines(draft: Draft, record: Record) -> None:
    """Decisions, files, settings, and what an earlier summary of another kind says."""
    upto = draft.used + _DECISIONS * draft.rest
    decisions = list(enumerate(record.decisions))
    for place, line in decisions[: record.held_decisions]:
        draft.add(Section.DECISIONS, line, upto=upto - _DECISIONS / 2 * draft.rest, place=place)
    for place, line in reversed(decisions[record.held_decisions :]):
        draft.add(Section.DECISIONS, line, upto=upto, place=place)
    upto = draft.used + _FILES * draft.rest
    files = list(enumerate(record.files.items()))
    for place, (path, effect) in sorted(files, key=lambda item: (item[1][1] is Effect.READS, -item[0])):
        draft.add(Section.FILES, path, upto=upto, label="Read" if effect is Effect.READS else "Changed", place=place)
    upto = draft.used + _SETTINGS * draft.rest
    for place, (name, value) in reversed(list(enumerate(record.settings.changed()))):
        draft.add(Section.CONTEXT, f"{name}={value}", upto=upto, label="Settings", place=place)
    upto = draft.used + _CARRIED * draft.rest
    for section in (Section.FILES, Section.CONTEXT):
        for line in record.lines.get(section, []):
            draft.add(section, line, upto=upto)


def yield_to_held_facts(draft: Draft, record: Record) -> None:
    """Narrow what shares are of, where lines and the facts held so far would not fit together; lines keep half their room."""
    held = sum(draft.count(f" {fact}") for fact in record.held)
    fits = (draft.rest - held) / (_LINES * draft.rest) if draft.rest > 0 else 0
    draft.rest = int(draft.rest * min(1.0, max(_LEAST_LINES, fits)))


def add_held_facts(draft: Draft, record: Record, upto: float) -> None:
    """The facts an earlier summary holds, in its order; if there is no room for all, those most likely to be needed."""
    held = [fact for fact in record.held if not _is_superseded(record, fact)]
    ranked = sorted(enumerate(held), key=lambda item: (-_score(draft, record, item[1]), item[0]))
    for place, fact in ranked:
        draft.add_fact(fact, upto=upto, place=place)


def add_facts(draft: Draft, record: Record, upto: float, visible: Container[str]) -> None:
    """New facts, those most likely to be needed first.

    Args:
        draft: Gets them.
        record: Holds them.
        upto: Tokens of the whole text.
        visible: The facts of what stays beside the digest, which need not be repeated.
    """
    room = int(max(0, min(upto, draft.limit) - draft.used))
    new = (
        fact for fact in record.table if fact not in visible and fact not in record.held and not _is_superseded(record, fact)
    )
    candidates = heapq.nlargest(2 * room, new, key=lambda fact: record.table.score(fact, tokens=1 + len(fact) / 4))
    place = len(record.held)
    for fact in sorted(candidates, key=lambda fact: -_score(draft, record, fact)):
        place += draft.add_fact(fact, upto=upto, place=place)
        if upto - draft.used < _LEAST_FACT:
            return


def _score(draft: Draft, record: Record, fact: str) -> float:
    bonus = _FOCUS_BONUS if fact in record.focused or record.is_focused(fact) else 0.0
    return record.table.score(fact, tokens=draft.count(fact)) + bonus


def _is_superseded(record: Record, fact: str) -> bool:
    return record.settings.is_superseded(fact, record.table.last_seen(fact))
