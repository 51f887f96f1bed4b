"""The ranking of a digest's items: what comes first, and how much room each section may take.

Each function adds one kind of item from the notes to the builder. The shares of the budget were set by measurement, see
``docs/digest.md``.
"""

from __future__ import annotations

import heapq
from collections.abc import Container
from typing import Final

from ..sections import Section
from .actions import Action, Effect
from .constraints import forbids, is_strict, latest_constraints
from .digest_builder import DigestBuilder
from .notes import ConversationNotes, begins
from .sentences import READ_CHARS, one_line

_FIRST: Final = 0.08
_LATEST: Final = 0.05
_REQUESTS: Final = 0.04
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
_REQUEST_CHARS: Final = 160
_REQUEST_TOKENS: Final = 40
_SHORTEST_REQUEST: Final = 12
_RECENT: Final = 5
_FOCUS_BONUS: Final = 2.0
_LEAST_FACT: Final = 2
_LEAST_LINES: Final = 0.35
_LINES: Final = _REQUESTS + _STATE + _NEXT + _DONE + _DECISIONS + _FILES + _SETTINGS


def add_first_and_latest(builder: DigestBuilder, notes: ConversationNotes, opening: str | None) -> None:
    """Add the user's first and latest messages.

    Args:
        builder: The builder.
        notes: The notes.
        opening: The user's first message, if it stays in the view: then its beginning is enough.
    """
    requests = notes.requests
    first = opening or (requests[0] if requests else None)
    if first and not notes.lines.get(Section.GOAL):
        room = _FIRST / 4 * builder.limit if opening else max(min(_REQUEST_TOKENS, builder.limit / 4), _FIRST * builder.limit)
        builder.add(Section.GOAL, f"First: {builder.shortened(first, room)}", upto=builder.limit, place=-1)
    if requests and (not begins(first or "", requests[-1]) or notes.lines.get(Section.GOAL)):
        latest = builder.shortened(requests[-1], max(min(_REQUEST_TOKENS, builder.limit / 4), _LATEST * builder.limit))
        builder.add(Section.GOAL, f"Latest: {latest}", upto=builder.limit, place=len(requests))


def add_constraints(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Add the constraints that no later one overrides, the strict ones first; count those that have no room."""
    valid = [
        sentence
        for sentence in latest_constraints(notes.constraints)
        if forbids(sentence) or not notes.values.overrides(sentence)
    ]
    for strict in (True, False):
        for place, sentence in enumerate(valid):
            if is_strict(sentence) is strict:
                fits = builder.add(Section.CONSTRAINTS, sentence, upto=_CONSTRAINTS * builder.limit, place=place)
                builder.left_out += not fits


def add_values(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Add the names that had more than one value with the latest, the last changed first."""
    upto = _upto(builder, _SETTINGS)
    for place, (name, value) in reversed(list(enumerate(notes.values.changed()))):
        builder.add(Section.CONTEXT, f"{name}={value}", upto=upto, label="Settings", place=place)


def add_earlier_lines(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Add the lines of an earlier summary that a model or another program wrote, before any of ours."""
    upto = builder.used + _CARRIED * builder.rest
    for section in _CARRIED_ORDER:
        lines = notes.lines.get(section, [])
        for place, line in enumerate(lines):
            builder.add(section, line, upto=upto, place=place - len(lines) - 1)


def add_requests(builder: DigestBuilder, notes: ConversationNotes, opening: str | None) -> None:
    """Add the user's messages between the first and the latest, the newest first."""
    upto = _upto(builder, _REQUESTS)
    requests = list(enumerate(notes.requests))
    for place, request in reversed(requests[0 if opening else 1 : -1]):
        if len(request) >= _SHORTEST_REQUEST and not (opening and begins(opening, request)):
            builder.add(Section.GOAL, f"Then: {one_line(request, _REQUEST_CHARS)}", upto=upto, place=place)


def add_progress(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Add what is in progress, blocked, next and done; of the calls, those that changed something or failed first."""
    actions = list(enumerate(notes.actions.values()))
    recent = [action for _, action in actions[-_RECENT:]]
    stuck = [action for action in recent if action.failed]
    waiting = [action for action in recent if action.outcome is None]
    upto = _upto(builder, _STATE)
    for action in reversed(stuck):
        builder.add(Section.BLOCKED, action.line, upto=upto)
    for action in waiting:
        builder.add(Section.IN_PROGRESS, f"Waiting: {action.call}", upto=upto)
    if notes.last_words:
        builder.add(Section.IN_PROGRESS, f"Now: {one_line(notes.last_words, _LINE_CHARS)}", upto=upto)
    upto = _upto(builder, _NEXT)
    for step in notes.next_steps[-_STEPS:]:
        builder.add(Section.NEXT, f"Announced: {step}", upto=upto)
    upto = _upto(builder, _DONE)
    done = [(place, action) for place, action in actions if action not in stuck and action not in waiting]
    for place, action in sorted(done, key=lambda item: (-_weight(item[1], notes), -item[0])):
        builder.add(Section.DONE, action.line, upto=upto, place=place)


def _weight(action: Action, notes: ConversationNotes) -> int:
    """Return the weight of an action: the focus first, then changes and failures, then what ran, then what was read."""
    told = 2 if action.failed or action.effect is Effect.CHANGES else int(action.effect is Effect.RUNS)
    return told + (3 if notes.is_focused(action.line) else 0)


def add_lines(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Add decisions, earlier and newest; files, the changed ones first; and a note on texts that were read in part."""
    decisions = list(enumerate(notes.decisions))
    upto = _upto(builder, _DECISIONS / 2)
    for place, line in decisions[: notes.earlier_decisions]:
        builder.add(Section.DECISIONS, line, upto=upto, place=place)
    upto = _upto(builder, _DECISIONS / 2)
    for place, line in reversed(decisions[notes.earlier_decisions :]):
        builder.add(Section.DECISIONS, line, upto=upto, place=place)
    upto = _upto(builder, _FILES)
    files = list(enumerate(notes.files.items()))
    for place, (path, effect) in sorted(files, key=lambda item: (item[1][1] is Effect.READS, -item[0])):
        builder.add(Section.FILES, path, upto=upto, label="Read" if effect is Effect.READS else "Changed", place=place)
    if notes.unread:
        line = f"({notes.unread} texts of over {READ_CHARS:,} characters were read at both ends only)"
        builder.add(Section.CONTEXT, line, upto=builder.limit)


def _upto(builder: DigestBuilder, share: float) -> float:
    """Return where a section's room ends: its share of the free room, or about one line in a small budget."""
    return builder.used + builder.narrowed * max(share * builder.rest, min(_LINE_TOKENS, _LINE_SHARE * builder.rest))


def reserve_room_for_facts(builder: DigestBuilder, notes: ConversationNotes) -> None:
    """Set the room that shares refer to; narrow the sections if they and the earlier facts would not fit together."""
    builder.rest = max(1, builder.limit - builder.used)
    held = sum(builder.count(f" {fact}") for fact in notes.earlier_facts)
    builder.narrowed = min(1.0, max(_LEAST_LINES, (builder.rest - held) / (_LINES * builder.rest)))


def add_earlier_facts(builder: DigestBuilder, notes: ConversationNotes, upto: float) -> None:
    """Add the facts of an earlier summary, in its order; if there is no room for all, those most likely to be needed."""
    held = [fact for fact in notes.earlier_facts if not _is_superseded(notes, fact)]
    ranked = sorted(enumerate(held), key=lambda item: (-_score(builder, notes, item[1]), item[0]))
    for place, fact in ranked:
        builder.add_fact(fact, upto=upto, place=place)


def add_facts(builder: DigestBuilder, notes: ConversationNotes, upto: float, visible: Container[str]) -> None:
    """Add new facts, those most likely to be needed first.

    Args:
        builder: The builder.
        notes: The notes.
        upto: Tokens of the whole text.
        visible: The facts of what stays beside the digest, which are not repeated.
    """
    room = int(max(0, min(upto, builder.limit) - builder.used))
    new = (
        fact
        for fact in notes.facts
        if fact not in visible and fact not in notes.earlier_facts and not _is_superseded(notes, fact)
    )
    candidates = heapq.nlargest(2 * room, new, key=lambda fact: notes.facts.score(fact, tokens=1 + len(fact) / 4))
    place = len(notes.earlier_facts)
    for fact in sorted(candidates, key=lambda fact: -_score(builder, notes, fact)):
        place += builder.add_fact(fact, upto=upto, place=place)
        if upto - builder.used < _LEAST_FACT:
            return


def _score(builder: DigestBuilder, notes: ConversationNotes, fact: str) -> float:
    bonus = _FOCUS_BONUS if fact in notes.focused or notes.is_focused(fact) else 0.0
    return notes.facts.score(fact, tokens=builder.count(fact)) + bonus


def _is_superseded(notes: ConversationNotes, fact: str) -> bool:
    return notes.values.is_superseded(fact, notes.facts.last_seen(fact))
