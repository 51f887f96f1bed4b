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
from .record import Record, begins
from .sections import Section
from .sentences import READ_CHARS, one_line

__all__ = [
    "add_asks",
    "add_carried",
    "add_constraints",
    "add_facts",
    "add_first_and_latest",
    "add_held_facts",
    "add_lines",
    "add_progress",
    "add_settings",
    "yield_to_held_facts",
]

_FIRST: Final = 0.08
_LATEST: Final = 0.05
_ASKS: Final = 0.04
_STATE: Final = 0.05
_NEXT: Final = 0.02
_DONE: Final = 0.12
_DECISIONS: Final = 0.04
_FILES: Final = 0.08
_SETTINGS: Final = 0.02
_CARRIED: Final = 0.5
_CARRIED_ORDER: Final = (
    Section.GOAL,
    Section.IN_PROGRESS,
    Section.BLOCKED,
    Section.NEXT,
    Section.DONE,
    Section.DECISIONS,
    Section.CONTEXT,
    Section.FILES,
)
_LINE_TOKENS: Final = 36
_LINE_SHARE: Final = 0.2
_STEPS: Final = 2
_CONSTRAINTS: Final = 0.99
_LINE_CHARS: Final = 200
_ASK_CHARS: Final = 160
_ASK_TOKENS: Final = 40
_TELLING_ASK: Final = 12
_RECENT: Final = 5
_FOCUS_BONUS: Final = 2.0
_LEAST_FACT: Final = 2
_LEAST_LINES: Final = 0.35
_LINES: Final = _ASKS + _STATE + _NEXT + _DONE + _DECISIONS + _FILES + _SETTINGS


def add_first_and_latest(draft: Draft, record: Record, opening: str | None) -> None:
    """What the user said first and last.

    Args:
        draft: Gets them.
        record: Holds them.
        opening: What the user said first, if it still stands in the view: then its beginning is enough.
    """
    asks = record.asks
    first = opening or (asks[0] if asks else None)
    if first and not record.lines.get(Section.GOAL):
        room = _FIRST / 4 * draft.limit if opening else max(min(_ASK_TOKENS, draft.limit / 4), _FIRST * draft.limit)
        draft.add(Section.GOAL, f"First: {draft.shortened(first, room)}", upto=draft.limit, place=-1)
    if asks and (not begins(first or "", asks[-1]) or record.lines.get(Section.GOAL)):
        latest = draft.shortened(asks[-1], max(min(_ASK_TOKENS, draft.limit / 4), _LATEST * draft.limit))
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


def add_settings(draft: Draft, record: Record) -> None:
    """What had more than one value, with the latest, the latest changed first."""
    upto = _upto(draft, _SETTINGS)
    for place, (name, value) in reversed(list(enumerate(record.settings.changed()))):
        draft.add(Section.CONTEXT, f"{name}={value}", upto=upto, label="Settings", place=place)


def add_carried(draft: Draft, record: Record) -> None:
    """The lines of an earlier summary that a model or another program wrote, before any of ours."""
    upto = draft.used + _CARRIED * draft.rest
    for section in _CARRIED_ORDER:
        lines = record.lines.get(section, [])
        for place, line in enumerate(lines):
            draft.add(section, line, upto=upto, place=place - len(lines) - 1)


def add_asks(draft: Draft, record: Record, opening: str | None) -> None:
    """What the user said between the first and the latest words, the newest first."""
    upto = _upto(draft, _ASKS)
    asks = list(enumerate(record.asks))
    for place, ask in reversed(asks[0 if opening else 1 : -1]):
        if len(ask) >= _TELLING_ASK and not (opening and begins(opening, ask)):
            draft.add(Section.GOAL, f"Then: {one_line(ask, _ASK_CHARS)}", upto=upto, place=place)


def add_progress(draft: Draft, record: Record) -> None:
    """What is in progress, blocked and next, and what was done: calls that changed something or failed before others."""
    actions = list(enumerate(record.actions.values()))
    recent = [action for _, action in actions[-_RECENT:]]
    stuck = [action for action in recent if action.failed]
    waiting = [action for action in recent if action.outcome is None]
    upto = _upto(draft, _STATE)
    for action in reversed(stuck):
        draft.add(Section.BLOCKED, action.line, upto=upto)
    for action in waiting:
        draft.add(Section.IN_PROGRESS, f"Waiting: {action.call}", upto=upto)
    if record.now:
        draft.add(Section.IN_PROGRESS, f"Now: {one_line(record.now, _LINE_CHARS)}", upto=upto)
    upto = _upto(draft, _NEXT)
    for step in record.next_steps[-_STEPS:]:
        draft.add(Section.NEXT, f"Announced: {step}", upto=upto)
    upto = _upto(draft, _DONE)
    done = [(place, action) for place, action in actions if action not in stuck and action not in waiting]
    for place, action in sorted(done, key=lambda item: (-_weight(item[1], record), -item[0])):
        draft.add(Section.DONE, action.line, upto=upto, place=place)


def _weight(action: Action, record: Record) -> int:
    """What is told first: what the focus is on, then changes and failures, then what ran, then what was read."""
    told = 2 if action.failed or action.effect is Effect.CHANGES else int(action.effect is Effect.RUNS)
    return told + (3 if record.is_focused(action.line) else 0)


def add_lines(draft: Draft, record: Record) -> None:
    """Decisions, of the earlier summary and the newest; files, those changed first; whether texts were read in part."""
    decisions = list(enumerate(record.decisions))
    upto = _upto(draft, _DECISIONS / 2)
    for place, line in decisions[: record.held_decisions]:
        draft.add(Section.DECISIONS, line, upto=upto, place=place)
    upto = _upto(draft, _DECISIONS / 2)
    for place, line in reversed(decisions[record.held_decisions :]):
        draft.add(Section.DECISIONS, line, upto=upto, place=place)
    upto = _upto(draft, _FILES)
    files = list(enumerate(record.files.items()))
    for place, (path, effect) in sorted(files, key=lambda item: (item[1][1] is Effect.READS, -item[0])):
        draft.add(Section.FILES, path, upto=upto, label="Read" if effect is Effect.READS else "Changed", place=place)
    if record.unread:
        line = f"({record.unread} texts of over {READ_CHARS:,} characters were read at both ends only)"
        draft.add(Section.CONTEXT, line, upto=draft.limit)


def _upto(draft: Draft, share: float) -> float:
    """Where a section's room ends: its share of what was free, or in a small budget about one line."""
    return draft.used + draft.narrowed * max(share * draft.rest, min(_LINE_TOKENS, _LINE_SHARE * draft.rest))


def yield_to_held_facts(draft: Draft, record: Record) -> None:
    """Set what shares are of; where lines and the facts held so far would not fit together, narrow the lines' room."""
    draft.rest = max(1, draft.limit - draft.used)
    held = sum(draft.count(f" {fact}") for fact in record.held)
    draft.narrowed = min(1.0, max(_LEAST_LINES, (draft.rest - held) / (_LINES * draft.rest)))


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
